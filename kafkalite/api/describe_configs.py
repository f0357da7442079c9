"""DescribeConfigs (key 32), versions 1-4 (rules 32, 33).

v1: sources and synonyms (KIP-226). v3: types and documentation (KIP-569). v4: flexible.
"""

from collections.abc import Iterable

from kafkalite.api import broker_loggers
from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.config.report import (
    ConfigEntry,
    Synonym,
    describe_broker,
    describe_client_metrics,
    describe_cluster_default,
    describe_group,
    describe_topic,
    select,
)
from kafkalite.meta.alter_configs import check_broker_name
from kafkalite.meta.changes import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kafkalite.meta.image import ConfigResource
from kafkalite.meta.names import refusal_of_name
from kafkalite.settings.config_def import ConfigSource
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

BROKER_LOGGER_RESOURCE = 8


def handle(request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
    """Answer each resource by itself."""
    results = []
    for resource in request.resources:
        try:
            configs = _configs(resource, request, context)
        except KafkaError as error:
            results.append(_refused(resource, error))
        else:
            results.append(
                DescribeConfigsResult(
                    # Kafka sends an empty text where nothing is wrong, not null.
                    error_message="",
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    configs=configs,
                )
            )
    return DescribeConfigsResponse(results=results)


def refuse(
    request: DescribeConfigsRequest, error: KafkaError, context: RequestContext
) -> DescribeConfigsResponse:
    """Answer the error for each resource."""
    del context
    return DescribeConfigsResponse(results=[_refused(each, error) for each in request.resources])


def _configs(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: RequestContext
) -> list[DescribeConfigsResourceResult]:
    if resource.resource_type == BROKER_LOGGER_RESOURCE:
        if not resource.resource_name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The broker has to be named by its id")
        check_broker_name(resource.resource_name, context.services.config.node_id)
        return [
            DescribeConfigsResourceResult(
                name=name,
                value=level,
                config_source=ConfigSource.BROKER_LOGGER,
                documentation="" if request.include_documentation else None,
            )
            for name, level in broker_loggers.levels().items()
            if not resource.configuration_keys or name in resource.configuration_keys
        ]
    entries = select(_entries(resource, context), resource.configuration_keys)
    return [_result(entry, request) for entry in entries]


def _entries(resource: DescribeConfigsResource, context: RequestContext) -> Iterable[ConfigEntry]:
    config, image = context.services.config, context.services.metadata.image
    name = resource.resource_name
    match resource.resource_type:
        case t if t == TOPIC_RESOURCE:
            refusal = refusal_of_name(name)
            if refusal is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, refusal)
            topic = image.topics.get(name)
            if topic is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"There is no topic '{name}' on this cluster",
                )
            return describe_topic(config, topic.configs)
        case t if t == BROKER_RESOURCE:
            if not name:
                return describe_cluster_default(config)
            check_broker_name(name, config.node_id)
            return describe_broker(config)
        case t if t == GROUP_RESOURCE:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "A group has to be named")
            return describe_group(config, image.configs_of(ConfigResource(t, name)))
        case t if t == CLIENT_METRICS_RESOURCE:
            if not name:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "A client metrics subscription has to be named"
                )
            return describe_client_metrics(image.configs_of(ConfigResource(t, name)))
        case other:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {other}")


def _result(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[_synonym(each) for each in entry.synonyms] if request.include_synonyms else [],
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )


def _synonym(synonym: Synonym) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)


def _refused(resource: DescribeConfigsResource, error: KafkaError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


HANDLERS = (Handler(DESCRIBE_CONFIGS, handle, refuse),)
