"""Apache Kafka's own Java client."""
