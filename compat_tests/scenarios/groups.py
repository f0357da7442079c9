"""Consumer groups of the classic protocol."""

from __future__ import annotations

import time

from compat_tests.driver import Member, wait_members
from compat_tests.scenarios.records import check_sent
from compat_tests.scenarios.registry import Bench, scenario


def all_partitions(topic: str, count: int) -> set[tuple[str, int]]:
    """Return the partitions of a topic as assignments name them."""
    return {(topic, index) for index in range(count)}


def wait_shared(members: list[Member], partitions: set[tuple[str, int]], each: int) -> None:
    """Wait until the members own the partitions, each so many, none twice."""

    def shared() -> bool:
        sizes = [len(member.assignment) for member in members]
        owned = set().union(*(member.assignment for member in members))
        return owned == partitions and sizes == [each] * len(members)

    wait_members(members, shared, f"{len(members)} members with {each} partitions each")


def fill(bench: Bench, topic: str, partitions: int, each: int) -> None:
    """Produce so many records to each partition."""
    sent = [{"partition": p, "value": b"%d" % i} for p in range(partitions) for i in range(each)]
    check_sent(bench.helper.produce(topic, sent))


@scenario("a group reads everything", "group")
def group_reads_all_partitions(bench: Bench) -> None:
    topic, group = bench.topic(partitions=4), bench.name()
    fill(bench, topic, 4, 25)
    member = bench.member(group, topic)
    member.wait_assignment(all_partitions(topic, 4))
    read = member.wait_records(100)
    assert {(record.partition, record.offset) for record in read} == {
        (partition, offset) for partition in range(4) for offset in range(25)
    }


@scenario("a waiting member gets new records", "group")
def records_reach_a_waiting_member(bench: Bench) -> None:
    topic, group = bench.topic(), bench.name()
    member = bench.member(group, topic)
    member.wait_assignment(all_partitions(topic, 1))
    for count in range(1, 4):
        check_sent(bench.helper.produce(topic, [{"partition": 0, "value": b"%d" % count}]))
        assert len(member.wait_records(count)) == count


@scenario("a second member joins and leaves", "group")
def partitions_move_between_members(bench: Bench) -> None:
    topic, group = bench.topic(partitions=4), bench.name()
    first = bench.member(group, topic)
    first.wait_assignment(all_partitions(topic, 4))
    second = bench.member(group, topic)
    wait_shared([first, second], all_partitions(topic, 4), 2)
    fill(bench, topic, 4, 5)
    first.wait_records(10)
    second.wait_records(10)
    first.close()
    second.wait_assignment(all_partitions(topic, 4))


@scenario("shares a group with a Java member", "group", "group:mixed")
def members_of_two_clients_share_a_group(bench: Bench) -> None:
    partner = "confluent-kafka" if bench.client.name == "Java" else "Java"
    topic, group = bench.topic(partitions=4), bench.name()
    own = bench.member(group, topic, assignor="range")
    own.wait_assignment(all_partitions(topic, 4))
    other_driver = bench.driver_of(bench.other_client(partner))
    other = bench.member(group, topic, assignor="range", driver=other_driver)
    wait_shared([own, other], all_partitions(topic, 4), 2)
    own.close()
    other.wait_assignment(all_partitions(topic, 4))


@scenario("static members", "group", "group:static")
def static_member_comes_back_without_a_rebalance(bench: Bench) -> None:
    topic, group = bench.topic(partitions=4), bench.name()
    how = {"session_timeout_ms": 30000}
    first = bench.member(group, topic, instance_id="one", **how)
    first.wait_assignment(all_partitions(topic, 4))
    second = bench.member(group, topic, instance_id="two", **how)
    wait_shared([first, second], all_partitions(topic, 4), 2)
    before, changes = set(first.assignment), len(second.changes)
    first.close()
    again = bench.member(group, topic, instance_id="one", **how)
    again.wait_assignment(before)
    fill(bench, topic, 4, 3)
    again.wait_records(6)
    second.wait_records(6)
    assert len(second.changes) == changes, second.changes
    described = bench.helper.call("describe_group", group=group)
    assert sorted(member["instance_id"] for member in described["members"]) == ["one", "two"]


@scenario("cooperative rebalance", "group", "group:cooperative")
def cooperative_member_keeps_what_does_not_move(bench: Bench) -> None:
    topic, group = bench.topic(partitions=4), bench.name()
    first = bench.member(group, topic, assignor="cooperative-sticky")
    first.wait_assignment(all_partitions(topic, 4))
    second = bench.member(group, topic, assignor="cooperative-sticky")
    wait_shared([first, second], all_partitions(topic, 4), 2)
    moved = set().union(*(changed for kind, changed in first.changes if kind == "revoked"))
    assert moved == second.assignment
    assert not moved & first.assignment


@scenario("commit and resume", "group", "group:commit")
def next_member_resumes_at_the_commit(bench: Bench) -> None:
    topic, group = bench.topic(partitions=2), bench.name()
    fill(bench, topic, 2, 20)
    first = bench.member(group, topic)
    first.wait_records(40)
    first.commit({topic: {0: 7, 1: 20}}, metadata="a note")
    first.close()
    reply = bench.helper.call("group_offsets", group=group)["offsets"]
    assert {int(index): entry["offset"] for index, entry in reply[topic].items()} == {0: 7, 1: 20}
    if bench.client.reason_against(["group:metadata"]) is None:
        notes = {entry["metadata"] for entry in reply[topic].values()}
        # confluent-kafka commits the note with the NUL byte that ends it in C.
        assert {note.rstrip("\0") for note in notes} == {"a note"}
    second = bench.member(group, topic)
    read = second.wait_records(13)
    assert [(record.partition, record.offset) for record in read] == [(0, i) for i in range(7, 20)]


@scenario("auto commit on close", "group", "group:auto_commit")
def closing_commits_what_was_read(bench: Bench) -> None:
    topic, group = bench.topic(), bench.name()
    fill(bench, topic, 1, 20)
    member = bench.member(group, topic, auto_commit=True)
    member.wait_records(20)
    member.close()
    assert bench.helper.group_offsets(group) == {topic: {0: 20}}


@scenario("reset to earliest", "group")
def group_without_commit_starts_at_the_earliest(bench: Bench) -> None:
    topic, group = bench.topic(), bench.name()
    fill(bench, topic, 1, 10)
    bench.helper.delete_records(topic, {0: 3})
    read = bench.member(group, topic, reset="earliest").wait_records(7)
    assert [record.offset for record in read] == list(range(3, 10))


@scenario("reset to latest", "group")
def group_without_commit_starts_at_the_latest(bench: Bench) -> None:
    topic, group = bench.topic(), bench.name()
    fill(bench, topic, 1, 10)
    member = bench.member(group, topic, reset="latest")
    member.wait_assignment(all_partitions(topic, 1))
    # When the member has looked up the end is its own affair; it must see some record after that.
    deadline = time.monotonic() + 20
    while not member.records and time.monotonic() < deadline:
        fill(bench, topic, 1, 1)
        with member.driver.changed:
            member.driver.changed.wait_for(lambda: member.records, 0.2)
    assert member.records
    assert min(record.offset for record in member.records) >= 10


@scenario("committed offset fell off the log", "group")
def commit_before_the_log_start_is_reset(bench: Bench) -> None:
    topic, group = bench.topic(), bench.name()
    fill(bench, topic, 1, 10)
    bench.helper.call("alter_group_offsets", group=group, offsets={topic: {"0": 2}})
    bench.helper.delete_records(topic, {0: 6})
    read = bench.member(group, topic, reset="earliest").wait_records(4)
    assert [record.offset for record in read] == list(range(6, 10))


@scenario("describe a group and its lag", "group", "admin:describe_group", "admin:group_offsets")
def group_and_lag_are_described(bench: Bench) -> None:
    topic, group = bench.topic(partitions=2), bench.name()
    fill(bench, topic, 2, 10)
    member = bench.member(group, topic)
    member.wait_assignment(all_partitions(topic, 2))
    member.wait_records(20)
    member.commit({topic: {0: 4, 1: 10}})
    described = bench.driver.call("describe_group", group=group)
    assert described["state"].lower() == "stable"
    assert len(described["members"]) == 1
    assert {tuple(pair) for pair in described["members"][0]["partitions"]} == all_partitions(
        topic, 2
    )
    if bench.client.reason_against(["admin:protocol"]) is None:
        assert described["protocol"].lower().startswith(("range", "roundrobin"))
    committed = bench.driver.group_offsets(group)[topic]
    ends = bench.driver.list_offsets(topic, {0: "latest", 1: "latest"})
    assert {index: ends[index] - committed[index] for index in ends} == {0: 6, 1: 0}
    member.close()
    empty = bench.driver.call("describe_group", group=group)
    assert empty["state"].lower() == "empty"
    assert empty["members"] == []
