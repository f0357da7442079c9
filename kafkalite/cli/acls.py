"""`kafkalite acls`: who may do what, and why, on any Kafka that has an authorizer."""

from collections.abc import Callable, Sequence

import click

from kafkalite.cli.options import json_option, with_cluster
from kafkalite.cli.output import examples, print_json, print_table
from kafkalite.client import acls as acl_requests
from kafkalite.client.cluster import Client
from kafkalite.security.acls import (
    ANYTHING,
    Entry,
    Operation,
    Pattern,
    PatternType,
    Permission,
    ResourceType,
    Rule,
    Rules,
)
from kafkalite.security.shorthand import operations_of, pattern_of, principal_of, rules_of


@click.group(
    epilog=examples(
        "kafkalite acls allow alice read topic:orders group:billing",
        "kafkalite acls deny alice delete 'topic:orders*'",
        "kafkalite acls list",
        "kafkalite acls explain alice read topic:orders",
    )
)
def acls() -> None:
    """Say who may do what, and show why somebody may or may not.

    A resource is topic:NAME, group:NAME, transactional-id:NAME or cluster; NAME* is all whose names
    begin so. Operations are read, write, create, delete, alter, describe, all and more, with commas
    between them.
    """


def _rules(
    permission: Permission, who: str, what: str, which: Sequence[str], host: str
) -> list[Rule]:
    try:
        return list(rules_of(permission, who, what, which, host=host))
    except ValueError as error:
        raise click.UsageError(str(error)) from None


_user = click.argument("user")
_operations = click.argument("operations")
_resources = click.argument("resources", nargs=-1, required=True)
_host = click.option(
    "--host", default=ANYTHING, show_default=True, help="Only from this address, as it is told."
)


def _maker(permission: Permission, summary: str) -> Callable[..., None]:
    @acls.command(permission.name.lower(), help=summary)
    @_user
    @_operations
    @_resources
    @_host
    @with_cluster
    def make(
        client: Client, user: str, operations: str, resources: tuple[str, ...], host: str
    ) -> None:
        rules = _rules(permission, user, operations, resources, host)
        acl_requests.create_rules(client, rules)
        for rule in rules:
            click.echo(str(rule))

    return make


_maker(Permission.ALLOW, "Allow USER OPERATIONS on RESOURCES.")
_maker(Permission.DENY, "Deny USER OPERATIONS on RESOURCES, whatever else allows them.")


@acls.command()
@_user
@_operations
@_resources
@_host
@with_cluster
def remove(
    client: Client, user: str, operations: str, resources: tuple[str, ...], host: str
) -> None:
    """Take back what was allowed or denied."""
    rules = [
        rule
        for permission in (Permission.ALLOW, Permission.DENY)
        for rule in _rules(permission, user, operations, resources, host)
    ]
    if not acl_requests.delete_rules(client, rules):
        raise click.ClickException("there is no such rule")


@acls.command("list")
@json_option
@with_cluster
def list_(client: Client, as_json: bool) -> None:
    """List all rules."""
    rows = [_row(rule) for rule in acl_requests.list_rules(client)]
    names = ["permission", "principal", "operation", "resource", "host"]
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table([name.upper() for name in names], rows)


@acls.command()
@click.argument("user")
@click.argument("operation")
@click.argument("resource")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where USER comes from.")
@with_cluster
def explain(client: Client, user: str, operation: str, resource: str, host: str) -> None:
    """Tell whether USER may do OPERATION on RESOURCE, and which rule says so.

    The exit code is 0 if it is allowed and 1 if not. What brokers are told by super.users and
    allow.everyone.if.no.acl.found they tell nobody, so it is not known here.
    """
    try:
        (wanted,) = operations_of(operation)
        pattern = pattern_of(resource)
    except ValueError as error:
        raise click.UsageError(f"{error}; one operation and one resource") from None
    found: dict[Pattern, list[Entry]] = {}
    for rule in acl_requests.list_rules(client):
        found.setdefault(rule.pattern, []).append(rule.entry)
    decision = Rules(found).decide(
        principal_of(user), host, wanted, pattern.resource_type, pattern.name
    )
    why = f"{decision.reason}: {decision.rule}" if decision.rule else decision.reason
    if not decision.is_allowed:
        raise click.ClickException(f"denied; {why}")
    click.echo(f"allowed; {why}")


def _row(rule: Rule) -> tuple[str, str, str, str, str]:
    pattern, entry = rule
    star = "*" if pattern.pattern_type == PatternType.PREFIXED else ""
    kind = ResourceType(pattern.resource_type).name.lower().replace("_", "-")
    return (
        Permission(entry.permission).name.lower(),
        entry.principal,
        Operation(entry.operation).name.lower().replace("_", "-"),
        f"{kind}:{pattern.name}{star}",
        entry.host,
    )
