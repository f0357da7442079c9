"""The registry's state at a broker that does not lead `_schemas-0`, read from the one that does."""

from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

import trio

from kafkalite.client.consumer import visible_batches
from kafkalite.http.slices import Slices
from kafkalite.registry.codec import RegistryCodec
from kafkalite.registry.errors import RegistryError, RegistryErrorCode
from kafkalite.registry.model import RegistryState
from kafkalite.registry.shard import SCHEMAS_TOPIC
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafkalite.wire.records import iterate_records

if TYPE_CHECKING:
    from kafkalite.meta.runner import MetadataRunner
    from kafkalite.peers.clients import PeerClients
    from kafkalite.wire.api import Api

CHANNEL: Final = "registry"
"""Connections to other brokers: nobody else waits for what is asked here."""

FETCH_BYTES: Final = 1024 * 1024
FETCH_TIMEOUT_MS: Final = 2_000
BATCH_MAX_BYTES: Final = 64 * 1024 * 1024
LAST_VERSION_WITH_NAMES: Final = 12
"""Later versions of Fetch call topics by their ids."""


class FollowerState:
    """State by `_schemas`, as far as it was read; each look reads on to the high watermark.

    So whoever registers at one broker finds it at all others at once, and while nobody leads there
    is what was read before.
    """

    def __init__(self, metadata: "MetadataRunner", peers: "PeerClients") -> None:
        self._metadata = metadata
        self._peers = peers
        self._codec = RegistryCodec()
        self._turn = trio.Lock()
        self._topic_id: UUID | None = None
        self._position = 0
        self._begin_anew(None)

    def _begin_anew(self, topic_id: UUID | None, position: int = 0) -> None:
        self._topic_id = topic_id
        self._position = position
        self._was_read = False
        self.state = RegistryState()

    async def current(self) -> RegistryState:
        """Return the state up to the leader's high watermark; of before if it does not answer.

        Raises:
            KafkaError: nobody answers, and nothing was read before.
            RegistryError: STORE, the topic is gone.
        """
        async with self._turn:
            topic = self._metadata.image.topics.get(SCHEMAS_TOPIC)
            if topic is None:
                raise RegistryError(RegistryErrorCode.STORE, f"{SCHEMAS_TOPIC} was deleted")
            if topic.topic_id != self._topic_id:
                self._begin_anew(topic.topic_id)
            try:
                await self._read_on()
            except KafkaError:
                if not self._was_read:
                    raise
            return self.state

    async def _read_on(self) -> None:
        slices = Slices()
        while True:
            data = await self._fetch()
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._begin_anew(self._topic_id, max(0, data.log_start_offset))
                continue
            if data.error_code:
                raise KafkaError(ErrorCode(data.error_code), SCHEMAS_TOPIC)
            before = self._position
            for header, batch in visible_batches(
                memoryview(cast("bytes", data.records or b"")), None
            ):
                records = () if batch is None else iterate_records(batch, max_bytes=BATCH_MAX_BYTES)
                for record in records:
                    if record.offset >= self._position and record.key is not None:
                        self._replay(record.key, record.value)
                    await slices.breathe()
                self._position = max(self._position, header.next_offset)
            if self._position >= data.high_watermark:
                self._was_read = True
                return
            if self._position == before:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{SCHEMAS_TOPIC}: nothing was read")

    def _replay(self, key: bytes, value: bytes | None) -> None:
        record = self._codec.decode(key, value)
        if record is not None:
            stored_key: Any = record.key
            stored_value: Any = record.value
            self.state.replay(stored_key, stored_value)

    async def _fetch(self) -> PartitionData:
        place = self._metadata.image.partition(SCHEMAS_TOPIC, 0)
        if place is None or place.leader < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"nobody leads {SCHEMAS_TOPIC}")
        wanted = FetchPartition(
            partition=0, fetch_offset=self._position, partition_max_bytes=FETCH_BYTES
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=FETCH_BYTES,
            topics=[FetchTopic(topic=SCHEMAS_TOPIC, partitions=[wanted])],
        )
        answer = await self._peers.request(
            place.leader, _FETCH, request, timeout_ms=FETCH_TIMEOUT_MS, channel=CHANNEL
        )
        if answer.error_code or not answer.responses:
            raise KafkaError(ErrorCode(answer.error_code), SCHEMAS_TOPIC)
        (data,) = answer.responses[0].partitions
        return data


def _by_name() -> "Api[FetchRequest, FetchResponse]":
    capped = object.__new__(type(FETCH))
    capped.__dict__.update(FETCH.__dict__)
    capped.versions = (FETCH.versions[0], LAST_VERSION_WITH_NAMES)
    return capped


_FETCH: Final = _by_name()
