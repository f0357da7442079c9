"""ListGroups (API key 16), versions 0-5, flexible from 3.

v1: throttle_time_ms (KIP-124).
v2: the throttled client gets its answer before the pause (KIP-219).
v3: compact encoding and tag sections (KIP-482).
v4: states_filter and group_state (KIP-518).
v5: types_filter and group_type (KIP-848).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, since, structure

ListGroupsRequest = structure(
    "ListGroupsRequest",
    "states_filter" / since(4, ArrayOf(String)),
    "types_filter" / since(5, ArrayOf(String)),
)

ListedGroup = structure(
    "ListedGroup",
    "group_id" / String,
    "protocol_type" / String,
    "group_state" / since(4, String),
    "group_type" / since(5, String),
)

ListGroupsResponse = structure(
    "ListGroupsResponse",
    "throttle_time_ms" / since(1, Int32),
    "error_code" / Int16,
    "groups" / ArrayOf(ListedGroup),
)

LIST_GROUPS = Api(
    ApiKey.LIST_GROUPS,
    versions=(0, 5),
    flexible_from=3,
    request=ListGroupsRequest,
    response=ListGroupsResponse,
)
