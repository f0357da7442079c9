"""ListConfigResources (key 74), versions 0-1: what has settings (KIP-714, KIP-1142).

v0: subscriptions to client metrics only. v1: resources of the kinds that are asked for.
"""

from kafkalite.api.context import RequestContext
from kafkalite.api.describe_configs import BROKER_LOGGER_RESOURCE
from kafkalite.api.handler import Handler
from kafkalite.meta.changes import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kafkalite.meta.image import Image
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.list_config_resources import (
    LIST_CONFIG_RESOURCES,
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

KINDS = (
    TOPIC_RESOURCE,
    BROKER_RESOURCE,
    BROKER_LOGGER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
)
FIRST_VERSION_WITH_KINDS = 1


def handle(
    request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    """Answer from the image. Topics and brokers always have settings, others once some are set."""
    wanted: set[int] = set(request.resource_types) or set(KINDS)
    if context.api_version < FIRST_VERSION_WITH_KINDS:
        wanted = {CLIENT_METRICS_RESOURCE}
    unknown = sorted(wanted.difference(KINDS))
    if unknown:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource types {unknown}")
    image = context.services.metadata.image
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in KINDS
            if kind in wanted
            for name in _names(kind, image)
        ]
    )


def refuse(
    request: ListConfigResourcesRequest, error: KafkaError, context: RequestContext
) -> ListConfigResourcesResponse:
    """Answer the error."""
    del request, context
    return ListConfigResourcesResponse(error_code=error.code, config_resources=[])


def _names(kind: int, image: Image) -> list[str]:
    if kind == TOPIC_RESOURCE:
        return list(image.topics)
    if kind in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        return [str(broker_id) for broker_id in image.brokers]
    return [resource.name for resource in image.configs if resource.type == kind]


HANDLERS = (Handler(LIST_CONFIG_RESOURCES, handle, refuse),)
