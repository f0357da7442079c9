"""Requests of this broker to the controller on its own behalf."""

from collections.abc import Sequence

from kafkalite.meta.events import CreateTopic
from kafkalite.meta.peers import ControllerChannel
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.allocate_producer_ids import (
    ALLOCATE_PRODUCER_IDS,
    AllocateProducerIdsRequest,
)
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)


async def create_topics(
    channel: ControllerChannel, events: Sequence[CreateTopic], *, timeout_ms: int
) -> dict[str, KafkaError]:
    """Have topics created that may be there already; return what was refused, by name."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=event.name,
                num_partitions=event.num_partitions,
                replication_factor=event.replication_factor,
                configs=[
                    CreatableTopicConfig(name=name, value=value)
                    for name, value in event.configs.items()
                ],
            )
            for event in events
        ],
        timeout_ms=timeout_ms,
    )
    try:
        response = await channel.request(CREATE_TOPICS, request, timeout_ms=timeout_ms)
    except KafkaError as error:
        return {event.name: error for event in events}
    return {
        topic.name: KafkaError(ErrorCode(topic.error_code), topic.error_message or "")
        for topic in response.topics
        # Somebody else was first.
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    }


async def producer_id_block(
    channel: ControllerChannel, *, broker_id: int, broker_epoch: int, timeout_ms: int
) -> tuple[int, int]:
    """Return the first id of a new block of producer ids, and how many there are.

    Raises:
        KafkaError: the controller is not reached, or refused.
    """
    response = await channel.request(
        ALLOCATE_PRODUCER_IDS,
        AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch),
        timeout_ms=timeout_ms,
    )
    if response.error_code != ErrorCode.NONE:
        raise KafkaError(ErrorCode(response.error_code), "the controller gave no producer ids")
    return response.producer_id_start, response.producer_id_len
