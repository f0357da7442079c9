"""Serializers of other languages and makers on kafkalite's schema registry: programs of one run."""
