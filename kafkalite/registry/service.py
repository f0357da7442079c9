"""Asks the registry's shard: makes its topic, waits for what is not there yet, says what failed."""

from typing import TYPE_CHECKING, Any, Final

import trio

from kafkalite.coordinator.slot import Parked
from kafkalite.meta.events import CreateTopic
from kafkalite.registry.errors import RegistryError, RegistryErrorCode
from kafkalite.registry.model import RegistryState
from kafkalite.registry.shard import SCHEMAS_TOPIC, Look
from kafkalite.registry.values import ResolvedSchema
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.api.context import Services

KEY: Final = ""
"""Key of the one shard."""

REPLICATION_FACTOR: Final = 3
LOAD_TIMEOUT_S: Final = 10.0
LOAD_PAUSE_S: Final = 0.02


class Registry:
    """The registry of one broker; answers where that leads the one partition of `_schemas`."""

    def __init__(self, services: "Services") -> None:
        self._services = services

    async def ask(self, event: object) -> Any:
        """Return the shard's answer to an event.

        Raises:
            RegistryError: its refusal; STORE, STORE_TIMED_OUT or FORWARDING if it could not be
                asked.
        """
        if SCHEMAS_TOPIC not in self._services.metadata.image.topics and isinstance(event, Look):
            await trio.lowlevel.checkpoint()
            return event.function(RegistryState())  # nobody registered anything yet
        await self._ensure_topic()
        with trio.move_on_after(LOAD_TIMEOUT_S):
            while True:
                try:
                    return await self._ask_now(event)
                except KafkaError as error:
                    if error.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                        raise self._failure(error) from error
                await trio.sleep(LOAD_PAUSE_S)
        raise RegistryError(RegistryErrorCode.STORE_TIMED_OUT, f"{SCHEMAS_TOPIC} is being read")

    async def schema(self, schema_id: int) -> ResolvedSchema:
        """Return a schema by its id, with what it refers to. Raises as `ask`."""

        def look(state: RegistryState) -> ResolvedSchema:
            schema = state.schema(schema_id)
            return ResolvedSchema(schema, tuple(state.resolve(schema.references)))

        found: ResolvedSchema = await self.ask(Look(look))
        return found

    async def _ask_now(self, event: object) -> Any:
        answer = self._services.coordinators.handle(SCHEMAS_TOPIC, KEY, event)
        if isinstance(answer, Parked):
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
        (result,) = await metadata.submit_all([event])
        if isinstance(result, KafkaError) and result.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise self._failure(result)

    def _failure(self, error: KafkaError) -> RegistryError:
        if error.code is ErrorCode.NOT_COORDINATOR:
            state = self._services.metadata.image.partition(SCHEMAS_TOPIC, 0)
            leader = "nobody" if state is None or state.leader < 0 else f"broker {state.leader}"
            return RegistryError(
                RegistryErrorCode.FORWARDING,
                f"{SCHEMAS_TOPIC} is led by {leader}: ask its schema registry",
            )
        return RegistryError(RegistryErrorCode.STORE, f"{SCHEMAS_TOPIC}: {error}")
