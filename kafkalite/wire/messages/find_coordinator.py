"""FindCoordinator (API key 10), versions 0-6, flexible from 3."""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, nullable, since, structure, until

FindCoordinatorRequest = structure(
    "FindCoordinatorRequest",
    "key" / until(3, String),
    "key_type" / since(1, Int8),
    "coordinator_keys" / since(4, ArrayOf(String)),
)

Coordinator = structure(
    "Coordinator",
    "key" / String,
    "node_id" / Int32,
    "host" / String,
    "port" / Int32,
    "error_code" / Int16,
    "error_message" / nullable(String),
)

FindCoordinatorResponse = structure(
    "FindCoordinatorResponse",
    "throttle_time_ms" / since(1, Int32),
    "error_code" / until(3, Int16),
    "error_message" / since(1, nullable(String), until=3),
    "node_id" / until(3, Int32),
    "host" / until(3, String),
    "port" / until(3, Int32),
    "coordinators" / since(4, ArrayOf(Coordinator)),
)

FIND_COORDINATOR = Api(
    ApiKey.FIND_COORDINATOR,
    versions=(0, 6),
    flexible_from=3,
    request=FindCoordinatorRequest,
    response=FindCoordinatorResponse,
)
