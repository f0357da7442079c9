"""Administration through the client's own admin calls."""

from __future__ import annotations

import pytest

from compat_tests.driver import ClientError
from compat_tests.scenarios.groups import fill
from compat_tests.scenarios.records import check_sent
from compat_tests.scenarios.registry import Bench, scenario, wait_until

#: What Apache's brokers answer until they have learnt of a topic that was created.
_NOT_YET = {
    *("UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER"),
    "_NOENT",  # librdkafka: no leader is known for any partition
}


def check_refused(bench: Bench, code: str, op: str, **arguments: object) -> None:
    """Assert that the client reports exactly this error of the broker."""
    with pytest.raises(ClientError) as raised:
        bench.driver.call(op, **arguments)
    assert raised.value.code == code, raised.value


def _ends(bench: Bench, topic: str) -> dict[int, int]:
    try:
        return bench.driver.list_offsets(topic, {0: "latest", 1: "latest"})
    except ClientError as error:
        if error.code not in _NOT_YET:
            raise
        return {0: -1}


@scenario("create, list, describe, delete a topic", "admin:topics")
def topic_lives_from_create_to_delete(bench: Bench) -> None:
    topic = bench.name()
    configs = {"retention.ms": "123456"}
    bench.driver.call("create_topic", topic=topic, partitions=3, configs=configs)
    bench.wait_partitions(topic, 3)
    assert topic in bench.driver.call("list_topics")["topics"]
    found = bench.driver.call("describe_topic", topic=topic)["partitions"]
    assert sorted(found) == ["0", "1", "2"]
    for partition in found.values():
        assert partition["replicas"] == partition["isr"] == [partition["leader"]]
    bench.driver.call("delete_topic", topic=topic)
    wait_until(lambda: topic not in bench.driver.call("list_topics")["topics"])


@scenario("delete and recreate at once", "admin:topics")
def topic_of_the_same_name_is_a_new_one(bench: Bench) -> None:
    topic = bench.name()
    bench.driver.call("create_topic", topic=topic, partitions=2)
    check_sent(bench.driver.produce(topic, [{"partition": 1, "value": b"old"}] * 5))
    bench.driver.call("delete_topic", topic=topic)
    bench.driver.call("create_topic", topic=topic, partitions=2)
    wait_until(lambda: set(_ends(bench, topic).values()) == {0})
    check_sent(bench.driver.produce(topic, [{"partition": 1, "value": b"new"}]))
    read = bench.driver.consume(topic, {1: "earliest"}, 1)
    assert [(record.offset, record.value) for record in read] == [(0, b"new")]


@scenario("create partitions", "admin:create_partitions")
def partitions_are_added(bench: Bench) -> None:
    topic = bench.topic(partitions=1)
    bench.driver.call("create_partitions", topic=topic, total=3)
    bench.wait_partitions(topic, 3)
    assert len(bench.driver.call("describe_topic", topic=topic)["partitions"]) == 3
    check_sent(bench.driver.produce(topic, [{"partition": 2, "value": b"v"}]))
    check_refused(bench, "INVALID_PARTITIONS", "create_partitions", topic=topic, total=2)


@scenario("describe and alter topic configs", "admin:configs")
def topic_configs_are_altered(bench: Bench) -> None:
    topic = bench.topic(configs={"cleanup.policy": "compact"})
    before = bench.driver.call("describe_configs", kind="topic", name=topic)["configs"]
    assert before["cleanup.policy"] == "compact"
    assert before["retention.ms"] == "604800000"
    assert before["max.message.bytes"] == "1048588"
    new = {"cleanup.policy": "compact", "retention.ms": "3600000", "segment.bytes": "2000000"}
    bench.driver.call("alter_configs", topic=topic, configs=new)

    def described() -> dict[str, str]:
        return bench.driver.call("describe_configs", kind="topic", name=topic)["configs"]

    if bench.against_oracle:
        # Each broker may be asked, and any may be the last to hear of it.
        wait_until(lambda: all(described() != before for _ in range(10)))
    after = described()
    assert {name: after[name] for name in new} == new
    assert {name for name in before if before[name] != after[name]} == {
        "retention.ms",
        "segment.bytes",
    }


@scenario("altered limit takes effect at once", "admin:configs")
def altered_limit_takes_effect(bench: Bench) -> None:
    topic = bench.topic()
    large = [{"partition": 0, "value": b"x" * 5000}]
    check_sent(bench.driver.produce(topic, large))
    bench.driver.call("alter_configs", topic=topic, configs={"max.message.bytes": "2000"})
    if bench.against_oracle:
        wait_until(lambda: bench.driver.produce(topic, large)[0].error is not None)
    (result,) = bench.driver.produce(topic, large)
    assert result.error == "MESSAGE_TOO_LARGE", result


@scenario("describe broker configs", "admin:configs")
def broker_configs_are_described(bench: Bench) -> None:
    broker = bench.driver.call("describe_cluster")["brokers"][0]["id"]
    found = bench.driver.call("describe_configs", kind="broker", name=str(broker))["configs"]
    assert found["log.segment.bytes"] == "1073741824"
    assert found["message.max.bytes"] == "1048588"
    assert {"num.partitions", "log.retention.hours", "offsets.topic.num.partitions"} <= set(found)


@scenario("list, describe, delete groups", "admin:list_groups", "admin:delete_group")
def empty_group_is_deleted(bench: Bench) -> None:
    topic, group = bench.topic(), bench.name()
    bench.helper.call("alter_group_offsets", group=group, offsets={topic: {"0": 0}})
    assert group in bench.driver.call("list_groups")["groups"]
    assert bench.driver.call("describe_group", group=group)["state"].lower() == "empty"
    bench.driver.call("delete_group", group=group)
    assert group not in bench.driver.call("list_groups")["groups"]


@scenario("alter offsets of an empty group", "admin:alter_group_offsets")
def offsets_of_an_empty_group_are_altered(bench: Bench) -> None:
    topic, group = bench.topic(partitions=2), bench.name()
    fill(bench, topic, 2, 10)
    bench.driver.call("alter_group_offsets", group=group, offsets={topic: {"0": 3, "1": 8}})
    assert bench.helper.group_offsets(group) == {topic: {0: 3, 1: 8}}


@scenario("delete offsets of a group", "admin:delete_group_offsets")
def offsets_of_a_group_are_deleted(bench: Bench) -> None:
    topic, group = bench.topic(partitions=2), bench.name()
    bench.helper.call("alter_group_offsets", group=group, offsets={topic: {"0": 3, "1": 8}})
    bench.driver.call("delete_group_offsets", group=group, topic=topic, partitions=[0])
    assert bench.helper.group_offsets(group) == {topic: {1: 8}}


@scenario("delete records", "admin:delete_records")
def records_are_deleted(bench: Bench) -> None:
    topic = bench.topic(partitions=2)
    fill(bench, topic, 2, 10)
    assert bench.driver.delete_records(topic, {0: 4}) == {0: 4}
    assert bench.driver.list_offsets(topic, {0: "earliest", 1: "earliest"}) == {0: 4, 1: 0}
    read = bench.driver.consume(topic, {0: "earliest"}, 6)
    assert [record.offset for record in read] == list(range(4, 10))


@scenario("describe the cluster", "admin:describe_cluster")
def cluster_is_described(bench: Bench) -> None:
    found = bench.driver.call("describe_cluster")
    addresses = {f"{broker['host']}:{broker['port']}" for broker in found["brokers"]}
    assert addresses == set(bench.bootstrap.split(","))
    assert found["controller"] in {broker["id"] for broker in found["brokers"]}
    if bench.client.reason_against(["admin:cluster_id"]) is None:
        assert found["cluster_id"] == bench.helper.call("describe_cluster")["cluster_id"]
