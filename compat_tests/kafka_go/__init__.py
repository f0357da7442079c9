"""segmentio/kafka-go."""
