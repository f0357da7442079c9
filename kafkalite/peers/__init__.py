"""Connections to other brokers, and requests forwarded to the controller."""
