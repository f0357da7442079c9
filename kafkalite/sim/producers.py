"""Simulated producers: idempotent ones, and transactional ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kafkalite.sim.client import Client, Unanswered
from kafkalite.sim.invariants import InvariantBroken
from kafkalite.sim.runtime import SimClock
from kafkalite.sim.workload import RETRIED, Workload
from kafkalite.testing.history import Write
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafkalite.wire.messages.end_txn import END_TXN, EndTxnRequest
from kafkalite.wire.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.records import Record, build_batch

PRODUCE_VERSION: Final = 9
INIT_VERSION: Final = 3
ADD_VERSION: Final = 3
END_VERSION: Final = 3
PRODUCE_TIMEOUT_MS: Final = 2_000
TRANSACTION_TIMEOUT_MS: Final = 20_000
TRANSACTION_COORDINATOR: Final = 1


@dataclass(slots=True)
class Identity:
    """Identity of a producer at the brokers."""

    producer_id: int
    epoch: int


class Fenced(Exception):
    """Another producer has this one's transactional id, or its transaction was ended for it."""


class Producer:
    """Writes batches one after another, and each of them until it is acknowledged.

    Args:
        client: its way to the brokers.
        work: what it is part of.
        transactional_id: None for one that is only idempotent.
    """

    def __init__(
        self, client: Client, work: Workload, *, transactional_id: str | None = None
    ) -> None:
        self._client = client
        self._work = work
        self._transactional_id = transactional_id
        self._identity = Identity(-1, -1)
        self._sequences: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        """Write until told to stop."""
        work = self._work
        await self._init()
        while not work.stopping.is_set():
            if self._transactional_id is None:
                place = work.random.choice(work.places)
                await self._deliver(place, self._send_new(place))
            else:
                await self._transaction()
            await work.pause(0.01, 0.4)

    def _send_new(self, place: TopicPartition) -> list[Write]:
        work, name = self._work, self._client.name
        count = work.random.choice((1, 1, 2, 5))
        return [work.history.send(name, *place, work.next_value(name)) for _ in range(count)]

    async def _init(self) -> None:
        """Get an id, or a new epoch, which ends what a predecessor left open."""
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        )
        while True:
            try:
                if self._transactional_id is None:
                    answer: Any = await self._client.ask_anyone(
                        INIT_PRODUCER_ID, INIT_VERSION, request
                    )
                else:
                    answer = await self._ask_coordinator(INIT_PRODUCER_ID, INIT_VERSION, request)
            except Unanswered:
                answer = None
            if answer is not None and answer.error_code == ErrorCode.NONE:
                self._identity = Identity(answer.producer_id, answer.producer_epoch)
                self._sequences.clear()
                return
            if answer is not None and answer.error_code not in RETRIED:
                raise InvariantBroken(f"InitProducerId: {ErrorCode(answer.error_code).name}")
            await self._work.pause()

    async def _ask_coordinator(self, api: Any, version: int, request: Any) -> Any:
        """Return the answer of the transaction coordinator, None if nobody is it."""
        assert self._transactional_id is not None
        address = await self._client.coordinator(self._transactional_id, TRANSACTION_COORDINATOR)
        if address is None:
            return None
        return await self._client.ask(address, api, version, request)

    async def _deliver(self, place: TopicPartition, writes: Sequence[Write]) -> None:
        """Send a batch until it is acknowledged.

        Raises:
            Fenced: in a transaction, which cannot be completed.
        """
        sequence = self._sequences.get(place, 0)
        identity = self._identity
        is_transactional = self._transactional_id is not None
        now_ms = SimClock().wall_ms()
        records = [
            Record(offset=index, timestamp=now_ms, key=None, value=write.value.encode())
            for index, write in enumerate(writes)
        ]
        while True:
            batch = build_batch(
                records,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                base_sequence=sequence,
                transactional=is_transactional,
            )
            code, offset = await self._produce(place, batch)
            if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                break
            if code not in RETRIED:
                if is_transactional:
                    raise Fenced(code.name)
                raise InvariantBroken(
                    f"{self._client.name}: sequence {sequence} of {place}: {code.name}"
                )
            self._work.count(code.name)
            await self._work.pause()
            await self._refresh(place)
        self._sequences[place] = sequence + len(writes)
        for index, write in enumerate(writes):
            where = offset + index if code is ErrorCode.NONE and offset >= 0 else -1
            if is_transactional:
                write.offset = where
            else:
                self._work.history.acknowledge(write, offset=where)
        self._work.count("written", len(writes))

    async def _produce(self, place: TopicPartition, batch: bytearray) -> tuple[ErrorCode, int]:
        leader = self._client.leader(place)
        if leader is None:
            return ErrorCode.LEADER_NOT_AVAILABLE, -1
        data = PartitionProduceData(index=place.partition, records=batch)
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=-1,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[TopicProduceData(name=place.topic, partition_data=[data])],
        )
        try:
            response = await self._client.ask(leader[0], PRODUCE, PRODUCE_VERSION, request)
        except Unanswered:
            return ErrorCode.NETWORK_EXCEPTION, -1
        answer = response.responses[0].partition_responses[0]
        return ErrorCode(answer.error_code), answer.base_offset

    async def _refresh(self, place: TopicPartition) -> None:
        try:
            await self._client.refresh([place.topic])
        except Unanswered:
            await self._work.pause()

    # --- Transactions ----------------------------------------------------------------------------

    async def _transaction(self) -> None:
        """Write to some partitions, then commit or abort; sometimes leave that to a successor."""
        work = self._work
        random = work.random
        places = random.sample(work.transactional_places, random.randint(1, 2))
        writes: list[Write] = []
        ending = random.choice(("commit", "commit", "commit", "abort", "leave"))
        try:
            await self._add(places)
            for _ in range(random.randint(1, 3)):
                place = random.choice(places)
                new = self._send_new(place)
                writes += new
                await self._deliver(place, new)
            if ending != "leave":
                await self._end(committed=ending == "commit")
        except Fenced as error:
            work.count(f"fenced: {error}")
            ending = "leave"
        if ending == "commit":
            for write in writes:
                work.history.acknowledge(write, offset=write.offset)
            work.count("commits")
            return
        if ending == "leave":
            # A new epoch aborts what is open; what was being committed when this producer was
            # fenced was not told to commit by it.
            await self._init()
        work.count("aborts")
        for write in writes:
            work.history.fail(write)

    async def _add(self, places: Sequence[TopicPartition]) -> None:
        topics: dict[str, list[int]] = {}
        for place in places:
            topics.setdefault(place.topic, []).append(place.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id or "",
            v3_and_below_producer_id=self._identity.producer_id,
            v3_and_below_producer_epoch=self._identity.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in topics.items()
            ],
        )

        def codes_of(answer: Any) -> list[int]:
            return [
                each.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            ]

        await self._until_done(ADD_PARTITIONS_TO_TXN, ADD_VERSION, request, codes_of)

    async def _end(self, *, committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._transactional_id or "",
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            committed=committed,
        )
        await self._until_done(END_TXN, END_VERSION, request, lambda each: [each.error_code])

    async def _until_done(self, api: Any, version: int, request: Any, codes_of: Any) -> None:
        """Ask the coordinator until it has done it.

        Raises:
            Fenced: it refuses.
        """
        while True:
            try:
                answer = await self._ask_coordinator(api, version, request)
            except Unanswered:
                answer = None
            codes = [] if answer is None else [ErrorCode(code) for code in codes_of(answer)]
            refusals = [code for code in codes if code is not ErrorCode.NONE]
            if codes and not refusals:
                return
            fatal = [
                code
                for code in refusals
                if code not in RETRIED and code is not ErrorCode.OPERATION_NOT_ATTEMPTED
            ]
            if fatal:
                raise Fenced(f"{api.key.name}: {fatal[0].name}")
            await self._work.pause()
