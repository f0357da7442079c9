"""`kafkalite doctor`: why clients hang, found by asking what they ask."""

import json
import socket
import time
from collections.abc import Callable, Iterator

import click

from kafkalite.cli.doctor_listeners import Finding, clocks, tls_listeners
from kafkalite.cli.options import json_option, with_cluster
from kafkalite.cli.output import examples
from kafkalite.client import admin
from kafkalite.client.cluster import Client
from kafkalite.client.consumer_groups import describe_consumer_group, places_of
from kafkalite.client.errors import ClientError
from kafkalite.client.groups import committed_offsets, describe_group, list_groups
from kafkalite.client.offsets import READ_COMMITTED, ends
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from kafkalite.wire.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from kafkalite.wire.messages.metadata import MetadataResponse

EXIT_FOUND = 1
LONG_TRANSACTION_S = 60
SETTLED = ("Stable", "Empty", "Dead")


@click.command(epilog=examples("kafkalite doctor", "kafkalite doctor -b broker:9092 --json"))
@json_option
@with_cluster
def doctor(client: Client, as_json: bool) -> int:
    """Look for what makes clients hang; exit with 1 if something is wrong.

    Connects to each address that the brokers tell their clients, looks at partitions, groups,
    transactions and clocks, and shakes hands with each listener that has TLS.
    """
    findings = list(examine(client))
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in findings]))
    for finding in () if as_json else findings:
        click.echo(f"{finding.weight}: {finding.what}\n  {finding.advice}")
    if not findings and not as_json:
        click.echo("nothing is wrong")
    return EXIT_FOUND if any(finding.weight == "error" for finding in findings) else 0


def examine(client: Client) -> Iterator[Finding]:
    """Yield what is wrong, what keeps most clients from working first."""
    metadata = client.fetch_metadata(None)
    found = [*addresses(client, metadata), *controller(metadata)]
    yield from found
    if any(finding.weight == "error" for finding in found):
        return  # what follows would wait for brokers that cannot be reached
    parts: list[Callable[[], Iterator[Finding]]] = [
        lambda: partitions(client, metadata),
        lambda: groups(client),
        lambda: transactions(client, metadata),
        lambda: clocks(client, metadata),
        lambda: tls_listeners(client, metadata),
    ]
    for part in parts:
        try:
            yield from part()
        except (KafkaError, ClientError) as error:
            yield Finding("warning", f"cannot be looked at: {error}", "Ask again in a moment.")


def addresses(client: Client, metadata: MetadataResponse) -> Iterator[Finding]:
    """Look whether clients reach the addresses that they are told (advertised.listeners)."""
    for broker in metadata.brokers:
        where = f"broker {broker.node_id} tells its clients {broker.host}:{broker.port}"
        advice = (
            "Set advertised.listeners of that broker to an address that this machine reaches; "
            "kafkalite's default answers each client with the address that it came in by."
        )
        try:
            socket.getaddrinfo(broker.host, broker.port)
        except OSError as error:
            yield Finding("error", f"{where}, a name unknown here: {error.strerror}", advice)
            continue
        try:
            client.broker(broker.node_id)
        except (ClientError, KafkaError) as error:
            yield Finding("error", f"{where}, and there: {error}", advice)


def controller(metadata: MetadataResponse) -> Iterator[Finding]:
    """Look whether somebody decides."""
    brokers = {broker.node_id for broker in metadata.brokers}
    if metadata.controller_id not in brokers:
        yield Finding(
            "error",
            "there is no controller: no topic can be made, and no leader replaced",
            "Look whether the brokers reach ZooKeeper or the controllers.",
        )


def partitions(client: Client, metadata: MetadataResponse) -> Iterator[Finding]:
    """Look for partitions that cannot be written to."""
    for topic in metadata.topics:
        name = topic.name or ""
        leaderless = [p.partition_index for p in topic.partitions if p.leader_id < 0]
        if leaderless:
            yield Finding(
                "error",
                f"{name}: partitions {_listed(leaderless)} have no leader",
                "Start the brokers that have their replicas; as a last resort "
                "unclean.leader.election.enable gives up what only they have.",
            )
        shrunk = [p for p in topic.partitions if len(p.isr_nodes) < len(p.replica_nodes)]
        if not shrunk:
            continue
        configs = admin.describe_configs(client, admin.ResourceType.TOPIC, name)
        least = int(next(c.value or "1" for c in configs if c.name == "min.insync.replicas"))
        refused = [
            p.partition_index for p in shrunk if len(p.isr_nodes) < min(least, len(p.replica_nodes))
        ]
        if refused:
            yield Finding(
                "error",
                f"{name}: partitions {_listed(refused)} are below min.insync.replicas={least}: "
                "producers with acks=all are refused",
                "Start the brokers that are missing, or lower min.insync.replicas.",
            )
        else:
            yield Finding(
                "warning",
                f"{name}: {len(shrunk)} partitions have replicas out of sync",
                "They catch up by themselves once their brokers are there.",
            )


def groups(client: Client) -> Iterator[Finding]:
    """Look for groups that cannot settle, and for those that nobody reads for."""
    for listed in list_groups(client):
        match (getattr(listed, "group_type", "") or "classic").lower():
            case "classic":
                yield from _classic_group(client, listed.group_id)
            case "consumer":
                yield from _consumer_group(client, listed.group_id)


def _classic_group(client: Client, group_id: str) -> Iterator[Finding]:
    group = describe_group(client, group_id)
    if group.state not in SETTLED:
        known = [f"{m.client_id} at {m.client_host}" for m in group.members]
        yield Finding(
            "warning",
            f"group {group_id!r} is in {group.state}: it waits for members that have not joined "
            f"again; it knows {', '.join(known) or 'nobody'}",
            _PATIENCE,
        )
    idle = [m for m in group.members if not m.assignment]
    if group.state == "Stable" and idle and group.protocol_type == "consumer":
        yield _idle(group_id, len(idle), len(group.members))
    if group.state == "Empty":
        yield from _unread(client, group_id)


def _consumer_group(client: Client, group_id: str) -> Iterator[Finding]:
    """Look at a group of Kafka 4, whose members take up their targets one by one."""
    group = describe_consumer_group(client, group_id)
    targets = {m.member_id: {*places_of(m.target_assignment)} for m in group.members}
    if group.group_state not in SETTLED:
        # Who has what others are to get keeps all of these waiting.
        late = [m for m in group.members if {*places_of(m.assignment)} - targets[m.member_id]]
        late = late or [m for m in group.members if m.member_epoch < group.assignment_epoch]
        names = ", ".join(f"{m.client_id} at {m.client_host}" for m in late)
        yield Finding(
            "warning",
            f"group {group_id!r} is in {group.group_state}: it waits for {names or 'nobody'}",
            _PATIENCE,
        )
    idle = [m for m in group.members if not targets[m.member_id]]
    if group.group_state == "Stable" and idle:
        yield _idle(group_id, len(idle), len(group.members))
    if group.group_state == "Empty":
        yield from _unread(client, group_id)


_PATIENCE = (
    "A member that hangs in its processing is missed until max.poll.interval.ms; one that was "
    "killed until session.timeout.ms."
)


def _idle(group_id: str, idle: int, count: int) -> Finding:
    return Finding(
        "warning",
        f"group {group_id!r}: {idle} of {count} members have nothing to read",
        "There are more members than partitions, or they subscribe to other topics.",
    )


def _unread(client: Client, group_id: str) -> Iterator[Finding]:
    behind = _lag(client, group_id)
    if behind:
        yield Finding(
            "warning",
            f"group {group_id!r} has no members, and {behind} records to read",
            "Start its consumers.",
        )


def _lag(client: Client, group_id: str) -> int:
    committed = committed_offsets(client, group_id)
    led = {
        TopicPartition(topic.name or "", partition.partition_index)
        for topic in client.fetch_metadata(None).topics
        for partition in topic.partitions
        if partition.leader_id >= 0
    }
    places = [place for place in committed if place in led]
    return sum(max(0, end - committed[place]) for place, end in ends(client, places).items())


def transactions(client: Client, metadata: MetadataResponse) -> Iterator[Finding]:
    """Look for transactions that hold up readers of committed records."""
    now_ms = time.time_ns() // 1_000_000
    for connection in client.all_brokers():
        if not connection.supports(LIST_TRANSACTIONS):
            return
        listed = connection.request(
            LIST_TRANSACTIONS, ListTransactionsRequest(state_filters=["Ongoing"])
        )
        for each in listed.transaction_states:
            request = DescribeTransactionsRequest(transactional_ids=[each.transactional_id])
            (state,) = connection.request(DESCRIBE_TRANSACTIONS, request).transaction_states
            age_s = (now_ms - state.transaction_start_time_ms) / 1_000
            if state.transaction_state != "Ongoing" or age_s < LONG_TRANSACTION_S:
                continue
            topics = sorted(topic.topic for topic in state.topics)
            yield Finding(
                "warning",
                f"transaction {each.transactional_id!r} of producer {state.producer_id} has been "
                f"open for {age_s:.0f} s, and holds up read_committed consumers of "
                f"{', '.join(topics)}",
                f"It is aborted after {state.transaction_timeout_ms / 1_000:.0f} s; the console "
                "can abort it now.",
            )
    places = [
        TopicPartition(topic.name or "", partition.partition_index)
        for topic in metadata.topics
        if not (topic.name or "").startswith("__")
        for partition in topic.partitions
        if partition.leader_id >= 0
    ]
    stable = ends(client, places, isolation=READ_COMMITTED)
    held = [str(place) for place, end in ends(client, places).items() if stable[place] < end]
    if held:
        yield Finding(
            "warning",
            f"{len(held)} partitions have records of open transactions: {', '.join(held[:5])}",
            "Consumers with isolation.level=read_committed get them when these end.",
        )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:20])) + (" and more" if len(numbers) > 20 else "")
