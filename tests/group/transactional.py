"""Commits of offsets in a transaction, to a broker of any make."""

import time

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from kafkalite.wire.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from kafkalite.wire.messages.end_txn import END_TXN, EndTxnRequest
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafkalite.wire.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from kafkalite.wire.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

PATIENCE_S = 30
NAME = "committer"
AGAIN = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


class Committer:
    """A producer that commits for groups, one transaction after the other, and aborts each."""

    def __init__(self, client):
        self._client = client
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[NAME])
        self._until(FIND_COORDINATOR, 4, find, lambda a: a.coordinators[0].error_code)
        init = InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=60_000)
        made = self._until(INIT_PRODUCER_ID, 4, init, lambda a: a.error_code)
        self._producer = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}

    def codes(self, group_id, member_id, epoch, topic, partitions, *, instance_id=None):
        """Return the error codes of a TxnOffsetCommit."""
        add = AddOffsetsToTxnRequest(transactional_id=NAME, group_id=group_id, **self._producer)
        self._until(ADD_OFFSETS_TO_TXN, 3, add, lambda a: a.error_code)
        request = TxnOffsetCommitRequest(
            transactional_id=NAME,
            group_id=group_id,
            member_id=member_id,
            generation_id=epoch,
            group_instance_id=instance_id,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(partition_index=n, committed_offset=3)
                        for n in partitions
                    ],
                )
            ],
            **self._producer,
        )
        answer = self._client.ask(TXN_OFFSET_COMMIT, 4, request)
        end = EndTxnRequest(transactional_id=NAME, committed=False, **self._producer)
        self._until(END_TXN, 3, end, lambda a: a.error_code)
        describe = DescribeTransactionsRequest(transactional_ids=[NAME])
        deadline = time.monotonic() + PATIENCE_S
        while True:
            (state,) = self._client.ask(DESCRIBE_TRANSACTIONS, 0, describe).transaction_states
            if state.transaction_state.startswith("Complete"):
                break
            assert time.monotonic() < deadline, state
            time.sleep(0.005)
        return [(p.partition_index, p.error_code) for t in answer.topics for p in t.partitions]

    def _until(self, api, version, request, code):
        deadline = time.monotonic() + PATIENCE_S
        while code(answer := self._client.ask(api, version, request)) in AGAIN:
            assert time.monotonic() < deadline, answer
            time.sleep(0.01)
        assert not code(answer), answer
        return answer
