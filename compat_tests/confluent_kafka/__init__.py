"""confluent-kafka (librdkafka)."""
