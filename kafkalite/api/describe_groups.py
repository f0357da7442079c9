"""DescribeGroups, ListGroups and DeleteGroups (keys 15, 16, 42).

DescribeGroups 0-6. v3: authorized operations (KIP-430). v4: static members. v5: flexible.
v6: GROUP_ID_NOT_FOUND (KIP-1043).
ListGroups 0-5. v3: flexible. v4: states (KIP-518). v5: types (KIP-848); all groups are classic.
DeleteGroups 0-2. v2: flexible.
"""

from kafkalite.api.authorized_operations import ON_GROUP
from kafkalite.api.context import RequestContext
from kafkalite.api.coordinator_requests import client_code, gather, handle_group_request
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.group.admin import DescribeGroup, ListGroups
from kafkalite.types import CONSUMER_OFFSETS_TOPIC
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.delete_groups import (
    DELETE_GROUPS,
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkalite.wire.messages.describe_groups import (
    DESCRIBE_GROUPS,
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkalite.wire.messages.list_groups import (
    LIST_GROUPS,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def describe(
    request: DescribeGroupsRequest, context: RequestContext
) -> DescribeGroupsResponse | Deferred[DescribeGroupsResponse]:
    """Describe each group; one that is coordinated elsewhere has an error of its own."""
    version = context.api_version

    def convert(groups: list[DescribedGroup]) -> DescribeGroupsResponse:
        for group in groups:
            if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
                group.authorized_operations = ON_GROUP
        return DescribeGroupsResponse(groups=groups)

    return gather(
        request.groups,
        lambda group_id: handle_group_request(group_id, DescribeGroup(group_id, version), context),
        _not_described,
        convert,
    )


def refuse_describe(
    request: DescribeGroupsRequest, error: KafkaError, context: RequestContext
) -> DescribeGroupsResponse:
    """Answer the error for each group."""
    del context
    return DescribeGroupsResponse(groups=[_not_described(name, error) for name in request.groups])


def list_groups(
    request: ListGroupsRequest, context: RequestContext
) -> ListGroupsResponse | Deferred[ListGroupsResponse]:
    """List the groups that this broker coordinates; clients ask every broker."""
    parts = context.services.coordinators.handle_all(CONSUMER_OFFSETS_TOPIC, ListGroups(request))

    def convert(lists: list[list[ListedGroup]]) -> ListGroupsResponse:
        return ListGroupsResponse(groups=[group for part in lists for group in part])

    return gather(parts, lambda part: part, _no_list, convert)


def refuse_list(
    request: ListGroupsRequest, error: KafkaError, context: RequestContext
) -> ListGroupsResponse:
    """Answer the error."""
    del request, context
    return ListGroupsResponse(error_code=error.code)


def delete(
    request: DeleteGroupsRequest, context: RequestContext
) -> DeleteGroupsResponse | Deferred[DeleteGroupsResponse]:
    """Delete each group, with its offsets, if it has no members."""
    # A share group's states go with it; who only lists groups does not pay for that.
    from kafkalite.api.share_offsets import delete_group

    return gather(
        dict.fromkeys(request.groups_names),
        lambda group_id: delete_group(group_id, context),
        _not_deleted,
        lambda results: DeleteGroupsResponse(results=results),
    )


def refuse_delete(
    request: DeleteGroupsRequest, error: KafkaError, context: RequestContext
) -> DeleteGroupsResponse:
    """Answer the error for each group."""
    del context
    return DeleteGroupsResponse(
        results=[_not_deleted(group_id, error) for group_id in request.groups_names]
    )


def _not_described(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)


def _no_list(part: object, error: KafkaError) -> list[ListedGroup]:
    """Another broker lists what has moved away; nothing else is refused to a reader."""
    del part
    if error.code is not ErrorCode.NOT_COORDINATOR:
        raise error
    return []


def _not_deleted(group_id: str, error: KafkaError) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=client_code(error))


HANDLERS = (
    Handler(DESCRIBE_GROUPS, describe, refuse_describe),
    Handler(LIST_GROUPS, list_groups, refuse_list),
    Handler(DELETE_GROUPS, delete, refuse_delete),
)
