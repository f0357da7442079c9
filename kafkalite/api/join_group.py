"""Being a member of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (keys 11-14).

JoinGroup 0-9. v1: rebalance timeout. v4: MEMBER_ID_REQUIRED (KIP-394). v5: static members
(KIP-345). v6: flexible. v7: protocol type in the answer (KIP-559). v8: reason (KIP-800).
v9: SkipAssignment (KIP-814).
SyncGroup 0-5. v3: static members. v4: flexible. v5: protocol type and name must be said (KIP-559).
Heartbeat 0-4. v3: static members. v4: flexible.
LeaveGroup 0-5. v3: several members (KIP-345). v4: flexible. v5: reason (KIP-800).

The rules are in `group/`; here requests become events, and refusals responses.
"""

from uuid import uuid4

from kafkalite.api.context import RequestContext
from kafkalite.api.coordinator_requests import (
    check_group_id,
    check_size,
    client_code,
    handle_group_request,
    map_answer,
)
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.group.classic.join import JoinGroup
from kafkalite.group.classic.membership import Heartbeat, LeaveGroup
from kafkalite.group.classic.sync import SyncGroup
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from kafkalite.wire.messages.join_group import JOIN_GROUP, JoinGroupRequest, JoinGroupResponse
from kafkalite.wire.messages.leave_group import (
    LEAVE_GROUP,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from kafkalite.wire.messages.sync_group import SYNC_GROUP, SyncGroupRequest, SyncGroupResponse

FIRST_JOIN_WITH_NULL_PROTOCOL = 7
FIRST_SYNC_WITH_PROTOCOL = 5
FIRST_LEAVE_WITH_SEVERAL_MEMBERS = 3
MEMBER_ID_SUFFIX_SIZE = 37
"""A member id that is made here: the instance's or client's id, a hyphen and a UUID."""


def join(
    request: JoinGroupRequest, context: RequestContext
) -> JoinGroupResponse | Deferred[JoinGroupResponse]:
    """Join, and wait until the group's next generation begins."""
    check_group_id(request.group_id)
    check_size("protocol type", request.protocol_type)
    check_size("member id", request.member_id)
    check_size("group instance id", request.group_instance_id, reserved=MEMBER_ID_SUFFIX_SIZE)
    check_size("client id", context.client_id, reserved=MEMBER_ID_SUFFIX_SIZE)
    event = JoinGroup(
        request=request,
        api_version=context.api_version,
        client_id=context.client_id,
        client_host=f"/{context.peer_address[0]}",  # as Java prints an address
        random_id="" if request.member_id else str(uuid4()),
        connection_id=context.connection_id,
        principal=context.principal,
    )
    version = context.api_version
    answer = handle_group_request(request.group_id, event, context)
    return map_answer(answer, lambda response: _fit(response, version))


def refuse_join(
    request: JoinGroupRequest, error: KafkaError, context: RequestContext
) -> JoinGroupResponse:
    """Answer the error, and the member id that was sent."""
    answer = JoinGroupResponse(error_code=client_code(error), member_id=request.member_id)
    return _fit(answer, context.api_version)


def sync(
    request: SyncGroupRequest, context: RequestContext
) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
    """Wait for the leader's assignment, or give it."""
    check_group_id(request.group_id)
    must_say = context.api_version >= FIRST_SYNC_WITH_PROTOCOL
    if must_say and (request.protocol_type is None or request.protocol_name is None):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "protocol type and name are missing (rule 139)"
        )
    return handle_group_request(request.group_id, SyncGroup(request), context)


def refuse_sync(
    request: SyncGroupRequest, error: KafkaError, context: RequestContext
) -> SyncGroupResponse:
    """Answer the error.

    A coordinator that is loading has lost the round that the client is in. Clients know what to do
    about REBALANCE_IN_PROGRESS; older ones fail on the code for loading (rule 125).
    """
    del request, context
    code = client_code(error)
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        code = ErrorCode.REBALANCE_IN_PROGRESS
    return SyncGroupResponse(error_code=code)


def heartbeat(
    request: HeartbeatRequest, context: RequestContext
) -> HeartbeatResponse | Deferred[HeartbeatResponse]:
    """Keep a member's session."""
    check_group_id(request.group_id)
    return handle_group_request(request.group_id, Heartbeat(request), context)


def refuse_heartbeat(
    request: HeartbeatRequest, error: KafkaError, context: RequestContext
) -> HeartbeatResponse:
    """Answer the error; while loading all is well, since sessions begin anew then (rule 125)."""
    del request, context
    is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else client_code(error))


def leave(
    request: LeaveGroupRequest, context: RequestContext
) -> LeaveGroupResponse | Deferred[LeaveGroupResponse]:
    """Remove members."""
    check_group_id(request.group_id)
    event = LeaveGroup(request, context.api_version)
    return handle_group_request(request.group_id, event, context)


def refuse_leave(
    request: LeaveGroupRequest, error: KafkaError, context: RequestContext
) -> LeaveGroupResponse:
    """Answer the error; that there is no such group is said of each member from v3 on."""
    code = client_code(error)
    by_member = context.api_version >= FIRST_LEAVE_WITH_SEVERAL_MEMBERS
    if not by_member or code is not ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error_code=code)
    return LeaveGroupResponse(
        error_code=ErrorCode.NONE,
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=code,
            )
            for member in request.members
        ],
    )


def _fit(answer: JoinGroupResponse, version: int) -> JoinGroupResponse:
    """Say "no protocol" as the version does: null, or an empty string before v7."""
    if not answer.protocol_name:
        answer.protocol_name = None if version >= FIRST_JOIN_WITH_NULL_PROTOCOL else ""
    return answer


HANDLERS = (
    Handler(JOIN_GROUP, join, refuse_join),
    Handler(SYNC_GROUP, sync, refuse_sync),
    Handler(HEARTBEAT, heartbeat, refuse_heartbeat),
    Handler(LEAVE_GROUP, leave, refuse_leave),
)
