"""Apache Kafka's own integration tests, unchanged, with brokers of kafkalite under them."""
