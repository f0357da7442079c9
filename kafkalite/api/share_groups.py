"""Being a member of a share group: ShareGroupHeartbeat, and ShareGroupDescribe (keys 76 and 77).

ShareGroupHeartbeat 1, ShareGroupDescribe 1 (KIP-932).
"""

from typing import TYPE_CHECKING

from kafkalite.api.authorized_operations import ON_GROUP
from kafkalite.api.coordinator_requests import (
    check_size,
    check_subscription,
    client_code,
    gather,
    handle_group_request,
)
from kafkalite.api.handler import Handler
from kafkalite.api.share_acknowledge import check_enabled, check_member
from kafkalite.deferred import Deferred
from kafkalite.group.share.group import LEAVE_EPOCH
from kafkalite.group.share.heartbeat import JOIN_EPOCH, ShareHeartbeat
from kafkalite.group.share.part import DescribeShareGroup
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.share_group_describe import (
    SHARE_GROUP_DESCRIBE,
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kafkalite.wire.messages.share_group_heartbeat import (
    SHARE_GROUP_HEARTBEAT,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext


def heartbeat(
    request: ShareGroupHeartbeatRequest, context: "RequestContext"
) -> ShareGroupHeartbeatResponse | Deferred[ShareGroupHeartbeatResponse]:
    """Join a group, stay in it, or leave."""
    check_enabled(context)
    check_member(request.group_id, request.member_id)
    _check(request)
    event = ShareHeartbeat(request, context.client_id, f"/{context.peer_address[0]}")
    return handle_group_request(request.group_id, event, context)


def _check(request: ShareGroupHeartbeatRequest) -> None:
    """Refuse what no client sends (rule 381).

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
        check_size(name, text)
    check_subscription(request.subscribed_topic_names)
    if request.member_epoch == JOIN_EPOCH:
        if not request.subscribed_topic_names:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request."
            )
    elif request.member_epoch < LEAVE_EPOCH:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def refuse_heartbeat(
    request: ShareGroupHeartbeatRequest, error: KafkaError, context: "RequestContext"
) -> ShareGroupHeartbeatResponse:
    """Answer the error."""
    del request, context
    return ShareGroupHeartbeatResponse(
        error_code=client_code(error), error_message=error.message or None
    )


def describe(
    request: ShareGroupDescribeRequest, context: "RequestContext"
) -> ShareGroupDescribeResponse | Deferred[ShareGroupDescribeResponse]:
    """Describe each group."""
    check_enabled(context)

    def convert(groups: list[DescribedGroup]) -> ShareGroupDescribeResponse:
        for group in groups:
            if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
                group.authorized_operations = ON_GROUP
        return ShareGroupDescribeResponse(groups=groups)

    return gather(
        request.group_ids, lambda group_id: _describe(group_id, context), _not_described, convert
    )


def _describe(
    group_id: str, context: "RequestContext"
) -> DescribedGroup | Deferred[DescribedGroup]:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    return handle_group_request(group_id, DescribeShareGroup(group_id), context)


def refuse_describe(
    request: ShareGroupDescribeRequest, error: KafkaError, context: "RequestContext"
) -> ShareGroupDescribeResponse:
    """Answer the error for each group."""
    del context
    return ShareGroupDescribeResponse(
        groups=[_not_described(group_id, error) for group_id in request.group_ids]
    )


def _not_described(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(
        group_id=group_id, error_code=client_code(error), error_message=error.message or None
    )


HANDLERS = (
    Handler(SHARE_GROUP_HEARTBEAT, heartbeat, refuse_heartbeat),
    Handler(SHARE_GROUP_DESCRIBE, describe, refuse_describe),
)
