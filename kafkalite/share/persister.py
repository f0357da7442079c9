"""How leaders of share partitions, and group coordinators, ask share coordinators (rule 423).

The coordinator of this broker is asked directly, without a task switch where its log is replicated
at once; another one over the network, together with all else that is for it. What is asked about
one share partition is answered in order: a write that was overtaken by a later one would bring back
a start offset from before.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import trio

from kafkalite.deferred import Promise
from kafkalite.share.events import StateEvent
from kafkalite.share.state_requests import PASSING, send_questions
from kafkalite.txn.request_batcher import RequestBatcher
from kafkalite.types import SHARE_GROUP_STATE_TOPIC
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.coordinator.runtime import CoordinatorRuntime
    from kafkalite.meta.peers import Peers
    from kafkalite.types import TopicPartition

ATTEMPTS_MAX = 5
BACKOFF_S = 1.0
BACKOFF_S_MAX = 30.0
"""As Kafka's persister: pauses of 1, 2, 4 and 8 seconds."""

Answer = TypeVar("Answer")
Outcome: TypeAlias = Any
"""What the shard answers, of some type or other, or a KafkaError."""


@dataclass(slots=True)
class _PendingRequest:
    event: StateEvent[Any]
    give: Callable[[Any], object]
    parked: Promise[Any] | None = None
    """Where the shard has decided already, and its log is not replicated yet."""


@dataclass(slots=True)
class _Parcel:
    """Questions about one share partition for another broker."""

    questions: list[_PendingRequest]
    answers: list[Outcome] = field(default_factory=list)
    is_answered: trio.Event = field(default_factory=trio.Event)


class Persister:
    """The way to all share coordinators."""

    def __init__(
        self,
        runtime: "CoordinatorRuntime",
        *,
        ensure_topic: Callable[[str], Awaitable[object]],
        broker_id: int = -1,
        leader_of: "Callable[[TopicPartition], int | None]" = lambda _: None,
        peers: "Peers | None" = None,
        request_timeout_ms: int = 30_000,
    ) -> None:
        """Make the way to them.

        Args:
            runtime: with the shards of this broker.
            ensure_topic: makes the internal topic if it is not there.
            broker_id: of this broker.
            leader_of: returns the broker that leads a partition, None if there is none now.
            peers: the other brokers; None if there are none, ever.
            request_timeout_ms: how long they may take to answer.
        """
        self._runtime = runtime
        self._ensure_topic = ensure_topic
        self._broker_id = broker_id
        self._leader_of = leader_of
        self._peers = peers
        self._timeout_ms = request_timeout_ms
        self._queues: dict[str, deque[_PendingRequest]] = {}
        self._to_serve: deque[str] = deque()
        self._wakeup = trio.Event()
        self._batcher: RequestBatcher[_Parcel] = RequestBatcher(self._send)

    def ask(self, event: StateEvent[Answer], give: Callable[[Answer | KafkaError], object]) -> None:
        """Ask; `give` is called once with the answer or a KafkaError, perhaps before this returns.

        It must not raise. The answer comes within the time of ATTEMPTS_MAX attempts.
        """
        question = _PendingRequest(event, give)
        key = event.key.coordinator_key
        queue = self._queues.get(key)
        if queue is not None:
            queue.append(question)
            return
        try:
            answer = self._runtime.handle(SHARE_GROUP_STATE_TOPIC, key, event)
        except KafkaError as error:
            if error.code not in PASSING:
                give(error)
                return
        else:
            if not isinstance(answer, Promise):
                give(answer)
                return
            question.parked = answer
        self._queues[key] = deque([question])
        self._to_serve.append(key)
        self._wakeup.set()

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Ask what could not be answered at once, until cancelled."""
        async with trio.open_nursery() as nursery:
            if self._peers is not None:
                nursery.start_soon(self._batcher.run)
            task_status.started()
            while True:
                self._wakeup = trio.Event()
                while self._to_serve:
                    nursery.start_soon(self._serve, self._to_serve.popleft())
                await self._wakeup.wait()

    async def _serve(self, key: str) -> None:
        """Ask all that is asked about one share partition, in order."""
        queue = self._queues[key]
        while queue:
            questions = [*queue]
            queue.clear()
            answers = await self._answers(key, questions)
            for question, answer in zip(questions, answers, strict=True):
                question.give(answer)
        del self._queues[key]

    async def _answers(self, key: str, questions: list[_PendingRequest]) -> list[Outcome]:
        """Return an answer for each; what is refused for now is asked again."""
        answers: list[Outcome] = [None] * len(questions)
        left = [*range(len(questions))]
        pause_s = BACKOFF_S
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, BACKOFF_S_MAX)
            for index, answer in zip(
                left, await self._attempt(key, [questions[index] for index in left]), strict=True
            ):
                answers[index] = answer
            left = [
                index
                for index in left
                if isinstance(answers[index], KafkaError) and answers[index].code in PASSING
            ]
            if not left:
                break
        return answers

    async def _attempt(self, key: str, questions: list[_PendingRequest]) -> list[Outcome]:
        try:
            place = self._runtime.location_of(SHARE_GROUP_STATE_TOPIC, key)
            if place is None:
                await self._ensure_topic(SHARE_GROUP_STATE_TOPIC)
                place = self._runtime.location_of(SHARE_GROUP_STATE_TOPIC, key)
        except KafkaError as error:
            return [_unavailable(key, str(error))] * len(questions)
        if place is None:
            return [_unavailable(key, "its topic is not there yet")] * len(questions)
        leader = self._broker_id if place.is_here else self._leader_of(place.topic_partition)
        if place.is_here or leader == self._broker_id or self._peers is None:
            return await self._ask_all_here(key, questions)
        if leader is None:
            return [_unavailable(key, "its partition has no leader")] * len(questions)
        parcel = _Parcel(questions)
        self._batcher.add(leader, parcel)
        await parcel.is_answered.wait()
        return parcel.answers

    async def _ask_all_here(self, key: str, questions: list[_PendingRequest]) -> list[Outcome]:
        """Ask one after another; what follows one to be asked again is to be asked after it."""
        answers: list[Outcome] = []
        for question in questions:
            answer = await self._ask_here(key, question)
            if isinstance(answer, KafkaError) and answer.code in PASSING:
                return [*answers, *[answer] * (len(questions) - len(answers))]
            answers.append(answer)
        return answers

    async def _ask_here(self, key: str, question: _PendingRequest) -> Outcome:
        parked, question.parked = question.parked, None
        try:
            if parked is None:
                event = question.event
                answer = self._runtime.handle(SHARE_GROUP_STATE_TOPIC, key, event)
                if not isinstance(answer, Promise):
                    return answer
                parked = answer
            return await parked.wait()
        except KafkaError as error:
            return error

    async def _send(self, broker_id: int, parcels: list[_Parcel]) -> None:
        assert self._peers is not None
        events = [question.event for parcel in parcels for question in parcel.questions]
        failed = KafkaError(ErrorCode.NETWORK_EXCEPTION, "the question was broken off")
        answers: list[Outcome] = [failed] * len(events)
        try:
            answers = await send_questions(
                self._peers, broker_id, events, timeout_ms=self._timeout_ms
            )
        finally:
            position = 0
            for parcel in parcels:
                end = position + len(parcel.questions)
                parcel.answers = answers[position:end]
                parcel.is_answered.set()
                position = end


def _unavailable(key: str, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the share coordinator of {key!r}: {reason}"
    )
