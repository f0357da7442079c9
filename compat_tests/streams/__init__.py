"""Kafka Streams applications with exactly-once processing, killed and restarted under load."""
