"""Share groups on a whole broker, by request: members, sessions, locks."""

import json
import time

import pytest

from kafkalite.cli.main import run
from kafkalite.testing import Broker
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestTopic,
)
from tests.share.probe import Probe, acquired, offsets_in

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
EARLIEST = {"share_auto_offset_reset": "earliest"}
SETTINGS = {
    "group.share.min.record.lock.duration.ms": 1_000,
    "group.share.record.lock.duration.ms": 30_000,
    "group.share.assignment.interval.ms": 0,
}


@pytest.fixture(scope="module")
def broker():
    with Broker(config=SETTINGS) as running:
        yield running


@pytest.fixture
def probes(broker, request):
    """Make members of a group of the test's own."""
    made = []

    def make(member="M1", group=None):
        probe = Probe(broker.port, group=group or request.node.name[-60:], member=member)
        made.append(probe)
        return probe

    yield make
    for probe in made:
        probe.client.close()


@pytest.fixture
def topic(request):
    return request.node.name.replace("[", "-").replace("]", "")[-60:]


def join(probe, topic, *, timeout_s=10):
    """Be a member until all partitions of the topic are assigned to the group."""
    probe.find_coordinator(probe.group, key_type=0)
    epoch = 0
    deadline = time.monotonic() + timeout_s
    while True:
        response = probe.heartbeat(epoch, [topic])
        assert not response.error_code, response
        epoch = response.member_epoch
        if response.assignment.topic_partitions:
            return epoch
        assert time.monotonic() < deadline, response
        time.sleep(0.02)


@pytest.fixture
def ready(probes, topic):
    """A member of a group that has a topic with 20 records in four batches; and the topic's id."""
    probe = probes()
    topic_id = probe.create_topic(topic)
    for _ in range(4):
        probe.produce(topic, 5)
    probe.set_group(**EARLIEST)
    join(probe, topic)
    return probe, topic_id


def code_of(response, partition=0):
    """Return the acknowledge error of a partition."""
    for each in response.responses:
        for data in each.partitions:
            if data.partition_index == partition:
                is_fetch = hasattr(data, "acknowledge_error_code")
                return ErrorCode(data.acknowledge_error_code if is_fetch else data.error_code)
    raise AssertionError(response)


class TestMembers:
    def test_first_join_has_nothing_and_a_later_heartbeat_has_all(self, probes, topic):
        """Rules 384 and 387."""
        probe = probes()
        probe.find_coordinator(probe.group, key_type=0)
        topic_id = probe.create_topic(topic, 3)
        first = probe.heartbeat(0, [topic])
        assert (first.member_epoch, first.assignment.topic_partitions) == (2, [])
        assert first.heartbeat_interval_ms == 5_000
        epoch = 2
        while epoch == 2:
            second = probe.heartbeat(2)
            epoch = second.member_epoch
        (assigned,) = second.assignment.topic_partitions
        assert (epoch, assigned.topic_id, assigned.partitions) == (3, topic_id, [0, 1, 2])
        assert probe.heartbeat(3).assignment is None
        assert probe.heartbeat(2).member_epoch == 3
        assert probe.heartbeat(1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
        assert probe.heartbeat(4).error_code == ErrorCode.FENCED_MEMBER_EPOCH

    @pytest.mark.parametrize(
        ("member", "epoch", "topics", "code"),
        [
            ("", 0, ["t"], ErrorCode.INVALID_REQUEST),
            ("M", 0, [], ErrorCode.INVALID_REQUEST),
            ("M", 0, None, ErrorCode.INVALID_REQUEST),
            ("M", -2, None, ErrorCode.INVALID_REQUEST),
            ("M", 5, None, ErrorCode.GROUP_ID_NOT_FOUND),
            ("M", -1, None, ErrorCode.GROUP_ID_NOT_FOUND),
        ],
    )
    def test_what_is_refused(self, probes, member, epoch, topics, code):
        """Rules 381 and 382."""
        probe = probes(member, group="nobody")
        probe.find_coordinator("nobody", key_type=0)
        assert probe.heartbeat(epoch, topics).error_code == code


class TestFetch:
    def test_records_are_acquired_acknowledged_and_released(self, ready):
        """As Apache Kafka 4.3.1 answers the same requests (rules 400, 410 and 412)."""
        probe, topic_id = ready
        first = probe.fetch(topic_id)
        assert acquired(first) == [(0, 19, 1)]
        assert first.acquisition_lock_timeout_ms == 30_000
        assert offsets_in(first) == [*range(20)]
        second = probe.fetch(topic_id, (0, 4, ACCEPT), max_wait_ms=0)
        assert (acquired(second), code_of(second)) == ([], ErrorCode.NONE)
        third = probe.fetch(topic_id, (5, 9, RELEASE), (10, 10, REJECT), max_records=3)
        assert (acquired(third), code_of(third)) == ([(5, 9, 2)], ErrorCode.NONE)
        assert offsets_in(third) == [*range(5, 10)]
        described = probe.describe_offsets()
        (partition,) = described.groups[0].topics[0].partitions
        assert (partition.start_offset, partition.lag) == (5, 14)

    def test_what_cannot_be_acknowledged(self, ready):
        """Rules 400 and 411."""
        probe, topic_id = ready
        probe.fetch(topic_id)
        probe.acknowledge(topic_id, (0, 4, ACCEPT), (10, 10, REJECT))
        for acks, code in [
            ([(0, 4, ACCEPT)], ErrorCode.NONE),
            ([(10, 10, ACCEPT)], ErrorCode.INVALID_RECORD_STATE),
            ([(100, 110, ACCEPT)], ErrorCode.INVALID_REQUEST),
            ([(11, 11, 7)], ErrorCode.INVALID_REQUEST),
            ([(11, 11, RENEW)], ErrorCode.INVALID_REQUEST),
            ([(12, 11, ACCEPT)], ErrorCode.INVALID_REQUEST),
            ([(13, 13, ACCEPT), (12, 12, ACCEPT)], ErrorCode.INVALID_REQUEST),
            ([(11, 12, [])], ErrorCode.INVALID_REQUEST),
            ([(11, 12, [ACCEPT] * 3)], ErrorCode.INVALID_REQUEST),
        ]:
            assert code_of(probe.acknowledge(topic_id, *acks)) is code, acks
        assert code_of(probe.acknowledge(topic_id, (11, 14, RENEW), renews=True)) is ErrorCode.NONE
        v1 = probe.acknowledge(topic_id, (11, 11, RENEW), version=1)
        assert code_of(v1) is ErrorCode.INVALID_REQUEST
        other = probe.acknowledge(topic_id, (0, 0, ACCEPT), partition=5)
        assert code_of(other, 5) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_limits_of_a_request(self, ready):
        """Rule 399."""
        probe, topic_id = ready
        assert acquired(probe.fetch(topic_id, max_records=3)) == [(0, 4, 1)]
        exact = probe.fetch(topic_id, max_records=3, share_acquire_mode=1)
        assert acquired(exact) == [(5, 7, 1)]
        assert offsets_in(exact) == [5, 6, 7, 8, 9]
        rest = probe.fetch(topic_id, batch_size=5)
        assert acquired(rest) == [(8, 9, 1), (10, 14, 1), (15, 19, 1)]

    def test_fetch_waits_for_records_and_for_what_is_released(self, ready, probes, topic):
        """Rule 409."""
        probe, topic_id = ready
        probe.fetch(topic_id)
        other = probes("M2")
        assert acquired(other.fetch(topic_id, max_wait_ms=0)) is not None
        started = time.monotonic()
        assert acquired(other.fetch(topic_id, max_wait_ms=200)) in (None, [])
        assert time.monotonic() - started >= 0.19
        probe.acknowledge(topic_id, (0, 19, RELEASE))
        assert acquired(other.fetch(topic_id, max_wait_ms=30_000)) == [(0, 19, 2)]
        probe.produce(topic, 2)
        assert acquired(other.fetch(topic_id, max_wait_ms=30_000)) == [(20, 21, 1)]

    def test_lock_ends(self, ready, probes):
        """Rule 404."""
        probe, topic_id = ready
        probe.set_group(share_record_lock_duration_ms=1_000)
        first = probe.fetch(topic_id)
        assert first.acquisition_lock_timeout_ms == 1_000
        other = probes("M2")
        again = other.fetch(topic_id, max_wait_ms=30_000)
        assert acquired(again) == [(0, 19, 2)]
        assert code_of(probe.acknowledge(topic_id, (0, 19, ACCEPT))) is (
            ErrorCode.INVALID_RECORD_STATE
        )

    def test_read_committed_waits_for_the_end_of_a_transaction(self, ready):
        probe, topic_id = ready
        probe.set_group(share_isolation_level="read_committed")
        assert acquired(probe.fetch(topic_id)) == [(0, 19, 1)]

    @pytest.mark.parametrize(
        "options",
        [{"max_records": 0}, {"max_bytes": 0}],
        ids=["no-records", "no-bytes"],
    )
    def test_limits_of_nothing_wait_for_nothing(self, ready, options):
        """Rule 409."""
        probe, topic_id = ready
        started = time.monotonic()
        assert acquired(probe.fetch(topic_id, max_wait_ms=30_000, **options)) is None
        assert time.monotonic() - started < 20


class TestSessions:
    """Rules 406 and 407."""

    def test_epochs_are_counted(self, ready, probes):
        probe, topic_id = ready
        assert probe.acknowledge(topic_id, epoch=0).error_code == (
            ErrorCode.INVALID_SHARE_SESSION_EPOCH
        )
        assert probe.fetch(topic_id, epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        assert probe.fetch(topic_id, (0, 1, ACCEPT)).error_code == ErrorCode.INVALID_REQUEST
        probe.fetch(topic_id)
        probe.acknowledge(topic_id, (0, 4, ACCEPT))
        assert probe.fetch(topic_id, epoch=1).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert probe.acknowledge(topic_id, epoch=9).error_code == (
            ErrorCode.INVALID_SHARE_SESSION_EPOCH
        )
        assert probe.fetch(epoch=2).error_code == ErrorCode.NONE
        assert probes("M2").acknowledge(topic_id, epoch=-1).error_code == (
            ErrorCode.SHARE_SESSION_NOT_FOUND
        )

    def test_end_of_the_session_gives_everything_back(self, ready, probes):
        probe, topic_id = ready
        probe.fetch(topic_id)
        other = probes("M2")
        other.fetch(topic_id, max_wait_ms=0)
        ended = probe.acknowledge(topic_id, (0, 4, ACCEPT), epoch=-1)
        assert code_of(ended) is ErrorCode.NONE
        assert acquired(other.fetch(topic_id)) == [(5, 19, 2)]
        assert probe.fetch(epoch=2).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND

    def test_fetch_may_end_the_session_too(self, ready, probes):
        probe, topic_id = ready
        probe.fetch(topic_id)
        ended = probe.fetch(topic_id, (0, 19, ACCEPT), epoch=-1)
        assert (acquired(ended), code_of(ended)) == ([], ErrorCode.NONE)
        assert acquired(probes("M2").fetch(topic_id, max_wait_ms=0)) in (None, [])

    def test_end_of_the_connection_gives_everything_back(self, ready, probes):
        probe, topic_id = ready
        probe.fetch(topic_id)
        other = probes("M2")
        other.fetch(topic_id, max_wait_ms=0)
        probe.close()
        assert acquired(other.fetch(topic_id, max_wait_ms=30_000)) == [(0, 19, 2)]

    def test_after_the_last_connection_everything_is_loaded_anew(self, ready, probes):
        probe, topic_id = ready
        probe.fetch(topic_id)
        probe.acknowledge(topic_id, (0, 9, ACCEPT))
        probe.close()
        other = probes("M2")
        found = acquired(other.fetch(topic_id, max_wait_ms=30_000))
        assert found in ([(10, 19, 1)], [(10, 19, 2)])

    def test_forgotten_partitions_are_not_fetched(self, ready):
        probe, topic_id = ready
        probe.fetch(topic_id, max_records=5)
        probe.forget(topic_id, 0)
        assert acquired(probe.fetch(max_wait_ms=0)) is None
        assert acquired(probe.fetch(topic_id)) == [(5, 19, 1)]

    @pytest.mark.parametrize("member", ["", "x" * 37])
    def test_member_id_must_be_one(self, probes, member):
        """Rule 405."""
        assert probes(member).fetch().error_code == ErrorCode.INVALID_REQUEST

    def test_renewal_acquires_nothing(self, ready):
        """Rules 405 and 412."""
        probe, topic_id = ready
        probe.fetch(topic_id, max_records=5)
        renewal = {"is_renew_ack": True, "max_records": 0, "max_bytes": 0}
        for name in ("max_wait_ms", "min_bytes"):
            options = {**renewal, "max_wait_ms": 0, "min_bytes": 0, name: 1}
            refused = probe.fetch(topic_id, (0, 4, RENEW), **options)
            assert refused.error_code == ErrorCode.INVALID_REQUEST
        renewed = probe.fetch(topic_id, (0, 4, RENEW), max_wait_ms=0, min_bytes=0, **renewal)
        assert (acquired(renewed), code_of(renewed)) == ([], ErrorCode.NONE)


class TestOperators:
    def test_offsets_are_altered_and_deleted_without_members(self, ready, topic):
        """Rules 393 and 394."""
        probe, _ = ready
        assert probe.alter_offsets(topic, {0: 3}).error_code == ErrorCode.NON_EMPTY_GROUP
        probe.heartbeat(-1)
        (altered,) = probe.alter_offsets(topic, {0: 3, 9: 1}).responses
        assert [entry.error_code for entry in altered.partitions] == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        (described,) = probe.describe_offsets().groups[0].topics[0].partitions
        assert (described.start_offset, described.lag) == (3, 17)
        (unknown,) = probe.alter_offsets("unknown", {0: 3}).responses
        assert unknown.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        deleted = {each.topic_name: each for each in probe.delete_offsets(topic, "unknown")}
        assert deleted[topic].error_code == ErrorCode.NONE
        assert deleted["unknown"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert probe.describe_offsets().groups[0].topics == []
        (again,) = probe.delete_offsets(topic)
        assert again.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_unknown_topics_and_groups_are_described_as_empty(self, ready, probes):
        """Rule 392."""
        probe, _ = ready
        wanted = DescribeShareGroupOffsetsRequestTopic(topic_name="unknown", partitions=[4])
        (group,) = probe.describe_offsets([wanted]).groups
        (entry,) = group.topics[0].partitions
        assert (group.error_code, entry.start_offset, entry.lag) == (0, -1, -1)
        nobody = probes(group="nobody-at-all")
        nobody.find_coordinator(nobody.group, key_type=0)
        (none,) = nobody.describe_offsets().groups
        assert (none.error_code, none.topics) == (ErrorCode.NONE, [])

    def test_groups_are_waited_for_and_deleted_with_their_state(self, ready, broker, topic):
        """Rule 394."""
        probe, topic_id = ready
        broker.wait_stable(probe.group)
        broker.wait_assigned(probe.group)
        with pytest.raises(TimeoutError, match="has not finished"):
            broker.wait_acknowledged(probe.group, topic, timeout_s=0.05)
        probe.fetch(topic_id)
        probe.acknowledge(topic_id, (0, 19, ACCEPT))
        broker.wait_acknowledged(probe.group, topic)
        assert probe.delete_group() == ErrorCode.NON_EMPTY_GROUP
        probe.heartbeat(-1)
        assert probe.delete_group() == ErrorCode.NONE
        assert probe.delete_group() == ErrorCode.GROUP_ID_NOT_FOUND
        assert probe.describe_offsets().groups[0].topics == []

    def test_command_line_shows_and_moves_a_group(self, ready, broker, topic, capsys):
        probe, topic_id = ready
        probe.fetch(topic_id)
        probe.acknowledge(topic_id, (0, 4, ACCEPT), (10, 10, REJECT))
        probe.acknowledge(topic_id, (5, 5, ACCEPT))

        def kafkalite(*words):
            capsys.readouterr()
            assert run([*words, "--bootstrap-server", broker.bootstrap]) == 0
            return capsys.readouterr().out

        shown = kafkalite("groups", "describe", probe.group)
        assert f"{probe.group}: Stable, share group in epoch 3, 1 member" in shown
        assert f"  M1 at 127.0.0.1: {topic}-0" in shown
        assert shown.splitlines()[-1].split() == [topic, "0", "5", "13"]
        as_json = json.loads(kafkalite("groups", "describe", "--json", probe.group))
        assert as_json["offsets"] == [{"topic": topic, "partition": 0, "start": 5, "lag": 13}]
        assert as_json["members"][0]["partitions"] == [f"{topic}-0"]
        probe.heartbeat(-1)
        moved = kafkalite("groups", "reset-offsets", probe.group, "--to", "beginning")
        assert moved.splitlines()[-1].split() == [topic, "0", "5", "0"]
        (described,) = probe.describe_offsets().groups[0].topics[0].partitions
        assert (described.start_offset, described.lag) == (0, 20)


def test_what_is_acknowledged_outlives_the_broker(tmp_path):
    with Broker(config=SETTINGS, data_dir=tmp_path) as first:
        probe = Probe(first.port, group="g")
        topic_id = probe.create_topic("t")
        probe.produce("t", 20)
        probe.set_group(**EARLIEST)
        join(probe, "t")
        probe.fetch(topic_id)
        probe.acknowledge(topic_id, (0, 4, ACCEPT), (5, 9, RELEASE), (12, 12, REJECT))
        probe.client.close()
    with Broker(config=SETTINGS, data_dir=tmp_path) as second:
        probe = Probe(second.port, group="g", member="M2")
        join(probe, "t")
        found = acquired(probe.fetch(topic_id))
        assert [(first, last) for first, last, _ in found] in (
            [(5, 9), (10, 11), (13, 19)],
            [(5, 9), (10, 10), (11, 11), (13, 19)],
            [(5, 11), (13, 19)],
        )
        assert found[0][2] == 2
        probe.client.close()
