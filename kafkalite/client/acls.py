"""Rules of who may do what, over the wire (KIP-140)."""

from collections.abc import Iterable

from kafkalite.client.cluster import Client
from kafkalite.client.errors import check
from kafkalite.security.acls import Entry, Filter, Pattern, Rule
from kafkalite.wire.messages.create_acls import (
    CREATE_ACLS,
    AclCreation,
    CreateAclsRequest,
)
from kafkalite.wire.messages.delete_acls import (
    DELETE_ACLS,
    DeleteAclsFilter,
    DeleteAclsRequest,
)
from kafkalite.wire.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest


def list_rules(client: Client, wanted: Filter | None = None) -> list[Rule]:
    """Return the rules that a filter fits, in their order; all without one.

    Raises:
        KafkaError: SECURITY_DISABLED, the cluster has no authorizer; or the user may not ask.
    """
    wanted = wanted or Filter()
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    answer = client.any_broker().request(DESCRIBE_ACLS, request)
    check(answer.error_code, answer.error_message)
    return sorted(
        Rule(
            Pattern(resource.resource_type, resource.pattern_type, resource.resource_name),
            Entry(acl.principal, acl.host, acl.operation, acl.permission_type),
        )
        for resource in answer.resources
        for acl in resource.acls
    )


def create_rules(client: Client, rules: Iterable[Rule]) -> None:
    """Have these rules; those that are there stay.

    Raises:
        KafkaError: one was refused, the others may have been made.
    """
    creations = [
        AclCreation(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            resource_pattern_type=pattern.pattern_type,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission,
        )
        for pattern, entry in rules
    ]
    answer = client.ask_controller(
        CREATE_ACLS,
        CreateAclsRequest(creations=creations),
        errors=lambda message: [one.error_code for one in message.results],
    )
    for result in answer.results:
        check(result.error_code, result.error_message)


def delete_rules(client: Client, rules: Iterable[Rule]) -> int:
    """Have these rules no more; return how many there were.

    Raises:
        KafkaError: one was refused.
    """
    filters = [
        DeleteAclsFilter(
            resource_type_filter=pattern.resource_type,
            resource_name_filter=pattern.name,
            pattern_type_filter=pattern.pattern_type,
            principal_filter=entry.principal,
            host_filter=entry.host,
            operation=entry.operation,
            permission_type=entry.permission,
        )
        for pattern, entry in rules
    ]
    answer = client.ask_controller(
        DELETE_ACLS,
        DeleteAclsRequest(filters=filters),
        errors=lambda message: [one.error_code for one in message.filter_results],
    )
    count = 0
    for result in answer.filter_results:
        check(result.error_code, result.error_message)
        count += len(result.matching_acls)
    return count
