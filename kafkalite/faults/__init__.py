"""Faults on purpose: rules that make a broker fail a request, lose its answer, or be slow."""
