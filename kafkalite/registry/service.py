"""Asks the registry's shard, here or at the broker that leads it; says what failed.

Reads are answered by each broker, from what it has read of `_schemas`. All else is decided where
`_schemas-0` is led: other brokers hand the request on in an Envelope, as they do to the controller
(KIP-590), with the registry's mark in the place of an API key.
"""

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import trio

from kafkalite.api.envelope import REGISTRY_MARK
from kafkalite.coordinator.shard import Event
from kafkalite.deferred import Promise
from kafkalite.meta.events import CreateTopic
from kafkalite.registry.errors import RegistryError, RegistryErrorCode
from kafkalite.registry.follower import CHANNEL, FollowerState
from kafkalite.registry.model import RegistryState
from kafkalite.registry.shard import ABOUT_SCHEMAS, SCHEMAS_TOPIC, Look, work_of
from kafkalite.registry.values import ResolvedSchema
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.envelope import ENVELOPE, EnvelopeRequest

if TYPE_CHECKING:
    from kafkalite.api.context import Services
    from kafkalite.peers.clients import PeerClients

Answer = TypeVar("Answer")
Result = TypeVar("Result")

KEY: Final = ""
"""Key of the one shard."""

REPLICATION_FACTOR: Final = 3
TIMEOUT_S: Final = 15.0
"""Of a request, over elections and the shard's loading: ZooKeeper misses a broker after less."""

THREADS: Final = 4
"""Requests whose schemas are read at a time."""

PAUSE_S: Final = 0.02
ENVELOPE_TIMEOUT_MS: Final = 5_000
NOT_LED: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_CONTROLLER, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
"""What a broker answers that did nothing: the request may be handed on again."""


class HandedOn(NamedTuple):
    """A request of the registry's API on its way between brokers.

    Attributes:
        path: with the registry's prefix, as it was sent.
        is_repeatable: made twice it does what it does once.
    """

    method: str
    path: str
    query: dict[str, str]
    body: bytes

    @property
    def is_repeatable(self) -> bool:
        """Whether made twice it does and answers what it does once."""
        return self.method != "DELETE"

    def encode(self) -> bytes:
        """Return what goes into an envelope."""
        told = [self.method, self.path, self.query, self.body.decode("latin-1")]
        return REGISTRY_MARK + json.dumps(told).encode()

    @staticmethod
    def decode(frame: memoryview) -> "HandedOn":
        """Return what was in an envelope.

        Raises:
            KafkaError: INVALID_REQUEST, nothing that a broker of this version hands on.
        """
        try:
            method, path, query, body = json.loads(bytes(frame[len(REGISTRY_MARK) :]))
            return HandedOn(method, path, query, body.encode("latin-1"))
        except (ValueError, AttributeError, TypeError) as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"in an envelope: {error}") from None


async def in_thread(work: Callable[[], Result]) -> Result:
    """Return what work with the text of schemas gives; large ones take seconds."""
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = trio.CapacityLimiter(THREADS)
        _limiter.set(limiter)
    return await trio.to_thread.run_sync(work, limiter=limiter, abandon_on_cancel=True)


_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter | None] = trio.lowlevel.RunVar("registry")


class Registry:
    """The registry of one broker.

    Args:
        services: its parts.
        peers: the way to other brokers; None of a lone one.
    """

    def __init__(self, services: "Services", peers: "PeerClients | None") -> None:
        self._services = services
        self._peers = peers
        self._follower = None if peers is None else FollowerState(services.metadata, peers)

    @property
    def cluster_id(self) -> str:
        """The cluster's id; empty while it has none."""
        return self._services.metadata.image.cluster_id or ""

    async def ask(self, event: Event[Answer]) -> Answer:
        """Return the shard's answer to an event.

        Raises:
            RegistryError: its refusal; STORE or STORE_TIMED_OUT if it could not be asked.
            KafkaError: NOT_COORDINATOR, another broker has to be asked.
        """
        if SCHEMAS_TOPIC not in self._services.metadata.image.topics and isinstance(event, Look):
            await trio.lowlevel.checkpoint()
            nothing: Answer = event.function(RegistryState())  # nobody registered anything yet
            return nothing
        await self._ensure_topic()
        failure: KafkaError | None = None
        with trio.move_on_after(TIMEOUT_S):
            while True:
                try:
                    await self._prepare(event)
                    return await self._ask_now(event)
                except KafkaError as error:
                    failure = error
                is_elsewhere = failure.code is ErrorCode.NOT_COORDINATOR
                if is_elsewhere and self._follower is None:
                    raise self._failure(failure)
                if is_elsewhere and isinstance(event, Look):
                    state = await self._followed()
                    if state is not None:
                        found: Answer = event.function(state)
                        return found
                elif is_elsewhere:
                    raise failure
                elif failure.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    raise self._failure(failure)
                await trio.sleep(PAUSE_S)
        why = f": {failure.message}" if failure is not None and failure.message else ""
        raise RegistryError(
            RegistryErrorCode.STORE_TIMED_OUT, f"{SCHEMAS_TOPIC} could not be read in time{why}"
        )

    async def schema(self, schema_id: int) -> ResolvedSchema:
        """Return a schema by its id, with what it refers to. Raises as `ask`."""

        def look(state: RegistryState) -> ResolvedSchema:
            schema = state.schema(schema_id)
            return ResolvedSchema(schema, tuple(state.resolve(schema.references)))

        return await self.ask(Look(look))

    async def hand_on(self, request: HandedOn) -> tuple[int, bytes] | None:
        """Return status and body of the answer of the broker that leads; None if this one does.

        Raises:
            RegistryError: FORWARDING, nobody answered in time, or it is not known what became of a
                request that is not repeatable.
        """
        assert self._peers is not None, "a lone broker leads"
        metadata = self._services.metadata
        envelope = EnvelopeRequest(
            request_data=request.encode(), request_principal=b"", client_host_address=bytes(4)
        )
        why = "nobody leads it"
        with trio.move_on_after(TIMEOUT_S):
            while True:
                place = metadata.image.partition(SCHEMAS_TOPIC, 0)
                leader = -1 if place is None else place.leader
                if leader == self._services.config.node_id:
                    return None
                if leader >= 0:
                    try:
                        answer = await self._peers.request(
                            leader,
                            ENVELOPE,
                            envelope,
                            timeout_ms=ENVELOPE_TIMEOUT_MS,
                            channel=CHANNEL,
                        )
                    except KafkaError as error:
                        is_sent = error.code is not ErrorCode.BROKER_NOT_AVAILABLE
                        if is_sent and not request.is_repeatable:
                            raise _lost(leader, error) from error
                        why = str(error)
                    else:
                        if answer.response_data is not None and not answer.error_code:
                            status, body = json.loads(bytes(answer.response_data))
                            return status, body.encode("latin-1")
                        why = f"broker {leader} answers {ErrorCode(answer.error_code).name}"
                        if answer.error_code not in NOT_LED:
                            break
                await trio.sleep(PAUSE_S)
        raise RegistryError(
            RegistryErrorCode.FORWARDING,
            f"Error while forwarding to {SCHEMAS_TOPIC}'s leader: {why}",
        )

    # --- Inside ----------------------------------------------------------------------------------

    async def _followed(self) -> RegistryState | None:
        assert self._follower is not None
        try:
            return await self._follower.current()
        except KafkaError:
            return None

    async def _prepare(self, event: object) -> None:
        """Have a thread do what takes long of an event; what it finds is remembered.

        Raises:
            RegistryError: the schema cannot be read.
            KafkaError: as `_ask_now`.
        """
        if isinstance(event, ABOUT_SCHEMAS):
            work = await self._ask_now(Look(partial(work_of, event)))
            await in_thread(work)

    async def _ask_now(self, event: Event[Answer]) -> Answer:
        answer = self._services.coordinators.handle(SCHEMAS_TOPIC, KEY, event)
        if isinstance(answer, Promise):
            answer = await answer.wait()
        else:
            await trio.lowlevel.checkpoint()
        if isinstance(answer, RegistryError):
            raise answer
        return answer

    async def _ensure_topic(self) -> None:
        metadata = self._services.metadata
        if SCHEMAS_TOPIC in metadata.image.topics:
            return
        event = CreateTopic(
            name=SCHEMAS_TOPIC,
            topic_id=metadata.new_topic_id(),
            num_partitions=1,
            replication_factor=min(REPLICATION_FACTOR, max(1, len(metadata.image.brokers))),
            configs={"cleanup.policy": "compact"},
        )
        try:
            refused = await self._services.topic_creation.create_missing([event])
        except KafkaError as error:
            raise self._failure(error) from error
        if SCHEMAS_TOPIC in refused:
            raise self._failure(refused[SCHEMAS_TOPIC])

    def _failure(self, error: KafkaError) -> RegistryError:
        is_late = error.code is ErrorCode.REQUEST_TIMED_OUT
        code = RegistryErrorCode.STORE_TIMED_OUT if is_late else RegistryErrorCode.STORE
        return RegistryError(code, f"{SCHEMAS_TOPIC}: {error}")


def _lost(leader: int, error: KafkaError) -> RegistryError:
    return RegistryError(
        RegistryErrorCode.FORWARDING,
        f"broker {leader} did not answer, so whether it was done is not known: {error}",
    )
