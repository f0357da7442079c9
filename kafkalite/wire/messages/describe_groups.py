"""DescribeGroups (API key 15), versions 0-6, flexible from 5.

v1: throttle_time_ms (KIP-124).
v2: the throttled client gets its answer before the pause (KIP-219).
v3: authorized_operations (KIP-430).
v4: group_instance_id of members (KIP-345).
v5: compact encoding and tag sections (KIP-482).
v6: an unknown group is GROUP_ID_NOT_FOUND, before it was state Dead (KIP-1043).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32
from kafkalite.wire.schema import ArrayOf, Bytes, String, optional, since, structure

DescribeGroupsRequest = structure(
    "DescribeGroupsRequest",
    "groups" / ArrayOf(String),
    "include_authorized_operations" / since(3, Bool),
)

DescribedGroupMember = structure(
    "DescribedGroupMember",
    "member_id" / String,
    "group_instance_id" / since(4, optional(String)),
    "client_id" / String,
    "client_host" / String,
    "member_metadata" / Bytes,
    "member_assignment" / Bytes,
)

DescribedGroup = structure(
    "DescribedGroup",
    "error_code" / Int16,
    "error_message" / since(6, optional(String)),
    "group_id" / String,
    "group_state" / String,
    "protocol_type" / String,
    "protocol_data" / String,
    "members" / ArrayOf(DescribedGroupMember),
    "authorized_operations" / since(3, Int32, default=-(2**31)),
)

DescribeGroupsResponse = structure(
    "DescribeGroupsResponse",
    "throttle_time_ms" / since(1, Int32),
    "groups" / ArrayOf(DescribedGroup),
)

DESCRIBE_GROUPS = Api(
    ApiKey.DESCRIBE_GROUPS,
    versions=(0, 6),
    flexible_from=5,
    request=DescribeGroupsRequest,
    response=DescribeGroupsResponse,
)
