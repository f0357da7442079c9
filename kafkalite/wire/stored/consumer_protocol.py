"""Subscriptions and assignments of the classic consumer protocol (KIP-429).

A version comes first; what is of a later one is read as the latest here, as Kafka does.
"""

from kafkalite.wire.codec import Codec
from kafkalite.wire.primitives import Int32
from kafkalite.wire.schema import ArrayOf, Bytes, String, optional, since, structure

TopicPartition = structure(
    "TopicPartition",
    "topic" / String,
    "partitions" / ArrayOf(Int32),
)

ConsumerProtocolSubscription = structure(
    "ConsumerProtocolSubscription",
    "topics" / ArrayOf(String),
    "user_data" / optional(Bytes),
    "owned_partitions" / since(1, ArrayOf(TopicPartition)),
    "generation_id" / since(2, Int32, default=-1),
    "rack_id" / since(3, optional(String)),
)

ConsumerProtocolAssignment = structure(
    "ConsumerProtocolAssignment",
    "assigned_partitions" / ArrayOf(TopicPartition),
    "user_data" / optional(Bytes),
)

SUBSCRIPTION = Codec(ConsumerProtocolSubscription, versions=(0, 3), flexible_from=None)
ASSIGNMENT = Codec(ConsumerProtocolAssignment, versions=(0, 3), flexible_from=None)
