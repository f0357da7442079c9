"""Kafka's settings as data: names, types, defaults, ranges, and what they are reported as."""
