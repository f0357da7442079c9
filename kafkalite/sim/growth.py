"""A topic that is created and grown while idempotent producers write to it, as librdkafka's do.

They have several batches under way, and a batch whose successor was acknowledged counts as
delivered when it is refused for good (decision 0050).
"""

from collections.abc import Sequence
from typing import Any, Final

from kafkalite.sim.client import Client, Unanswered
from kafkalite.sim.invariants import InvariantBroken
from kafkalite.sim.producers import PRODUCE_TIMEOUT_MS, PRODUCE_VERSION, Producer
from kafkalite.sim.runtime import SimClock
from kafkalite.sim.workload import RETRIED, Workload
from kafkalite.testing.history import Write
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.records import Record, build_batch

TOPIC: Final = "grown"
GROWN: Final = tuple(TopicPartition(TOPIC, index) for index in range(4))
CREATE_TOPICS_VERSION: Final = 5
CREATE_PARTITIONS_VERSION: Final = 1
TIMEOUT_MS: Final = 5_000
UNDER_WAY_MAX: Final = 5
DONE: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})

Batch = tuple[int, list[Write]]
"""First sequence, and what is written."""


class Grower:
    """Makes the topic, one partition after another.

    Args:
        client: its way to the brokers.
        work: what it is part of.
        brokers: how many there are.
    """

    def __init__(self, client: Client, work: Workload, brokers: int) -> None:
        self._client = client
        self._work = work
        self._brokers = brokers

    async def run(self) -> None:
        """Return when all partitions are there."""
        for count in range(1, len(GROWN) + 1):
            if not self._work.stopping.is_set():
                await self._work.pause(0.3, 3)
            while await self._grow(count) not in self._reached(count):
                await self._work.pause()

    @staticmethod
    def _reached(count: int) -> set[ErrorCode]:
        """Return the answers after which there are so many: the one before may have been lost."""
        again = ErrorCode.TOPIC_ALREADY_EXISTS if count == 1 else ErrorCode.INVALID_PARTITIONS
        return {ErrorCode.NONE, again}

    async def _grow(self, count: int) -> ErrorCode:
        factor = min(3, self._brokers)
        try:
            if count == 1:
                topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=factor)
                made: Any = await self._client.ask_anyone(
                    CREATE_TOPICS,
                    CREATE_TOPICS_VERSION,
                    CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS),
                )
                return ErrorCode(made.topics[0].error_code)
            grown: Any = await self._client.ask_anyone(
                CREATE_PARTITIONS,
                CREATE_PARTITIONS_VERSION,
                CreatePartitionsRequest(
                    topics=[CreatePartitionsTopic(name=TOPIC, count=count, assignments=None)],
                    timeout_ms=TIMEOUT_MS,
                ),
            )
            return ErrorCode(grown.results[0].error_code)
        except Unanswered:
            return ErrorCode.NETWORK_EXCEPTION


class PipelinedProducer(Producer):
    """An idempotent producer with several batches under way, to partitions there or not yet."""

    async def run(self) -> None:
        """Write until told to stop."""
        work = self._work
        await self._init()
        while not work.stopping.is_set():
            await self._deliver_all(work.random.choice(GROWN))
            await work.pause(0.01, 0.2)

    async def _deliver_all(self, place: TopicPartition) -> None:
        sequence = self._sequences.get(place, 0)
        batches: list[Batch] = []
        for _ in range(self._work.random.randint(2, UNDER_WAY_MAX)):
            writes = self._send_new(place)
            batches.append((sequence, writes))
            sequence += len(writes)
        self._sequences[place] = sequence
        acknowledged = -1
        while batches:
            codes = await self._send_all(place, batches)
            done = [first for (first, _), code in zip(batches, codes, strict=True) if code in DONE]
            acknowledged = max([acknowledged, *done])
            left: list[Batch] = []
            for (first, writes), code in zip(batches, codes, strict=True):
                is_implied = code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and first < acknowledged
                if code in DONE or is_implied:
                    for write in writes:
                        self._work.history.acknowledge(write, offset=-1)
                    self._work.count("written", len(writes))
                    continue
                is_behind = code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and bool(left)
                if code not in RETRIED and not is_behind:
                    raise InvariantBroken(
                        f"{self._client.name}: sequence {first} of {place}: {code.name}"
                    )
                left.append((first, writes))
            batches = left
            if batches:
                await self._work.pause(0.02, 0.2)
                await self._refresh(place)

    async def _send_all(self, place: TopicPartition, batches: Sequence[Batch]) -> list[ErrorCode]:
        leader = self._client.leader(place)
        address = leader[0] if leader is not None else self._client.anyone()
        try:
            answers = await self._client.ask_all(
                address,
                PRODUCE,
                PRODUCE_VERSION,
                [self._request(place, *batch) for batch in batches],
                pause_s=self._work.random.uniform(0, 0.02),
            )
        except Unanswered:
            return [ErrorCode.NETWORK_EXCEPTION] * len(batches)
        return [
            ErrorCode(answer.responses[0].partition_responses[0].error_code) for answer in answers
        ]

    def _request(
        self, place: TopicPartition, sequence: int, writes: Sequence[Write]
    ) -> ProduceRequest:
        now_ms = SimClock().wall_ms()
        batch = build_batch(
            [
                Record(offset=index, timestamp=now_ms, key=None, value=write.value.encode())
                for index, write in enumerate(writes)
            ],
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            base_sequence=sequence,
        )
        data = PartitionProduceData(index=place.partition, records=batch)
        topic = TopicProduceData(name=place.topic, partition_data=[data])
        return ProduceRequest(acks=-1, timeout_ms=PRODUCE_TIMEOUT_MS, topic_data=[topic])
