"""CreateTopics (key 19), versions 2-7 (rules 22, 28, 29).

v4: -1 for the broker's own numbers (KIP-464). v5: the answer tells the settings (KIP-525).
v6: throttling by error (KIP-599). v7: topic IDs (KIP-516).

Not implemented: create.topic.policy.class.name.
"""

from collections import Counter
from collections.abc import Mapping
from functools import partial

import trio

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.metadata_requests import Result
from kafkalite.api.quotas import submit_counted
from kafkalite.config.report import describe_topic
from kafkalite.deferred import Deferred
from kafkalite.meta.changes import TopicCreated
from kafkalite.meta.controller import check_partition_count
from kafkalite.meta.events import CreateTopic
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

BROKER_DEFAULT = -1
FIRST_VERSION_WITH_CONFIGS = 5
FIRST_STRICT_VERSION = 6

ANSWERS_AT_ONCE_MAX = 20
"""Topics whose settings are described in one go, a few hundred microseconds each."""

Described = dict[tuple[tuple[str, str], ...], list[CreatableTopicConfigs]]
"""What a topic with certain settings of its own is answered with; most topics have the same."""


def handle(request: CreateTopicsRequest, context: RequestContext) -> Deferred[CreateTopicsResponse]:
    """Create the topics one by one; a refused one does not touch the others (rule 250)."""
    return Deferred(partial(_create, request, context))


def refuse(
    request: CreateTopicsRequest, error: KafkaError, context: RequestContext
) -> CreateTopicsResponse:
    """Answer the error for each topic."""
    del context
    return CreateTopicsResponse(topics=[_refused(topic.name, error) for topic in request.topics])


async def _create(request: CreateTopicsRequest, context: RequestContext) -> CreateTopicsResponse:
    counts = Counter(topic.name for topic in request.topics)
    topics = [topic for topic in request.topics if counts[topic.name] == 1]
    events = [_event(topic, context) for topic in topics]
    # A KafkaError is the answer for each topic.
    check_partition_count(sum(max(each.num_partitions, len(each.assignments)) for each in events))
    results, throttle_ms = await submit_counted(
        events,
        context,
        strict_from=FIRST_STRICT_VERSION,
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    answers = []
    described: Described = {}
    for topic, result in zip(topics, results, strict=True):
        answers.append(_answer(topic.name, result, described, context))
        if len(answers) % ANSWERS_AT_ONCE_MAX == 0:
            await trio.lowlevel.checkpoint()
    twice = KafkaError(ErrorCode.INVALID_REQUEST, "The request names this topic more than once")
    answers += [_refused(name, twice) for name, count in counts.items() if count > 1]
    return CreateTopicsResponse(throttle_time_ms=throttle_ms, topics=answers)


def _event(topic: CreatableTopic, context: RequestContext) -> CreateTopic:
    config = context.services.config
    partitions, replication_factor = topic.num_partitions, topic.replication_factor
    if not topic.assignments:
        if partitions == BROKER_DEFAULT:
            partitions = config.int("num.partitions")
        if replication_factor == BROKER_DEFAULT:
            replication_factor = config.int("default.replication.factor")
    return CreateTopic(
        name=topic.name,
        topic_id=context.services.metadata.new_topic_id(),
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[(each.partition_index, each.broker_ids) for each in topic.assignments],
        configs={each.name: each.value for each in topic.configs},
    )


def _answer(
    name: str, result: Result, described: Described, context: RequestContext
) -> CreatableTopicResult:
    if isinstance(result, KafkaError):
        return _refused(name, result)
    (created,) = result
    assert isinstance(created, TopicCreated)
    configs = []
    if context.api_version >= FIRST_VERSION_WITH_CONFIGS:
        key = tuple(sorted(created.configs.items()))
        if key not in described:
            described[key] = _describe(created.configs, context)
        configs = described[key]
    return CreatableTopicResult(
        name=name,
        topic_id=created.topic_id,
        error_message=None,
        num_partitions=len(created.partitions),
        replication_factor=len(created.partitions[0].replicas),
        configs=configs,
    )


def _describe(configs: Mapping[str, str], context: RequestContext) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in describe_topic(context.services.config, configs)
    ]


def _refused(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=error.code, error_message=error.message or None, configs=[]
    )


HANDLERS = (Handler(CREATE_TOPICS, handle, refuse, forward_to_controller=True),)
