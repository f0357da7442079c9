"""What changes and describes topics: one module for each API, and here their list."""

from kafkalite.api import create_partitions, create_topics, delete_topics, describe_topic_partitions

HANDLERS = (
    *create_topics.HANDLERS,
    *delete_topics.HANDLERS,
    *create_partitions.HANDLERS,
    *describe_topic_partitions.HANDLERS,
)
