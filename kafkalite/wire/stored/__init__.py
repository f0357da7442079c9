"""Keys and values of the records in internal topics, in Kafka's format."""
