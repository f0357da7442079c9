"""Metadata in ZooKeeper, in the nodes of Apache Kafka 3.9 (rules 186-194)."""
