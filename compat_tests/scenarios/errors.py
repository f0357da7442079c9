"""What the broker refuses, and by which name the client tells it."""

from __future__ import annotations

from compat_tests.driver import ClientError
from compat_tests.scenarios.admin import check_refused
from compat_tests.scenarios.groups import all_partitions
from compat_tests.scenarios.records import LARGEST_VALUE
from compat_tests.scenarios.registry import Bench, scenario


@scenario("error: record too large", "large_request")
def record_above_the_limit_is_refused(bench: Bench) -> None:
    topic = bench.topic()
    sent = [{"partition": 0, "value": b"x" * (LARGEST_VALUE + 1)}]
    (result,) = bench.driver.produce(topic, sent, max_request_bytes=2_000_000)
    assert result.error == "MESSAGE_TOO_LARGE", result
    assert bench.helper.list_offsets(topic, {0: "latest"}) == {0: 0}


@scenario("error: no key in a compacted topic", "invalid_record")
def record_without_key_is_refused_by_a_compacted_topic(bench: Bench) -> None:
    topic = bench.topic(configs={"cleanup.policy": "compact"})
    (result,) = bench.driver.produce(topic, [{"partition": 0, "value": b"v"}])
    assert result.error == "INVALID_RECORD", result
    assert bench.helper.list_offsets(topic, {0: "latest"}) == {0: 0}


@scenario("error: describe an unknown topic", "admin:topics", "admin:describe_unknown")
def unknown_topic_is_not_described(bench: Bench) -> None:
    check_refused(bench, "UNKNOWN_TOPIC_OR_PARTITION", "describe_topic", topic=bench.name())


@scenario("error: delete an unknown topic", "admin:topics")
def unknown_topic_is_not_deleted(bench: Bench) -> None:
    check_refused(bench, "UNKNOWN_TOPIC_OR_PARTITION", "delete_topic", topic=bench.name())


@scenario("error: topic exists, bad name, bad replication factor", "admin:topics")
def impossible_topics_are_refused(bench: Bench) -> None:
    check_refused(bench, "TOPIC_ALREADY_EXISTS", "create_topic", topic=bench.topic())
    check_refused(bench, "INVALID_TOPIC_EXCEPTION", "create_topic", topic="not a name")
    check_refused(
        bench,
        "INVALID_REPLICATION_FACTOR",
        "create_topic",
        topic=bench.name(),
        replication_factor=1 + len(bench.bootstrap.split(",")),
    )


@scenario("error: bad config", "admin:configs")
def bad_configs_are_refused(bench: Bench) -> None:
    bad = {"retention.ms": "soon"}
    check_refused(bench, "INVALID_CONFIG", "create_topic", topic=bench.name(), configs=bad)
    unknown = {"no.such.setting": "1"}
    check_refused(bench, "INVALID_CONFIG", "create_topic", topic=bench.name(), configs=unknown)
    topic = bench.topic()
    check_refused(bench, "INVALID_CONFIG", "alter_configs", topic=topic, configs=bad)
    check_refused(bench, "INVALID_CONFIG", "alter_configs", topic=topic, configs=unknown)


@scenario("error: unknown group, group in use", "group", "admin:delete_group")
def group_in_use_is_not_deleted(bench: Bench) -> None:
    check_refused(bench, "GROUP_ID_NOT_FOUND", "delete_group", group=bench.name())
    topic, group = bench.topic(), bench.name()
    member = bench.member(group, topic)
    member.wait_assignment(all_partitions(topic, 1))
    check_refused(bench, "NON_EMPTY_GROUP", "delete_group", group=group)


@scenario("unknown group is dead", "admin:describe_group")
def unknown_group_is_dead(bench: Bench) -> None:
    # DescribeGroups tells it as a state up to v5 and as an error from v6 on.
    try:
        told = bench.driver.call("describe_group", group=bench.name())["state"]
    except ClientError as error:
        told = error.code
    assert told.upper() in {"DEAD", "GROUP_ID_NOT_FOUND"}


@scenario("error: delete records past the end", "admin:delete_records")
def records_past_the_end_are_not_deleted(bench: Bench) -> None:
    topic = bench.topic()
    check_refused(bench, "OFFSET_OUT_OF_RANGE", "delete_records", topic=topic, offsets={"0": 5})
