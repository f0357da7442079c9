"""Questions to coordinators on other brokers: what goes together, and what is made of answers."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.txn.add_partitions_manager import TIMEOUT_MS_MAX, AddPartitionsToTxnManager
from kafkalite.txn.events import AddPartitions, VerifyPartitions
from kafkalite.txn.transactions import V2, ProducerIdentity
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from tests.txn.cluster_kit import run

A, B = TopicPartition("a", 0), TopicPartition("a", 1)
OLD, NEW = ProducerIdentity(1, 0), ProducerIdentity(1, 1)


class FakePeers:
    """Answers `code` for every partition, after `gate` is open."""

    def __init__(self, code=ErrorCode.NONE, whole=ErrorCode.NONE):
        self.code, self.whole = code, whole
        self.failure = None
        self.requests = []
        self.gate = trio.Event()

    async def request(self, broker_id, api, message, *, timeout_ms, channel):
        assert timeout_ms == TIMEOUT_MS_MAX
        self.requests.append((broker_id, message.transactions))
        await self.gate.wait()
        if self.failure is not None:
            raise KafkaError(self.failure)
        if self.whole is not ErrorCode.NONE:
            return AddPartitionsToTxnResponse(error_code=self.whole)
        return AddPartitionsToTxnResponse(
            results_by_transaction=[self.result(asked) for asked in message.transactions]
        )

    def result(self, asked):
        return AddPartitionsToTxnResult(
            transactional_id=asked.transactional_id,
            topic_results=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=index, partition_error_code=self.code
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in asked.topics
            ],
        )


def asking(peers, main):
    async def beside():
        async with trio.open_nursery() as nursery:
            remote = AddPartitionsToTxnManager(peers, timeout_ms=30_000)
            nursery.start_soon(remote.run)
            await main(remote)
            nursery.cancel_scope.cancel()

    run(beside)


def test_one_producer_is_asked_about_once_and_another_later():
    peers = FakePeers()

    async def main(remote):
        answers = [
            remote.ask(2, VerifyPartitions("tx", OLD, [A])),
            remote.ask(2, VerifyPartitions("tx", OLD, [A, B])),
            remote.ask(2, VerifyPartitions("tx", NEW, [A])),
            remote.ask(2, AddPartitions("other", NEW, [A], V2)),
            remote.ask(3, AddPartitions("tx", NEW, [A], V2)),
        ]
        peers.gate.set()
        codes = [await answer.wait() for answer in answers]
        assert [[*given] for given in codes] == [[A], [A, B], [A], [A], [A]]

    asking(peers, main)
    asked = sorted((broker, [t.transactional_id for t in all_]) for broker, all_ in peers.requests)
    assert asked == [(2, ["tx"]), (2, ["tx", "other"]), (3, ["tx"])]
    verified = [t.verify_only for broker, all_ in peers.requests for t in all_ if broker == 3]
    assert verified == [False]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.NONE, ErrorCode.NONE),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_coordinator_that_is_behind_is_asked_again(code, told):
    peers = FakePeers(code)
    peers.gate.set()

    async def main(remote):
        assert await remote.ask(2, VerifyPartitions("tx", OLD, [A])).wait() == {A: told}

    asking(peers, main)


@pytest.mark.parametrize(
    ("whole", "told"),
    [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_error_of_a_whole_request_is_that_of_everything_in_it(whole, told):
    peers = FakePeers(whole=whole)
    peers.gate.set()

    async def main(remote):
        assert await remote.ask(2, VerifyPartitions("tx", OLD, [A])).wait() == {A: told}

    asking(peers, main)


def test_broker_that_cannot_be_reached():
    peers = FakePeers()
    peers.failure = ErrorCode.BROKER_NOT_AVAILABLE
    peers.gate.set()

    async def main(remote):
        with pytest.raises(KafkaError, match="NETWORK_EXCEPTION"):
            await remote.ask(2, VerifyPartitions("tx", OLD, [A])).wait()

    asking(peers, main)


def test_question_that_is_broken_off_is_answered():
    """The broker stops while somebody waits."""
    peers = FakePeers()
    answers = []

    async def main(remote):
        answers.append(remote.ask(2, VerifyPartitions("tx", OLD, [A])))
        await wait_all_tasks_blocked()

    asking(peers, main)

    async def wait():
        with pytest.raises(KafkaError, match="NETWORK_EXCEPTION"):
            await answers[0].wait()

    run(wait)
