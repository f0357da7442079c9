"""LeaveGroup (API key 13), versions 0-5, flexible from 4.

v1: throttle_time_ms (KIP-124).
v2: the throttled client gets its answer before the pause (KIP-219).
v3: several members in one request, also by group_instance_id (KIP-345).
v4: compact encoding and tag sections (KIP-482).
v5: reason (KIP-800).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, nullable, optional, since, structure, until

MemberIdentity = structure(
    "MemberIdentity",
    "member_id" / String,
    "group_instance_id" / optional(String),
    "reason" / since(5, optional(String)),
)

LeaveGroupRequest = structure(
    "LeaveGroupRequest",
    "group_id" / String,
    "member_id" / until(2, String),
    "members" / since(3, ArrayOf(MemberIdentity)),
)

MemberResponse = structure(
    "MemberResponse",
    "member_id" / String,
    "group_instance_id" / nullable(String),
    "error_code" / Int16,
)

LeaveGroupResponse = structure(
    "LeaveGroupResponse",
    "throttle_time_ms" / since(1, Int32),
    "error_code" / Int16,
    "members" / since(3, ArrayOf(MemberResponse)),
)

LEAVE_GROUP = Api(
    ApiKey.LEAVE_GROUP,
    versions=(0, 5),
    flexible_from=4,
    request=LeaveGroupRequest,
    response=LeaveGroupResponse,
)
