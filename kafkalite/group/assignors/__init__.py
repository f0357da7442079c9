"""Server-side assignors, with Kafka's results for the same input. Pure."""
