"""Several producers while leaderships move and messages get lost, again and again, by a seed."""

import random

import pytest
import trio

from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from tests.txn.clients import JAVA_3, JAVA_4
from tests.txn.cluster_kit import GROUP, SHARD, Cluster, run
from tests.txn.remote_clients import RemoteProducer

OUT = [TopicPartition("out", index) for index in range(3)]
PLACES = [SHARD, GROUP, *OUT]
TRANSACTIONS = 6


class Chaos:
    """Strikes until it is told to stop, and then puts everything right."""

    def __init__(self, cluster, rng):
        self.cluster = cluster
        self.rng = rng
        self.over = False

    async def run(self, nursery):
        while not self.over:
            await trio.sleep(self.rng.uniform(0.002, 0.06))
            nursery.start_soon(self.rng.choice(STRIKES), self, self.rng.choice(PLACES))

    async def move(self, place):
        if place in self.cluster.leaders:
            self.cluster.move(place, self.rng.randint(1, 3))

    async def take_away(self, place):
        if place in self.cluster.leaders:
            self.cluster.take_away(place)
            await trio.sleep(self.rng.uniform(0, 0.3))
            self.cluster.give(place, self.rng.randint(1, 3))

    async def begin_epoch(self, place):
        if place in self.cluster.leaders:
            self.cluster.begin_epoch(place)

    async def cut(self, place):
        pair = self.rng.randint(1, 3), self.rng.randint(1, 3)
        self.cluster.cut.add(pair)
        await trio.sleep(self.rng.uniform(0, 0.3))
        self.cluster.cut.discard(pair)

    async def lose(self, place):
        way = self.rng.choice(["request", "answer"])
        self.cluster.lost.append((way, self.rng.randint(1, 3), self.rng.randint(1, 3)))

    async def refuse(self, place):
        partition = self.cluster.partitions[place]
        partition.refusal = ErrorCode.NOT_ENOUGH_REPLICAS
        await trio.sleep(self.rng.uniform(0, 0.3))
        partition.refusal = None

    async def stall(self, place):
        self.cluster.stalled.add(place)
        await trio.sleep(self.rng.uniform(0, 0.1))
        self.cluster.stalled.discard(place)
        self.cluster.partitions[place].replicate()


STRIKES = [
    Chaos.move, Chaos.take_away, Chaos.begin_epoch, Chaos.cut, Chaos.lose, Chaos.refuse,
    Chaos.stall,
]  # fmt: skip


async def work(cluster, rng, name, generation, expected):
    """Transactions on some partitions each; note what they commit."""
    producer = await RemoteProducer(cluster, name, generation, timeout_ms=600_000).init()
    for number in range(TRANSACTIONS):
        commit = rng.random() < 0.7
        written = {}
        for index in rng.sample(range(3), rng.randint(1, 3)):
            for count in range(rng.randint(1, 2)):
                value = f"{name}-{number}-{index}-{count}"
                await producer.send("out", index, value)
                written.setdefault(OUT[index], []).append(value)
        if with_offsets := rng.random() < 0.5:
            await producer.commit_offsets(number, group=name)
        await producer.end(commit=commit)
        if commit:
            for place, values in written.items():
                expected.setdefault((name, place), []).extend(values)
            if with_offsets:
                expected[name] = number


def is_over(cluster, names):
    nodes = cluster.nodes.values()
    if any(place not in cluster.leaders for place in PLACES):
        return False
    return (
        not any(node.runtime.is_loading() or node.transactions.unfinished() for node in nodes)
        and all(cluster.transaction(name).state.is_complete for name in names)
        and all(cluster.committed(place)[1] for place in OUT)
        and all(cluster.offset(name) != "pending" for name in names)
    )


def trial(seed):
    async def main():
        rng = random.Random(seed)
        leaders = {place: rng.randint(1, 3) for place in PLACES}
        expected = {}
        names = ["ann", "bob", "cid"]
        async with Cluster(leaders).running() as cluster, trio.open_nursery() as nursery:
            chaos = Chaos(cluster, rng)
            nursery.start_soon(chaos.run, nursery)
            async with trio.open_nursery() as producers:
                for name in names:
                    generation = rng.choice([JAVA_3, JAVA_4])
                    producers.start_soon(work, cluster, rng, name, generation, expected)
            chaos.over = True
            await cluster.wait(lambda: is_over(cluster, names))
            for place in OUT:
                values, _ = cluster.committed(place)
                for name in names:
                    mine = [value for value in values if value.startswith(name)]
                    assert mine == expected.get((name, place), [])
            for name in names:
                assert cluster.offset(name) == expected.get(name)

    run(main)


@pytest.mark.parametrize("seed", range(5))
def test_committed_transactions_count_once_and_others_never(seed):
    trial(seed)


@pytest.mark.slow
@pytest.mark.long
def test_at_length():
    for seed in range(5, 25):
        trial(seed)
