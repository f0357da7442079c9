"""Metadata (key 3), versions 0-13: brokers, topics, leaders (rules 16-27).

v1: null means all topics, controller id, racks. v4: auto creation is asked for. v5: offline
replicas. v6: LISTENER_NOT_FOUND. v7: leader epochs. v8: authorized operations (KIP-430).
v9: flexible. v10: topic IDs (KIP-516). v12: topics named by ID. v13: top-level error (KIP-1102).
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from kafkalite.api.authorized_operations import NOT_REQUESTED, ON_CLUSTER, ON_TOPIC
from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.listener_endpoints import Endpoints, endpoints_for, leader_for, offline_replicas
from kafkalite.api.parts import PART_MAX, by_topic, joined
from kafkalite.deferred import Deferred, InSteps, in_steps
from kafkalite.meta.controller import PARTITIONS_AT_ONCE_MAX
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
    from kafkalite.meta.image import Image, PartitionImage, TopicImage

FIRST_VERSION_BY_TOPIC_ID = 12
FIRST_VERSION_WITH_LISTENER_NOT_FOUND = 6

STEP_PARTITIONS = 500
"""Partitions that are described in one turn, some milliseconds of work."""

Refused = Mapping[str, ErrorCode]


def handle(
    request: MetadataRequest, context: RequestContext
) -> MetadataResponse | Deferred[MetadataResponse]:
    """Answer from the image; topics to be created first make it wait until they have leaders."""
    image = context.services.metadata.image
    if request.topics is None or (not request.topics and context.api_version == 0):
        return _response(request, context, list(image.topics.values()))
    wanted = _once_each(request, context)
    missing = [
        topic.name
        for topic in wanted
        if topic.name is not None and topic.topic_id == ZERO_UUID and topic.name not in image.topics
    ]
    may_create = request.allow_auto_topic_creation and context.services.config.bool(
        "auto.create.topics.enable"
    )
    if may_create and context.is_consumer:
        missing = _without_deleted(missing, context)
    if may_create and missing:
        return Deferred(partial(_create_missing, request, wanted, context, missing))
    return _response(request, context, list(_named(wanted, image, {})))


def refuse(
    request: MetadataRequest, error: KafkaError, context: RequestContext
) -> MetadataResponse:
    """Answer the error for each topic, and at the top level from v13 on."""
    del context
    return MetadataResponse(
        error_code=error.code,
        cluster_id=None,
        topics=[
            MetadataResponseTopic(
                error_code=error.code, name=topic.name or "", topic_id=topic.topic_id
            )
            for topic in request.topics or ()
        ],
    )


def _without_deleted(missing: list[str], context: RequestContext) -> list[str]:
    """Leave out what was deleted while this consumer went on asking for it (decision 0073)."""
    if context.services.config.bool("kafkalite.auto.create.deleted.topics"):
        return missing
    deleted = context.services.deleted_topics.names
    return [name for name in missing if name not in deleted]


def _once_each(request: MetadataRequest, context: RequestContext) -> list[MetadataRequestTopic]:
    """Return the topics that are asked for, each once however often it is named.

    Raises:
        KafkaError: INVALID_REQUEST for IDs in a version that has no answer to them (rule 24), and
            for a topic that is given neither name nor ID.
    """
    topics = request.topics or []
    by_id = any(topic.name is None or topic.topic_id != ZERO_UUID for topic in topics)
    if by_id and context.api_version < FIRST_VERSION_BY_TOPIC_ID:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Metadata v{context.api_version} cannot name topics by ID, v12 can",
        )
    if any(topic.name is None and topic.topic_id == ZERO_UUID for topic in topics):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a topic is given no name and no ID")
    # A topic with a name and an ID is the one with the ID.
    keys = {
        topic.topic_id if topic.topic_id != ZERO_UUID else topic.name: topic for topic in topics
    }
    return list(keys.values())


async def _create_missing(
    request: MetadataRequest,
    wanted: Iterable[MetadataRequestTopic],
    context: RequestContext,
    missing: Iterable[str],
) -> MetadataResponse:
    """Create topics so that this very answer names their leaders.

    Kafka answers LEADER_NOT_AVAILABLE or UNKNOWN_TOPIC_OR_PARTITION first and lets the client try
    again (rule 20); every client also takes the topic at once, and its first message is not late.
    Who wants to see how a client copes sets kafkalite.auto.create.topics.wait to false.
    """
    metadata = context.services.metadata
    before = metadata.image
    refused = await context.services.topic_creation.ensure_topics(missing)
    image = metadata.image
    if not context.services.config.bool("kafkalite.auto.create.topics.wait"):
        image = before
    # Of topics that are too many at once Kafka says only that they are not there (rule 250).
    codes = {
        name: error.code
        for name, error in refused.items()
        if error.code is not ErrorCode.POLICY_VIOLATION
    }
    response = _response(request, context, list(_named(wanted, image, codes)))
    return await response.wait() if isinstance(response, Deferred) else response


def _named(
    wanted: Iterable[MetadataRequestTopic], image: "Image", refused: Refused
) -> "Iterable[TopicImage | MetadataResponseTopic]":
    """Return the topics, and for those that are not there what is answered instead (rule 19)."""
    for each in wanted:
        if each.topic_id != ZERO_UUID:
            yield image.topic_by_id(each.topic_id) or MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=each.topic_id
            )
        else:
            name = each.name or ""
            yield image.topics.get(name) or MetadataResponseTopic(
                error_code=refused.get(name) or image.refusal_of_unknown(name),
                name=name,
                is_internal=name in INTERNAL_TOPICS,
            )


def _response(
    request: MetadataRequest,
    context: RequestContext,
    topics: "list[TopicImage | MetadataResponseTopic]",
) -> MetadataResponse | Deferred[MetadataResponse]:
    """Describe topics; at once unless they have very many partitions (decision 0062)."""
    is_large = len(topics) > PART_MAX or sum(_size(topic) for topic in topics) > PART_MAX
    endpoints = endpoints_for(context)
    response = _without_topics(request, context, endpoints)
    steps = _described(response, topics, request, context, endpoints)
    if is_large:
        return InSteps(partial(in_steps, steps))
    for _ in steps:
        pass
    return response


def _size(topic: "TopicImage | MetadataResponseTopic") -> int:
    return 1 + len(topic.partitions)


def _without_topics(
    request: MetadataRequest, context: RequestContext, endpoints: Endpoints
) -> MetadataResponse:
    image = context.services.metadata.image
    brokers = [
        MetadataResponseBroker(
            node_id=broker_id, host=host, port=port, rack=image.brokers[broker_id].rack
        )
        for broker_id, (host, port) in endpoints.items()
    ]
    wants_operations = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=brokers,
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=[],
        cluster_authorized_operations=ON_CLUSTER if wants_operations else NOT_REQUESTED,
    )


def _described(
    response: MetadataResponse,
    topics: "list[TopicImage | MetadataResponseTopic]",
    request: MetadataRequest,
    context: RequestContext,
    endpoints: Endpoints,
) -> Generator[None, None, MetadataResponse]:
    """Add topics to the response, and give it; a step is STEP_PARTITIONS of work."""
    done = 0
    for topic in topics:
        if isinstance(topic, MetadataResponseTopic):
            response.topics.append(topic)
            done += 1
            continue
        described = _topic(topic, request)
        response.topics.append(described)
        done += 1
        for start in range(0, len(topic.partitions), STEP_PARTITIONS):
            part = topic.partitions[start : start + STEP_PARTITIONS]
            described.partitions += [
                _partition(index, state, endpoints, context)
                for index, state in enumerate(part, start)
            ]
            done += len(part)
            if done >= STEP_PARTITIONS:
                done = 0
                yield
    return response


def _topic(topic: "TopicImage", request: MetadataRequest) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[],
        topic_authorized_operations=(
            ON_TOPIC if request.include_topic_authorized_operations else NOT_REQUESTED
        ),
    )


def _partition(
    index: int, state: "PartitionImage", endpoints: Endpoints, context: RequestContext
) -> MetadataResponsePartition:
    """Describe a partition: leader, replicas, in-sync and offline ones (rule 18)."""
    version = context.api_version
    has_listener_not_found = version >= FIRST_VERSION_WITH_LISTENER_NOT_FOUND
    leader, error_code = leader_for(
        state,
        endpoints,
        context.services.metadata.image,
        unreachable=(
            ErrorCode.LISTENER_NOT_FOUND
            if has_listener_not_found
            else ErrorCode.LEADER_NOT_AVAILABLE
        ),
    )
    replicas, isr = list(state.replicas), list(state.isr)
    offline = offline_replicas(state, endpoints)
    if version == 0 and offline:
        # The first clients looked up every replica among the brokers, and failed without it.
        replicas = [broker for broker in replicas if broker in endpoints]
        isr = [broker for broker in isr if broker in endpoints]
        error_code = error_code or ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error_code,
        partition_index=index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline,
    )


def _parts(request: MetadataRequest) -> Iterator[MetadataRequest]:
    """Yield requests for some topics each; too many to be created at once are not (rule 250)."""
    is_too_many = len(request.topics or ()) > PARTITIONS_AT_ONCE_MAX
    for part in by_topic(request):
        if is_too_many:
            part.allow_auto_topic_creation = False
        yield part


HANDLERS = (Handler(METADATA, handle, refuse, parts=_parts, join=joined),)
