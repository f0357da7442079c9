"""Transactions of a cluster in which every leadership is taken away, at every step (rule 121)."""

import pytest
import trio

from kafkalite.txn.states import TransactionState
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from tests.txn.clients import GENERATIONS, JAVA_3, JAVA_4
from tests.txn.cluster_kit import GROUP, SHARD, Cluster, run
from tests.txn.remote_clients import RemoteProducer

OUT = [TopicPartition("out", index) for index in range(3)]
SPREAD = {SHARD: 1, GROUP: 2, OUT[0]: 1, OUT[1]: 2, OUT[2]: 3}
COMPLETE = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def is_over(cluster):
    if None in map(cluster.node_of, (SHARD, GROUP)):
        return False
    if any(node.runtime.is_loading() for node in cluster.nodes.values()):
        return False
    return (
        cluster.transaction().state in COMPLETE
        and all(cluster.committed(place)[1] for place in OUT)
        and cluster.offset() != "pending"
    )


async def story(cluster, generation):
    """Three transactions, the second of which is aborted."""
    producer = await RemoteProducer(cluster, generation=generation).init()
    await producer.transaction(1)
    await producer.transaction(2, commit=False)
    await producer.transaction(3)
    await cluster.wait(lambda: is_over(cluster))


def check_end(cluster):
    """The state that every way through the story leads to."""
    for index, place in enumerate(OUT):
        assert cluster.committed(place) == ([f"1-{index}", f"3-{index}"], True)
    assert cluster.offset() == 3
    assert cluster.transaction().state is TransactionState.COMPLETE_COMMIT
    assert cluster.transaction().producer_id in (1000, 1001)  # or what it was told was lost


def appends_of_story(generation):
    counted = []

    async def main():
        async with Cluster(SPREAD).running() as cluster:
            await story(cluster, generation)
            counted.append(cluster.appends)

    run(main)
    return counted[0]


class TestWithoutFaults:
    @pytest.mark.parametrize("generation", GENERATIONS)
    @pytest.mark.parametrize("leaders", [SPREAD, {}, {SHARD: 3}], ids=["spread", "one", "apart"])
    def test_transactions_over_brokers(self, generation, leaders):
        async def main():
            async with Cluster(leaders).running() as cluster:
                await story(cluster, generation)
                check_end(cluster)

        run(main)


@pytest.mark.slow
class TestEveryStep:
    """A leadership moves after each record that is written, whoever writes it."""

    @pytest.mark.parametrize("generation", [JAVA_3, JAVA_4])
    @pytest.mark.parametrize("victim", [SHARD, GROUP, OUT[1]], ids=str)
    @pytest.mark.parametrize("leaderless_ms", [0, 300])
    def test_the_end_is_the_same(self, generation, victim, leaderless_ms):
        for step in range(1, appends_of_story(generation) + 1):
            self.at(step, generation, victim, leaderless_ms)

    def at(self, step, generation, victim, leaderless_ms):
        async def main():
            async with Cluster(SPREAD).running() as cluster:
                reached = cluster.watching[step] = trio.Event()

                async def strike():
                    await reached.wait()
                    cluster.take_away(victim)
                    await trio.sleep(leaderless_ms / 1000)
                    cluster.give(victim, 3 if victim is SHARD else 1)

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(strike)
                    await story(cluster, generation)
                    await cluster.wait(reached.is_set)
                await cluster.wait(lambda: is_over(cluster))
                check_end(cluster)

        run(main)

    @pytest.mark.parametrize("generation", [JAVA_3, JAVA_4])
    def test_coordinator_that_comes_back_in_another_epoch(self, generation):
        for step in range(1, appends_of_story(generation) + 1):

            async def main(step=step):
                async with Cluster(SPREAD).running() as cluster:
                    reached = cluster.watching[step] = trio.Event()

                    async def strike():
                        await reached.wait()
                        cluster.begin_epoch(SHARD)
                        cluster.begin_epoch(OUT[0])

                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(strike)
                        await story(cluster, generation)
                    check_end(cluster)

            run(main)

    @pytest.mark.parametrize("way", ["request", "answer"])
    @pytest.mark.parametrize("generation", [JAVA_3, JAVA_4])
    def test_messages_between_brokers_that_are_lost(self, generation, way):
        async def main():
            async with Cluster(SPREAD).running() as cluster:
                cluster.lost = [(way, a, b) for a in (1, 2, 3) for b in (1, 2, 3)] * 4
                await story(cluster, generation)
                check_end(cluster)
                assert len(cluster.lost) < 9 * 4

        run(main)


class TestMarkers:
    def test_half_of_them_written(self):
        """Rule 121: whoever coordinates next has them all written."""

        async def main():
            async with Cluster(SPREAD).running() as cluster:
                producer = await RemoteProducer(cluster).init()
                cluster.cut = {(1, 3)}
                await producer.send("out", 1, "a")
                await producer.send("out", 0, "a")
                cluster.cut = set()
                await producer.send("out", 2, "a")
                cluster.cut = {(1, 3)}
                await producer.end()
                await cluster.wait(lambda: cluster.markers(OUT[1]))
                assert cluster.markers(OUT[2]) == []
                assert cluster.transaction().state is TransactionState.PREPARE_COMMIT
                cluster.move(SHARD, 2)
                cluster.cut = set()
                await cluster.wait(lambda: is_over(cluster))
                assert cluster.markers(OUT[2]) == [(1, 1, True)]
                await cluster.wait(lambda: not cluster.nodes[1].transactions.unfinished())

        run(main)

    def test_everything_for_one_broker_goes_in_one_request(self):
        async def main():
            leaders = {**SPREAD, OUT[1]: 3, OUT[2]: 3}
            async with Cluster(leaders).running() as cluster:
                producers = [
                    await RemoteProducer(cluster, f"tx{number}").init() for number in range(10)
                ]
                for producer in producers:
                    await producer.send("out", 1, "a")
                    await producer.send("out", 2, "a")
                cluster.requests.clear()
                async with trio.open_nursery() as nursery:
                    for producer in producers:
                        nursery.start_soon(producer.end)
                await cluster.wait(lambda: not cluster.nodes[1].transactions.unfinished())
                sent = [message for *_, name, message in cluster.requests if "MARKERS" in name]
                assert sum(len(message.markers) for message in sent) == 10
                assert len(sent) <= 3

        run(main)

    def test_marker_counts_when_the_leader_has_replicated_it(self):
        async def main():
            async with Cluster(SPREAD).running() as cluster:
                producer = await RemoteProducer(cluster).init()
                await producer.send("out", 2, "a")
                cluster.stalled = {OUT[2]}
                await producer.end()
                await cluster.wait(lambda: cluster.markers(OUT[2]))
                await trio.sleep(1)
                assert cluster.transaction().state is TransactionState.PREPARE_COMMIT
                cluster.partitions[OUT[2]].replicate()
                await cluster.wait(lambda: is_over(cluster))
                assert len(cluster.markers(OUT[2])) == 1

        run(main)

    def test_marker_that_its_leader_lost_before_it_was_replicated(self):
        """Appended is not written: the leader after next would not have it."""

        async def main():
            async with Cluster(SPREAD).running() as cluster:
                producer = await RemoteProducer(cluster).init()
                await producer.send("out", 2, "a")
                cluster.stalled = {OUT[2]}
                await producer.end()
                await cluster.wait(lambda: cluster.markers(OUT[2]))
                cluster.move(OUT[2])
                cluster.stalled = set()
                assert cluster.markers(OUT[2]) == []
                await cluster.wait(lambda: is_over(cluster))
                assert cluster.committed(OUT[2]) == (["a"], True)

        run(main)

    def test_marker_of_a_local_partition_that_moves_away_before_it_is_replicated(self):
        async def main():
            async with Cluster(SPREAD).running() as cluster:
                producer = await RemoteProducer(cluster).init()
                await producer.send("out", 0, "a")
                cluster.stalled = {OUT[0]}
                await producer.end()
                await cluster.wait(lambda: cluster.markers(OUT[0]))
                cluster.begin_epoch(OUT[0])
                await trio.sleep(0.5)
                assert len(cluster.markers(OUT[0])) == 1
                assert cluster.transaction().state is TransactionState.PREPARE_COMMIT
                cluster.move(OUT[0])
                cluster.stalled = set()
                await cluster.wait(lambda: is_over(cluster))
                assert cluster.committed(OUT[0]) == (["a"], True)

        run(main)

    def test_topic_that_is_deleted_needs_no_marker(self):
        async def main():
            async with Cluster(SPREAD).running() as cluster:
                producer = await RemoteProducer(cluster).init()
                await producer.send("out", 2, "a")
                cluster.cut = {(1, 3)}
                await producer.end()
                await trio.sleep(0.5)
                cluster.metadata.remove("out")
                await cluster.wait(lambda: cluster.transaction().state.is_complete)

        run(main)

    @pytest.mark.parametrize(
        "refusal", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR]
    )
    def test_leader_that_cannot_write_is_asked_again(self, refusal):
        async def main():
            async with Cluster(SPREAD).running() as cluster:
                producer = await RemoteProducer(cluster).init()
                await producer.send("out", 2, "a")
                cluster.partitions[OUT[2]].refusal = refusal
                await producer.end()
                await trio.sleep(1)
                assert cluster.markers(OUT[2]) == []
                cluster.partitions[OUT[2]].refusal = None
                await cluster.wait(lambda: is_over(cluster))
                assert cluster.markers(OUT[2]) == [(1, 0, True)]

        run(main)

    def test_deposed_coordinator_that_does_not_know_is_refused(self):
        """Rule 112: its markers come with an epoch that is over."""

        async def main():
            async with Cluster(SPREAD).running() as cluster:
                producer = await RemoteProducer(cluster).init()
                await producer.send("out", 2, "a")
                cluster.cut = {(1, 3)}
                await producer.end()
                cluster.partitions[SHARD].leader_epoch = 5  # the next one, which it will be
                cluster.move(SHARD, 2)
                cluster.cut = set()
                await cluster.wait(lambda: is_over(cluster))
                assert cluster.markers(OUT[2]) == [(1, 6, True)]

        run(main)


class TestVerification:
    def test_several_questions_go_in_one_request(self):
        async def main():
            async with Cluster({SHARD: 1, **dict.fromkeys(OUT, 3)}).running() as cluster:
                producers = [
                    await RemoteProducer(cluster, f"tx{number}").init() for number in range(10)
                ]
                cluster.requests.clear()
                async with trio.open_nursery() as nursery:
                    for producer in producers:
                        for index in range(3):
                            nursery.start_soon(producer.send, "out", index, "a")
                sent = [message for *_, name, message in cluster.requests if "ADD" in name]
                named = [t.transactional_id for message in sent for t in message.transactions]
                assert len(sent) <= 3
                assert set(named) == {f"tx{number}" for number in range(10)}

        run(main)

    @pytest.mark.parametrize("generation", [JAVA_3, JAVA_4])
    def test_what_the_coordinator_cannot_be_asked_is_tried_again(self, generation):
        async def main():
            async with Cluster(SPREAD).running() as cluster:
                producer = await RemoteProducer(cluster, generation=generation).init()
                await producer.add("out", 2)
                cluster.cut = {(3, 1)}
                answer = await producer.once(producer.own.write, "out", 2, "a", place=OUT[2])
                assert answer[0] is ErrorCode.NOT_ENOUGH_REPLICAS
                cluster.cut = set()
                assert cluster.leaders.pop(SHARD) == 1
                answer = await producer.once(producer.own.write, "out", 2, "a", place=OUT[2])
                assert answer[0] is ErrorCode.NOT_ENOUGH_REPLICAS
                cluster.leaders[SHARD] = 1
                await producer.send("out", 2, "a")

        run(main)

    def test_partition_that_was_not_added_is_refused(self):
        async def main():
            async with Cluster(SPREAD).running() as cluster:
                producer = await RemoteProducer(cluster, generation=JAVA_3).init()
                await producer.add("out", 1)
                answer = await producer.once(producer.own.write, "out", 2, "a", place=OUT[2])
                assert answer[0] is ErrorCode.TRANSACTION_ABORTABLE

        run(main)

    def test_fenced_producer_is_refused(self):
        async def main():
            async with Cluster(SPREAD).running() as cluster:
                zombie = await RemoteProducer(cluster).init()
                await RemoteProducer(cluster).init()
                answer = await zombie.once(zombie.own.write, "out", 2, "a", place=OUT[2])
                assert answer[0] is ErrorCode.INVALID_PRODUCER_EPOCH

        run(main)

    def test_transaction_that_ends_during_the_question(self):
        """KIP-890: the answer is older than the marker; a record after it would hang for ever."""

        async def main():
            async with Cluster(SPREAD).running() as cluster:
                producer = await RemoteProducer(cluster, generation=JAVA_3).init()
                await producer.add("out", 2)
                slow = trio.Event()
                node = cluster.nodes[3]
                ask = node.request

                async def late(broker_id, api, message, **options):
                    answer = await ask(broker_id, api, message, **options)
                    await slow.wait()
                    return answer

                node.request = late
                answers = []

                async def write():
                    code, _ = await producer.once(producer.own.write, "out", 2, "a", place=OUT[2])
                    answers.append(code)

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(write)
                    await trio.sleep(0.05)
                    other = RemoteProducer(cluster, generation=JAVA_3)
                    other.own.identity = producer.own.identity
                    await other.end(commit=False)
                    await cluster.wait(lambda: cluster.markers(OUT[2]))
                    slow.set()
                assert answers == [ErrorCode.NOT_ENOUGH_REPLICAS]
                assert cluster.committed(OUT[2]) == ([], True)
                node.request = ask
                code, _ = await producer.once(producer.own.write, "out", 2, "a", place=OUT[2])
                assert code is ErrorCode.TRANSACTION_ABORTABLE

        run(main)

    def test_group_whose_coordinator_is_elsewhere_is_not_added(self):
        async def main():
            async with Cluster(SPREAD).running() as cluster:
                producer = await RemoteProducer(cluster).init()
                answer = await producer.once(
                    producer.own.write_offsets, "g", {("in", 0): 1}, place=OUT[2]
                )
                assert answer == {("in", 0): ErrorCode.NOT_COORDINATOR}
                assert cluster.transaction().state is TransactionState.EMPTY

        run(main)
