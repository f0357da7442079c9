"""Apache Kafka's tools and real clients against three brokers that replicate, and fail."""
