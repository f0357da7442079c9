"""kafkalite and Apache Kafka side by side: `python -m benchmarks compare`."""
