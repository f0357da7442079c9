"""Copying what others lead, from real leaders whose answers may be spoilt on the way."""

import logging
from contextlib import asynccontextmanager

import pytest
import trio

from kafkalite.isr import fetcher
from kafkalite.meta.changes import PartitionChanged, TopicDeleted
from kafkalite.meta.image import Image
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.fetch import FetchRequest
from tests.isr.replication_kit import TOPIC_ID, Cluster

SOON_S = 0.05
"""A few round trips of a cluster that needs 1 ms for each request."""


@asynccontextmanager
async def copying(cluster, *broker_ids):
    async with trio.open_nursery() as nursery:
        for broker_id in broker_ids or cluster.nodes:
            await nursery.start(cluster.nodes[broker_id].fetchers.run)
        yield nursery
        nursery.cancel_scope.cancel()


def lies_as_in(cluster, one, other, index=0):
    return cluster.nodes[one].contents(index) == cluster.nodes[other].contents(index)


async def test_follower_becomes_the_leader_byte_by_byte(autojump_clock):
    cluster = Cluster()
    leader, follower = cluster.nodes.values()
    leader.append(b"before")
    async with copying(cluster):
        await trio.sleep(SOON_S)
        leader.append(b"after", b"that")
        assert follower.replica().log_end_offset == 1
        await trio.sleep(SOON_S)
        assert lies_as_in(cluster, 1, 2)
        assert leader.replica().high_watermark == 3
        await trio.sleep(1)
        assert follower.replica().high_watermark == 3
    assert follower.replica().log.epochs.epoch_at(0) == leader.replica().log.epochs.epoch_at(0)


async def test_lag_and_fetches_are_counted(autojump_clock):
    cluster = Cluster()
    leader, follower = cluster.nodes.values()
    async with copying(cluster):
        leader.append(b"x", b"y")
        await trio.sleep(SOON_S)
        assert dict(follower.fetchers.lags()) == {follower.replica().topic_partition: 0}
        (rate,) = follower.fetchers.fetch_rates()
        assert rate > 0
        assert list(leader.fetchers.lags()) == []
        assert leader.fetchers.fetch_rates() == []


@pytest.mark.parametrize("brokers", [2, 3])
async def test_followers_hear_of_the_high_watermark_soon_and_once(brokers, autojump_clock):
    """KIP-1166; a consumer that reads from a follower waits for it."""
    cluster = Cluster(brokers, partitions=3)
    async with copying(cluster):
        await trio.sleep(SOON_S)
        cluster.asked.clear()
        cluster.nodes[1].append(b"x")
        await trio.sleep(0.1)
        assert [node.replica().high_watermark for node in cluster.nodes.values()] == [1] * brokers
        followers = brokers - 1
        # To copy it, to say so and to wait for the news, and with nothing to wait for any more.
        assert cluster.asked[1, "FETCH"] == 2 * followers
        await trio.sleep(0.3)
        assert cluster.asked[1, "FETCH"] == 2 * followers


async def test_under_load_no_fetch_is_for_the_high_watermark_alone(autojump_clock):
    """Each append costs one Fetch of each follower, as it did before they were told."""
    cluster = Cluster(3)
    async with copying(cluster):
        await trio.sleep(SOON_S)
        cluster.asked.clear()
        for _ in range(100):
            cluster.nodes[1].append(b"x")
            await trio.sleep(0.01)
        assert cluster.asked[1, "FETCH"] <= 2 * 102


async def test_one_fetch_asks_for_all_that_a_broker_leads_and_says_who_asks(autojump_clock):
    cluster = Cluster(partitions=5)
    cluster.lead(2, index=3)
    async with copying(cluster, 2):
        await trio.sleep(SOON_S)
    (request,) = [one for one in cluster.requests if isinstance(one, FetchRequest)]
    assert [p.partition for topic in request.topics for p in topic.partitions] == [0, 1, 2, 4]
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (2, 2)
    assert request.max_wait_ms == 500
    assert request.max_bytes == 10_485_760


def said(cluster):
    """What each Fetch named: partitions, and those that left its session."""
    return [
        (
            sorted(p.partition for topic in one.topics for p in topic.partitions),
            [index for topic in one.forgotten_topics_data for index in topic.partitions],
        )
        for one in cluster.requests
        if isinstance(one, FetchRequest)
    ]


async def test_a_fetch_names_only_partitions_with_something_new(autojump_clock):
    cluster = Cluster(partitions=3)
    async with copying(cluster, 2):
        await trio.sleep(SOON_S)
        cluster.nodes[1].append(b"x", index=1)
        await trio.sleep(2)
        assert lies_as_in(cluster, 1, 2, index=1)
        assert cluster.nodes[2].replica(1).high_watermark == 1
        first, *rest = said(cluster)
        assert first == ([0, 1, 2], [])
        assert rest[:2] == [([1], []), ([1], [])]  # its end, then its high watermark
        assert {named for one in rest[2:] for named in map(tuple, one)} == {()}


async def test_a_partition_that_is_led_elsewhere_leaves_the_session(autojump_clock):
    cluster = Cluster(partitions=2)
    async with copying(cluster):
        await trio.sleep(1)
        cluster.requests.clear()
        cluster.lead(2, index=1)
        await trio.sleep(1)
        assert said(cluster)[0] == ([], [1])
        cluster.nodes[2].append(b"x", index=1)
        cluster.nodes[1].append(b"y", index=0)
        await trio.sleep(1)
        assert lies_as_in(cluster, 1, 2, index=0)
        assert lies_as_in(cluster, 1, 2, index=1)


async def test_a_session_that_the_leader_lost_is_opened_again(autojump_clock, caplog):
    cluster = Cluster(partitions=2)
    async with copying(cluster, 2):
        await trio.sleep(1)
        (session,) = cluster.nodes[1].sessions._sessions
        cluster.nodes[1].sessions.forget(session)
        cluster.requests.clear()
        await trio.sleep(1)
        cluster.nodes[1].append(b"x", index=1)
        await trio.sleep(SOON_S)
        assert lies_as_in(cluster, 1, 2, index=1)
        assert ([0, 1], []) in said(cluster)
    assert caplog.text == ""


async def test_a_log_start_that_moved_by_itself_is_told_within_a_moment(autojump_clock):
    """Retention works at the follower as well; DeleteRecords waits for what it tells."""
    cluster = Cluster()
    leader, follower = cluster.nodes.values()
    async with copying(cluster, 2):
        leader.append(b"a", b"b")
        await trio.sleep(1)
        follower.replica().delete_records_before(2)
        cluster.requests.clear()
        await trio.sleep(1.2)
        starts = [
            p.log_start_offset
            for one in cluster.requests
            for topic in one.topics
            for p in topic.partitions
        ]
        assert starts == [2]


async def test_idle_follower_asks_as_seldom_as_it_may(autojump_clock):
    cluster = Cluster(replica_fetch_wait_max_ms=500)
    async with copying(cluster, 2):
        await trio.sleep(5)
    assert cluster.asked[1, "FETCH"] in (10, 11)


async def test_partition_that_is_new_here_does_not_wait_for_those_that_are_idle(autojump_clock):
    cluster = Cluster(partitions=2)
    cluster.lead(2, index=1)
    async with copying(cluster):
        await trio.sleep(0.1)
        cluster.lead(1, index=1)
        cluster.nodes[1].append(b"x", index=1)
        await trio.sleep(SOON_S)
        assert lies_as_in(cluster, 1, 2, index=1)


@pytest.mark.parametrize("leader_wrote", [True, False])
async def test_diverged_log_is_cut_and_copied(leader_wrote, autojump_clock):
    """Rule 171: what the old leader alone had goes, what both have stays."""
    cluster = Cluster()
    first, second = cluster.nodes.values()
    async with copying(cluster):
        first.append(b"common")
        await trio.sleep(SOON_S)
    cluster.unreachable = {1, 2}
    first.append(b"mine", b"alone")
    cluster.lead(2)
    if leader_wrote:
        second.append(b"other")
    cluster.unreachable = set()
    async with copying(cluster):
        await trio.sleep(SOON_S)
        assert lies_as_in(cluster, 1, 2)
        second.append(b"more")
        await trio.sleep(SOON_S)
    assert lies_as_in(cluster, 1, 2)
    assert second.replica().high_watermark == second.replica().log_end_offset


async def test_leader_that_was_elected_uncleanly_cuts_its_followers(caplog, autojump_clock):
    """Rule 172: it has nothing, not even the epochs to compare."""
    cluster = Cluster()
    first, second = cluster.nodes.values()
    first.append(b"never", b"copied")
    cluster.lead(2, isr=(2,))
    async with copying(cluster):
        await trio.sleep(SOON_S)
        assert first.replica().log_end_offset == 0
        second.append(b"x")
        await trio.sleep(SOON_S)
    assert lies_as_in(cluster, 1, 2)


async def test_follower_that_missed_what_was_deleted_begins_anew(caplog, autojump_clock):
    """Rule 172."""
    cluster = Cluster()
    leader, follower = cluster.nodes.values()
    async with copying(cluster):
        leader.append(b"a")
        await trio.sleep(SOON_S)
    cluster.lead(1, isr=(1,))
    leader.append(b"b", b"c")
    leader.append(b"d")
    leader.replica().delete_records_before(3)
    async with copying(cluster):
        await trio.sleep(SOON_S)
    assert follower.replica().log_start_offset == 3
    assert lies_as_in(cluster, 1, 2)
    assert "begins anew at offset 3" in caplog.text
    assert cluster.asked[1, "LIST_OFFSETS"] == cluster.asked[1, "OFFSET_FOR_LEADER_EPOCH"] == 1


async def test_bounds_that_nobody_tells_are_asked_for_again(autojump_clock):
    cluster = Cluster()
    leader, follower = cluster.nodes.values()
    cluster.lead(1, isr=(1,))
    leader.append(b"a")
    leader.replica().delete_records_before(1)
    refusals = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_SERVER_ERROR]

    def spoil(broker_id, request, response):
        if not isinstance(request, FetchRequest) and refusals:
            response.topics[0].partitions[0].error_code = refusals.pop()

    cluster.spoil = spoil
    async with copying(cluster):
        await trio.sleep(SOON_S * 4)
    assert refusals == []
    assert follower.replica().log_end_offset == 1


async def test_log_start_follows_that_of_the_leader(autojump_clock):
    """Rule 170."""
    cluster = Cluster()
    leader, follower = cluster.nodes.values()
    async with copying(cluster):
        leader.append(b"a", b"b")
        await trio.sleep(1)
        leader.replica().delete_records_before(2)
        await trio.sleep(1)
    assert follower.replica().log_start_offset == 2


async def test_broker_that_cannot_be_reached_is_asked_less_and_less_often(caplog, autojump_clock):
    cluster = Cluster(replica_fetch_backoff_ms=1_000)
    cluster.unreachable = {1}
    cluster.nodes[1].append(b"x")
    async with copying(cluster):
        await trio.sleep(10)
        assert 10 <= cluster.asked[1, "FETCH"] <= 14
        cluster.unreachable = set()
        await trio.sleep(1.1)
        assert lies_as_in(cluster, 1, 2)
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "broker 1 cannot be followed" in caplog.text


async def test_error_of_a_whole_fetch_is_no_answer(autojump_clock):
    cluster = Cluster()
    cluster.nodes[1].append(b"x")
    left = [ErrorCode.INVALID_REQUEST, ErrorCode.STALE_BROKER_EPOCH]

    def spoil(broker_id, request, response):
        if left:
            response.error_code = left.pop()

    cluster.spoil = spoil
    async with copying(cluster, 2):
        await trio.sleep(SOON_S * 4)
    assert lies_as_in(cluster, 1, 2)


def spoil_partition(index, change, times=1):
    """Spoil the first answers with records for one partition."""
    left = [times]

    def spoil(broker_id, request, response):
        for topic in getattr(response, "responses", ()):
            for data in topic.partitions:
                if data.partition_index == index and left[0] and data.records:
                    left[0] -= 1
                    change(data)

    return spoil


def corrupt(data):
    data.records[-1] ^= 1


def tear(data):
    data.records = data.records[:-1]


def refuse(data):
    data.error_code, data.records = ErrorCode.KAFKA_STORAGE_ERROR, None


def refuse_with_a_code_of_the_future(data):
    data.error_code, data.records = ErrorCode.UNKNOWN_SERVER_ERROR, None


@pytest.mark.parametrize("change", [corrupt, tear, refuse, refuse_with_a_code_of_the_future])
async def test_partition_that_fails_is_tried_again_and_keeps_no_other_back(change, autojump_clock):
    cluster = Cluster(partitions=3)
    cluster.spoil = spoil_partition(1, change, times=3)
    for index in range(3):
        cluster.nodes[1].append(b"x", index=index)
    async with copying(cluster, 2):
        await trio.sleep(0.015)
        assert lies_as_in(cluster, 1, 2, index=0)
        assert not lies_as_in(cluster, 1, 2, index=1)
        assert lies_as_in(cluster, 1, 2, index=2)
        await trio.sleep(1)
        assert lies_as_in(cluster, 1, 2, index=1)


async def test_partition_whose_disk_fails_is_given_up(monkeypatch, caplog, autojump_clock):
    cluster = Cluster(partitions=2)
    for index in range(2):
        cluster.nodes[1].append(b"x", index=index)
    failing = cluster.nodes[2].replica(0)
    tries = []

    def append_as_follower(self, records, *, leader_epoch):
        if self is failing:
            tries.append(1)
            failing.log.failure = "no"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no")
        return real(self, records, leader_epoch=leader_epoch)

    real = type(failing).append_as_follower
    monkeypatch.setattr(type(failing), "append_as_follower", append_as_follower)
    async with copying(cluster, 2):
        await trio.sleep(5)
    assert len(tries) == 1
    assert lies_as_in(cluster, 1, 2, index=1)
    assert "t-0 is not copied any more" in caplog.text


async def test_partition_whose_disk_was_full_is_copied_again(monkeypatch, autojump_clock):
    """Found by the simulator: it was given up until its leader epoch changed."""
    cluster = Cluster()
    cluster.nodes[1].append(b"x")
    full = [True]

    def append_as_follower(self, records, *, leader_epoch):
        if full:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left on device")
        return real(self, records, leader_epoch=leader_epoch)

    partition = type(cluster.nodes[2].replica())
    real = partition.append_as_follower
    monkeypatch.setattr(partition, "append_as_follower", append_as_follower)
    async with copying(cluster, 2):
        await trio.sleep(5)
        full.clear()
        await trio.sleep(2)
    assert lies_as_in(cluster, 1, 2)


async def test_fenced_partition_waits_for_word_of_another_epoch(autojump_clock):
    """Rule 173."""
    cluster = Cluster()
    first = cluster.nodes[1]
    cluster.lead(1, tell=[1])
    first.append(b"x")
    async with copying(cluster, 2):
        await trio.sleep(5)
        assert cluster.asked[1, "FETCH"] == 1
        state = cluster.image.partition("t", 0)
        tell(cluster, 2, state)
        await trio.sleep(SOON_S)
    assert lies_as_in(cluster, 1, 2)


def tell(cluster, broker_id, state):
    change = PartitionChanged(name="t", topic_id=TOPIC_ID, index=0, state=state)
    cluster.nodes[broker_id].replicas.on_changes([change], cluster.image)


async def test_leader_that_hears_last_that_it_leads_is_followed_a_moment_later(autojump_clock):
    cluster = Cluster()
    async with copying(cluster):
        cluster.lead(2, tell=[1])
        await trio.sleep(0.01)
        tell(cluster, 2, cluster.image.partition("t", 0))
        cluster.nodes[2].append(b"x")
        await trio.sleep(SOON_S * 2)
        assert lies_as_in(cluster, 1, 2)


async def test_answer_of_an_earlier_leader_is_not_taken(autojump_clock):
    cluster = Cluster(brokers=3)
    first, second, third = cluster.nodes.values()
    first.append(b"old")
    once = []

    def spoil(broker_id, request, response):
        if broker_id == 1 and not once:
            once.append(1)
            cluster.lead(2, tell=[3])  # while the answer is under way

    cluster.spoil = spoil
    async with copying(cluster, 3):
        await trio.sleep(SOON_S)
        assert third.contents() == []
        asked = cluster.asked[1, "FETCH"]
        tell(cluster, 2, cluster.image.partition("t", 0))
        second.append(b"new")
        await trio.sleep(1)
        assert cluster.asked[1, "FETCH"] == asked
    assert lies_as_in(cluster, 2, 3)


async def test_replica_that_is_elected_during_a_fetch_takes_nothing_more(autojump_clock):
    cluster = Cluster()
    cluster.nodes[1].append(b"old")

    def spoil(broker_id, request, response):
        cluster.spoil = lambda *_: None
        cluster.lead(2, tell=[2])

    cluster.spoil = spoil
    async with copying(cluster, 2):
        await trio.sleep(1)
    assert cluster.nodes[2].contents() == []
    assert cluster.nodes[2].replica().is_leader
    assert cluster.asked[1, "FETCH"] == 1


async def test_partition_that_is_deleted_during_a_fetch_is_no_failure(caplog, autojump_clock):
    cluster = Cluster()
    cluster.nodes[1].append(b"old")

    def spoil(broker_id, request, response):
        deleted = TopicDeleted(name="t", topic_id=TOPIC_ID)
        cluster.nodes[2].replicas.on_changes([deleted], Image())

    cluster.spoil = spoil
    async with copying(cluster, 2):
        await trio.sleep(1)
    assert cluster.asked[1, "FETCH"] == 1
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


async def test_long_answers_let_others_have_their_turn(monkeypatch, autojump_clock):
    monkeypatch.setattr(fetcher, "SLICE_BYTES", 200)
    cluster = Cluster(partitions=2)
    for index in range(2):
        for value in range(20):
            cluster.nodes[1].append(bytes([value]) * 50, index=index)
    lengths = set()
    instrument = type(
        "Instrument",
        (trio.abc.Instrument,),
        {
            "after_task_step": lambda self, task: lengths.add(
                cluster.nodes[2].replica().log_end_offset
            )
        },
    )()
    trio.lowlevel.add_instrument(instrument)
    async with copying(cluster, 2):
        await trio.sleep(SOON_S)
    trio.lowlevel.remove_instrument(instrument)
    assert len(lengths) >= 20
    assert all(lies_as_in(cluster, 1, 2, index=index) for index in range(2))


async def test_cancelled_in_the_middle_of_an_answer_the_log_is_whole(monkeypatch, autojump_clock):
    monkeypatch.setattr(fetcher, "SLICE_BYTES", 200)
    cluster = Cluster()
    for value in range(20):
        cluster.nodes[1].append(bytes([value]) * 50)
    follower = cluster.nodes[2].replica()
    real, scopes = type(follower).append_as_follower, []

    def append_as_follower(self, records, *, leader_epoch):
        for scope in scopes:
            scope.cancel()
        return real(self, records, leader_epoch=leader_epoch)

    monkeypatch.setattr(type(follower), "append_as_follower", append_as_follower)
    async with copying(cluster, 2) as nursery:
        scopes.append(nursery.cancel_scope)
        await trio.sleep(1)
    scopes.clear()
    assert 0 < follower.log_end_offset < 20
    assert cluster.nodes[1].contents()[: follower.log_end_offset] == cluster.nodes[2].contents()
    async with copying(cluster, 2):
        await trio.sleep(SOON_S)
    assert lies_as_in(cluster, 1, 2)


async def test_what_does_not_fit_one_fetch_comes_with_the_next_ones_in_turn(autojump_clock):
    cluster = Cluster(
        partitions=4, replica_fetch_response_max_bytes=300, replica_fetch_max_bytes=150
    )
    for index in range(4):
        for _ in range(10):
            cluster.nodes[1].append(b"x" * 50, index=index)
    async with copying(cluster, 2):
        await trio.sleep(0.012)
        ends = [cluster.nodes[2].replica(index).log_end_offset for index in range(4)]
        assert max(ends) - min(ends) <= 2, ends
        await trio.sleep(1)
    assert all(lies_as_in(cluster, 1, 2, index=index) for index in range(4))


class TestThrottle:
    """KIP-73, on the side of the follower."""

    @staticmethod
    def cluster(replicas, rate):
        cluster = Cluster(
            partitions=2,
            isr=(1,),
            follower_replication_throttled_rate=rate,
            replica_fetch_max_bytes=1_000,
        )
        cluster.configure(follower_replication_throttled_replicas=replicas)
        for index in range(2):
            for _ in range(10):
                cluster.nodes[1].append(b"x" * 900, index=index)
        return cluster

    async def test_throttled_replica_copies_at_the_rate_and_others_at_will(self, autojump_clock):
        cluster = self.cluster("0:2,1:1", rate=1_000)
        async with copying(cluster, 2):
            await trio.sleep(3)
            assert lies_as_in(cluster, 1, 2, index=1)
            assert 2 <= cluster.nodes[2].replica(0).log_end_offset <= 6
            await trio.sleep(20)
            assert lies_as_in(cluster, 1, 2, index=0)

    @pytest.mark.parametrize(("replicas", "rate"), [("", 10), ("0:1", 10), ("*", 2**63 - 1)])
    async def test_without_rate_or_replicas_nothing_is_throttled(
        self, replicas, rate, autojump_clock
    ):
        cluster = self.cluster(replicas, rate)
        async with copying(cluster, 2):
            await trio.sleep(1)
        assert all(lies_as_in(cluster, 1, 2, index=index) for index in range(2))

    async def test_wildcard_throttles_all_and_topics_that_are_gone_nothing(self, autojump_clock):
        cluster = self.cluster("*", rate=1_000)
        async with copying(cluster, 2):
            await trio.sleep(2)
            assert not lies_as_in(cluster, 1, 2, index=1)
            cluster.image = type(cluster.image)()
            await trio.sleep(1)
            assert all(lies_as_in(cluster, 1, 2, index=index) for index in range(2))
