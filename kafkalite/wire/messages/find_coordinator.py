"""FindCoordinator (API key 10), versions 0-6, flexible from 3.

v1: key_type: group 0 or transaction 1 (KIP-98); throttle_time_ms and error_message.
v2: the throttled client gets its answer before the pause (KIP-219).
v3: compact encoding and tag sections (KIP-482).
v4: several keys in one request (KIP-699).
v5: TRANSACTION_ABORTABLE may be answered (KIP-890).
v6: key_type 2, share groups (KIP-932).
"""

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
