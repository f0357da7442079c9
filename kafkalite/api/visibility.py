"""Removal of things from answers that the client may not see, where there is an authorizer.

Lists are stripped of what may not be seen, as if it was not there; operations that a client is told
it may perform are those that it may.
"""

from typing import TYPE_CHECKING, Any

from kafkalite.api.authorized_operations import NOT_REQUESTED, ON_CLUSTER, ON_GROUP, ON_TOPIC
from kafkalite.api.streams_groups import topics_of
from kafkalite.security.acls import CLUSTER_NAME, Operation, ResourceType
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTION = ResourceType.TRANSACTIONAL_ID
DESCRIBE = Operation.DESCRIBE


def may(
    context: "RequestContext",
    operation: Operation,
    kind: ResourceType,
    name: str = CLUSTER_NAME,
    *,
    quiet: bool = False,
) -> bool:
    """Say whether a client may do something; there has to be an authorizer."""
    authorizer = context.services.authorizer
    assert authorizer is not None
    return authorizer.allows(context, operation, kind, name, quiet=quiet)


def strip(key: ApiKey, request: Any, context: "RequestContext", response: Any) -> Any:
    """Take out of a response what its client may not see."""
    match key:
        case ApiKey.LIST_GROUPS:
            if not may(context, DESCRIBE, CLUSTER, quiet=True):
                response.groups = [
                    group
                    for group in response.groups
                    if may(context, DESCRIBE, GROUP, group.group_id, quiet=True)
                ]
        case ApiKey.LIST_TRANSACTIONS:
            response.transaction_states = [
                state
                for state in response.transaction_states
                if may(
                    context,
                    DESCRIBE,
                    ResourceType.TRANSACTIONAL_ID,
                    state.transactional_id,
                    quiet=True,
                )
            ]
        case ApiKey.DESCRIBE_TRANSACTIONS:
            for state in response.transaction_states:
                state.topics = [
                    topic
                    for topic in state.topics
                    if may(context, DESCRIBE, TOPIC, topic.topic, quiet=True)
                ]
        case ApiKey.DESCRIBE_TOPIC_PARTITIONS:
            _strip_topic_partitions(request, context, response)
        case ApiKey.DESCRIBE_CLUSTER:
            if response.cluster_authorized_operations != NOT_REQUESTED:
                response.cluster_authorized_operations = cluster_operations(context)
        case ApiKey.CREATE_TOPICS:
            _strip_configs(context, response)
        case ApiKey.DESCRIBE_GROUPS:
            for group in response.groups:
                if group.authorized_operations != NOT_REQUESTED:
                    group.authorized_operations = operations(context, GROUP, group.group_id)
        case (
            ApiKey.CONSUMER_GROUP_DESCRIBE
            | ApiKey.SHARE_GROUP_DESCRIBE
            | ApiKey.STREAMS_GROUP_DESCRIBE
        ):
            for group in response.groups:
                if group.authorized_operations != NOT_REQUESTED:
                    group.authorized_operations = operations(context, GROUP, group.group_id)
            response.groups = [_shown(key, group, context) for group in response.groups]
    return response


def _shown(key: ApiKey, group: Any, context: "RequestContext") -> Any:
    """Return a described group, or its refusal if it has topics that may not be seen (rule 343)."""
    if key is ApiKey.STREAMS_GROUP_DESCRIBE:
        names = topics_of(group.topology)
        message = "The described group uses topics that the client is not authorized to describe."
    else:
        names = dict.fromkeys(
            topic.topic_name
            for member in group.members
            for assignment in _assignments(member)
            for topic in assignment.topic_partitions
        )
        message = "The group has described topic(s) that the client is not authorized to describe."
    if all(may(context, DESCRIBE, TOPIC, name, quiet=True) for name in names):
        return group
    return type(group)(
        group_id=group.group_id,
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        error_message=message,
    )


def _assignments(member: Any) -> list[Any]:
    """Return what a member has and, in a consumer group, what it is to have."""
    target = getattr(member, "target_assignment", None)
    return [member.assignment] if target is None else [member.assignment, target]


def _strip_topic_partitions(request: Any, context: "RequestContext", response: Any) -> None:
    if not request.topics:
        response.topics = [
            topic
            for topic in response.topics
            if may(context, DESCRIBE, TOPIC, topic.name or "", quiet=True)
        ]
    for topic in response.topics:
        if topic.topic_authorized_operations != NOT_REQUESTED:
            topic.topic_authorized_operations = operations(context, TOPIC, topic.name or "")


def _strip_configs(context: "RequestContext", response: Any) -> None:
    """Leave the settings of a new topic out for those who may not see them."""
    for topic in response.topics:
        if topic.error_code or may(
            context, Operation.DESCRIBE_CONFIGS, TOPIC, topic.name, quiet=True
        ):
            continue
        topic.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topic.num_partitions = topic.replication_factor = -1
        topic.configs = []


def operations(context: "RequestContext", kind: ResourceType, name: str) -> int:
    """Return the operations that a client may perform on something, a bit for each (KIP-430)."""
    offered = ON_TOPIC if kind == TOPIC else ON_GROUP if kind == GROUP else ON_CLUSTER
    return sum(
        1 << operation
        for operation in Operation
        if offered >> operation & 1 and may(context, operation, kind, name, quiet=True)
    )


def cluster_operations(context: "RequestContext") -> int:
    """Return the operations on the cluster; none for those who may not even see it."""
    if not may(context, DESCRIBE, CLUSTER, quiet=True):
        return 0
    return operations(context, CLUSTER, CLUSTER_NAME)
