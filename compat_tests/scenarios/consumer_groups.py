"""Consumer groups of Kafka 4 (KIP-848): the broker assigns, and members move one by one."""

from __future__ import annotations

from compat_tests.scenarios.groups import all_partitions, fill, wait_shared
from compat_tests.scenarios.records import check_sent
from compat_tests.scenarios.registry import Bench, scenario

NEW = {"protocol": "consumer"}


@scenario("assigned by the broker: a group reads everything", "group", "group:consumer")
def consumer_group_reads_all_partitions(bench: Bench) -> None:
    topic, group = bench.topic(partitions=4), bench.name()
    fill(bench, topic, 4, 25)
    member = bench.member(group, topic, **NEW)
    member.wait_assignment(all_partitions(topic, 4))
    read = member.wait_records(100)
    assert {(record.partition, record.offset) for record in read} == {
        (partition, offset) for partition in range(4) for offset in range(25)
    }


@scenario("assigned by the broker: a member joins and leaves", "group", "group:consumer")
def partitions_move_one_by_one(bench: Bench) -> None:
    topic, group = bench.topic(partitions=4), bench.name()
    first = bench.member(group, topic, **NEW)
    first.wait_assignment(all_partitions(topic, 4))
    second = bench.member(group, topic, **NEW)
    wait_shared([first, second], all_partitions(topic, 4), 2)
    fill(bench, topic, 4, 5)
    first.wait_records(10)
    second.wait_records(10)
    first.close()
    second.wait_assignment(all_partitions(topic, 4))


@scenario("assigned by the broker: commit and resume", "group", "group:consumer")
def next_consumer_resumes_at_the_commit(bench: Bench) -> None:
    topic, group = bench.topic(partitions=2), bench.name()
    fill(bench, topic, 2, 20)
    first = bench.member(group, topic, **NEW)
    first.wait_records(40)
    first.commit({topic: {0: 5, 1: 12}})
    first.close()
    second = bench.member(group, topic, **NEW)
    assert len(second.wait_records(23)) == 23


@scenario("assigned by the broker: static members", "group", "group:consumer", "group:away")
def static_consumer_comes_back_to_its_partitions(bench: Bench) -> None:
    topic, group = bench.topic(partitions=4), bench.name()
    first = bench.member(group, topic, instance_id="one", **NEW)
    first.wait_assignment(all_partitions(topic, 4))
    second = bench.member(group, topic, instance_id="two", **NEW)
    wait_shared([first, second], all_partitions(topic, 4), 2)
    before, changes = set(first.assignment), len(second.changes)
    first.close()
    again = bench.member(group, topic, instance_id="one", **NEW)
    again.wait_assignment(before)
    assert len(second.changes) == changes, second.changes


@scenario("a group migrates from the classic protocol and back", "group", "group:consumer")
def group_migrates_online(bench: Bench) -> None:
    topic, group = bench.topic(partitions=4), bench.name()
    classic = bench.member(group, topic, assignor="range")
    classic.wait_assignment(all_partitions(topic, 4))
    consumer = bench.member(group, topic, **NEW)
    wait_shared([classic, consumer], all_partitions(topic, 4), 2)
    for partition in range(4):
        check_sent(bench.helper.produce(topic, [{"partition": partition, "value": b"v"}]))
    classic.wait_records(2)
    consumer.wait_records(2)
    consumer.close()
    classic.wait_assignment(all_partitions(topic, 4))


@scenario("classic members: online migration, both ways", "group", "group:beside")
def classic_members_migrate_with_others(bench: Bench) -> None:
    """A classic group becomes a consumer group under its member, and a classic one again."""
    topic, group = bench.topic(partitions=4), bench.name()
    other = bench.driver_of(bench.other_client("Java"))
    classic = bench.member(group, topic)
    classic.wait_assignment(all_partitions(topic, 4))
    consumer = bench.member(group, topic, driver=other, **NEW)
    wait_shared([classic, consumer], all_partitions(topic, 4), 2)
    fill(bench, topic, 4, 1)
    classic.wait_records(2)
    consumer.wait_records(2)
    consumer.close()
    classic.wait_assignment(all_partitions(topic, 4))
