"""A console for any Kafka: the pages that a broker serves, over a client."""
