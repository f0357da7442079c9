"""Copying very many partitions: some are looked at in one turn, and the session stays open."""

from collections import Counter

import pytest
import trio

from kafkalite.isr import fetch_turns, fetcher
from kafkalite.wire.messages.fetch import FetchRequest
from tests.isr.replication_kit import Cluster
from tests.isr.test_fetcher import SOON_S, copying, lies_as_in, said


@pytest.mark.pure  # functions and numbers are put in the place of others
async def test_very_many_partitions_are_taken_up_and_asked_for_in_steps(
    autojump_clock, monkeypatch
):
    """Counted: those that are looked at in one turn of the loop. None waits for another's Fetch."""
    many, step = 130, 20
    monkeypatch.setattr(fetcher, "STEP_MAX", step)
    monkeypatch.setattr(fetch_turns, "STEP_MAX", step)
    cluster = Cluster(partitions=many)
    turn, done = 0, Counter()

    def count(owner, name):
        real = getattr(owner, name)

        def counted(*arguments, **options):
            done[name, turn] += 1
            return real(*arguments, **options)

        monkeypatch.setattr(owner, name, counted)

    class Turns(trio.abc.Instrument):
        def before_task_step(self, task):
            nonlocal turn
            turn += 1

    count(fetcher._Source, "_begin")
    count(fetcher._Source, "_is_current")
    count(fetcher._Source, "_take_one")
    trio.lowlevel.add_instrument(Turns())
    for node in cluster.nodes.values():
        while node.replicas.open_some():
            pass
    for index in range(many):
        cluster.nodes[1].append(b"x", index=index)
    async with copying(cluster, 2):
        await trio.sleep(0.4)
        for index in range(many):
            assert lies_as_in(cluster, 1, 2, index=index)
    assert {name for name, _ in done} == {"_begin", "_is_current", "_take_one"}
    assert max(done.values()) <= 2 * step
    first = [set(named) for named, _ in said(cluster)[:7]]
    assert max(map(len, first)) <= step
    assert set().union(*first) == set(range(many))


@pytest.mark.pure  # a number is put in the place of another
async def test_a_session_of_very_many_is_not_opened_again_for_what_is_new(
    autojump_clock, monkeypatch
):
    """As in Kafka, what is new waits for the end of the Fetch that is under way."""
    monkeypatch.setattr(fetcher, "GIVE_UP_MAX", 1)
    cluster = Cluster(partitions=4)
    cluster.lead(2, index=3)
    async with copying(cluster):
        await trio.sleep(1.1)
        cluster.requests.clear()
        cluster.lead(1, index=3)
        cluster.nodes[1].append(b"x", index=3)
        await trio.sleep(0.6)
        assert lies_as_in(cluster, 1, 2, index=3)
        assert all(
            request.session_epoch > 0
            for request in cluster.requests
            if isinstance(request, FetchRequest) and request.replica_state.replica_id == 2
        )


async def test_who_gets_no_session_names_all_partitions_each_time(autojump_clock):
    cluster = Cluster(partitions=3)
    cluster.nodes[1].sessions._max_sessions = 0
    async with copying(cluster, 2):
        await trio.sleep(2)
        cluster.nodes[1].append(b"x", index=1)
        await trio.sleep(SOON_S)
        assert lies_as_in(cluster, 1, 2, index=1)
        assert {tuple(named) for named, _ in said(cluster)} == {(0, 1, 2)}
