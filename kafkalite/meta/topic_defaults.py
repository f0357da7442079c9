"""Topics that are made without anybody saying how: on first use, and the coordinators' own."""

from uuid import UUID

from kafkalite.config import BrokerConfig
from kafkalite.meta.events import CreateTopic
from kafkalite.types import (
    CONSUMER_OFFSETS_TOPIC,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)

_SEGMENT_BYTES_MIN = 1 << 20
"""Least segment.bytes of a topic; below it only internal.segment.bytes goes."""


def default_topic(
    name: str, config: BrokerConfig, *, topic_id: UUID, broker_count: int
) -> CreateTopic:
    """Return what creates a topic with the broker's defaults.

    Internal topics get the settings that the broker has for them (rule 21).

    Args:
        name: of the topic.
        config: of this broker.
        topic_id: a new one.
        broker_count: brokers there are now.
    """
    partitions, replication_factor = {
        CONSUMER_OFFSETS_TOPIC: (
            "offsets.topic.num.partitions",
            "offsets.topic.replication.factor",
        ),
        TRANSACTION_STATE_TOPIC: (
            "transaction.state.log.num.partitions",
            "transaction.state.log.replication.factor",
        ),
        SHARE_GROUP_STATE_TOPIC: (
            "share.coordinator.state.topic.num.partitions",
            "share.coordinator.state.topic.replication.factor",
        ),
    }.get(name, ("num.partitions", "default.replication.factor"))
    replicas = config.int(replication_factor)
    if name in INTERNAL_TOPICS and _fits_brokers(config):
        replicas = min(replicas, max(broker_count, 1))
    return CreateTopic(
        name=name,
        topic_id=topic_id,
        num_partitions=config.int(partitions),
        replication_factor=replicas,
        configs=internal_configs(name, config, replicas=replicas),
    )


def internal_configs(name: str, config: BrokerConfig, *, replicas: int) -> dict[str, str]:
    """Return the settings of an internal topic, none for another (rule 21)."""
    if name == CONSUMER_OFFSETS_TOPIC:
        segment_bytes = config.int("offsets.topic.segment.bytes")
        configs = {"cleanup.policy": "compact", "compression.type": "producer"}
    elif name == TRANSACTION_STATE_TOPIC:
        segment_bytes = config.int("transaction.state.log.segment.bytes")
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": _min_insync("transaction.state.log.min.isr", config, replicas),
            "unclean.leader.election.enable": "false",
        }
    elif name == SHARE_GROUP_STATE_TOPIC:
        # Not compacted: updates of one share partition have one key, and all of them count.
        segment_bytes = config.int("share.coordinator.state.topic.segment.bytes")
        setting = "share.coordinator.state.topic.min.isr"
        configs = {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": _min_insync(setting, config, replicas),
            "retention.ms": "-1",
        }
    else:
        return {}
    small = segment_bytes < _SEGMENT_BYTES_MIN
    configs["internal.segment.bytes" if small else "segment.bytes"] = str(segment_bytes)
    return configs


def _min_insync(setting: str, config: BrokerConfig, replicas: int) -> str:
    """Return how many replicas must have a record of an internal topic."""
    wanted = config.int(setting)
    return str(min(wanted, replicas) if _fits_brokers(config) else wanted)


def _fits_brokers(config: BrokerConfig) -> bool:
    """Whether internal topics make do with the brokers there are.

    Not in a cluster: it has too few only for a moment, and what is made then stays so.
    """
    is_alone = config.is_alone
    return is_alone and config.bool("kafkalite.internal.topics.fit.brokers")
