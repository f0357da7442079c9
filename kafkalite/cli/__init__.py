"""The command line: `kafkalite serve`, and commands that talk to any Kafka cluster."""
