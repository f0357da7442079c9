"""sarama."""
