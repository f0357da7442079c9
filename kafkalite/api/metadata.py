"""Metadata (key 3), versions 0-13: brokers, topics, leaders (rules 16-27).

v1: null means all topics, controller id, racks. v4: auto creation is asked for. v5: offline
replicas. v7: leader epochs. v8: authorized operations (KIP-430). v9: flexible. v10: topic IDs
(KIP-516). v12: topics named by ID. v13: top-level error (KIP-1102).
"""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from kafkalite.api.authorized_operations import NOT_REQUESTED, ON_CLUSTER, ON_TOPIC
from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler, Pending
from kafkalite.types import INTERNAL_TOPICS, ZERO_UUID
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from kafkalite.meta.image import Image, TopicImage

NO_LEADER = -1
FIRST_VERSION_BY_TOPIC_ID = 12


def admit(request: MetadataRequest, context: RequestContext) -> MetadataResponse | Pending:
    """Answer from the image; topics to be created first make it wait until they have leaders."""
    image = context.services.metadata.image
    if request.topics is None or (not request.topics and context.api_version == 0):
        return _response(request, context, (_topic(t, request) for t in image.topics.values()))
    by_id = any(topic.name is None or topic.topic_id != ZERO_UUID for topic in request.topics)
    if by_id and context.api_version < FIRST_VERSION_BY_TOPIC_ID:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Metadata v{context.api_version} cannot name topics by ID, v12 can",
        )
    may_create = request.allow_auto_topic_creation and context.services.config.bool(
        "auto.create.topics.enable"
    )
    missing = [
        topic.name
        for topic in request.topics
        if topic.name is not None and topic.name not in image.topics
    ]
    if may_create and missing:
        return Pending(partial(_create_missing, request, context, missing))
    return _response(request, context, _named(request, context, {}))


def refuse(
    request: MetadataRequest, error: KafkaError, context: RequestContext
) -> MetadataResponse:
    """Answer the error for each topic, and at the top level from v13 on."""
    return MetadataResponse(
        error_code=error.code,
        cluster_id=context.services.metadata.image.cluster_id,
        topics=[
            MetadataResponseTopic(
                error_code=error.code, name=topic.name or "", topic_id=topic.topic_id
            )
            for topic in request.topics or ()
        ],
    )


async def _create_missing(
    request: MetadataRequest, context: RequestContext, missing: Iterable[str]
) -> MetadataResponse:
    """Create topics so that this very answer names their leaders.

    Kafka answers LEADER_NOT_AVAILABLE or UNKNOWN_TOPIC_OR_PARTITION first and lets the client try
    again (rule 20); every client also takes the topic at once, and its first message is not late.
    """
    refused: dict[str, KafkaError] = {}
    for name in dict.fromkeys(missing):
        try:
            await context.services.metadata.ensure_topic(name)
        except KafkaError as error:
            refused[name] = error
    return _response(request, context, _named(request, context, refused))


def _named(
    request: MetadataRequest, context: RequestContext, refused: dict[str, KafkaError]
) -> Iterable[MetadataResponseTopic]:
    image = context.services.metadata.image
    for wanted in request.topics or ():
        topic = _look_up(wanted, image)
        if topic is not None:
            yield _topic(topic, request)
        elif wanted.name is None:
            yield MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id
            )
        else:
            error = refused.get(wanted.name)
            code = error.code if error is not None else image.refusal_of_unknown(wanted.name)
            yield MetadataResponseTopic(
                error_code=code,
                name=wanted.name,
                is_internal=wanted.name in INTERNAL_TOPICS,
            )


def _look_up(wanted: MetadataRequestTopic, image: "Image") -> "TopicImage | None":
    if wanted.name is None:
        return image.topic_by_id(wanted.topic_id)
    return image.topics.get(wanted.name)


def _response(
    request: MetadataRequest, context: RequestContext, topics: Iterable[MetadataResponseTopic]
) -> MetadataResponse:
    image = context.services.metadata.image
    brokers = []
    for broker in image.brokers.values():
        endpoint = context.endpoint(broker)
        if endpoint is not None:
            brokers.append(
                MetadataResponseBroker(
                    node_id=broker.broker_id, host=endpoint[0], port=endpoint[1], rack=broker.rack
                )
            )
    wants_operations = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=brokers,
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=list(topics),
        cluster_authorized_operations=ON_CLUSTER if wants_operations else NOT_REQUESTED,
    )


def _topic(topic: "TopicImage", request: MetadataRequest) -> MetadataResponseTopic:
    partitions = [
        MetadataResponsePartition(
            error_code=(
                ErrorCode.LEADER_NOT_AVAILABLE if state.leader == NO_LEADER else ErrorCode.NONE
            ),
            partition_index=index,
            leader_id=state.leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=list(state.replicas),
            isr_nodes=list(state.isr),
        )
        for index, state in enumerate(topic.partitions)
    ]
    wants_operations = request.include_topic_authorized_operations
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=ON_TOPIC if wants_operations else NOT_REQUESTED,
    )


HANDLERS = (Handler(METADATA, admit, refuse),)
