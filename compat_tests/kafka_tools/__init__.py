"""Apache Kafka's command-line tools, 4.x and the last of 3.x."""

from compat_tests.kafka_tools import scenarios, transactions

__all__ = ["scenarios", "transactions"]
