"""Unmodified Kafka clients against a real broker process, one list of scenarios for all."""
