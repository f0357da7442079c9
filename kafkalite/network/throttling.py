"""Answers to clients that have quotas, with the time that they are to wait (KIP-219).

Imported only where there are quotas.
"""

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

from kafkalite.api.handler import EncodedAnswer, NoResponse, RelayedAnswer
from kafkalite.quota.clients import PERCENT, user_of_principal
from kafkalite.types import ZERO_UUID
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.fetch import FetchResponse

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext, Services
    from kafkalite.network.in_flight import InFlightRequest
    from kafkalite.network.transport import Chunk
    from kafkalite.quota.clients import ClientQuotas
    from kafkalite.wire.messages.fetch import FetchRequest

EXEMPT: Final = frozenset(
    {
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    }
)
"""What brokers ask, and logins: none of it is held back (rule 562)."""

RECORDS: Final = (ApiKey.FETCH, ApiKey.SHARE_FETCH)
FIELD: Final = "throttle_time_ms"
FIELD_BYTES: Final = 4
CORRELATION_ID_BYTES: Final = 4
FULL_EPOCHS: Final = (0, -1)
"""Epochs of a Fetch that names all its partitions."""

Encode = Callable[["InFlightRequest"], "list[Chunk]"]


class Throttle:
    """Counts what is answered, and tells clients to wait.

    Args:
        quotas: what is allowed, and what was used.
        services: of the broker.
    """

    def __init__(self, quotas: "ClientQuotas", services: "Services") -> None:
        self._quotas = quotas
        self._services = services

    def encode(
        self, exchange: "InFlightRequest", context: "RequestContext", encode: Encode
    ) -> "tuple[list[Chunk], int]":
        """Return an answer's bytes, and for how many milliseconds its client is to be muted.

        Args:
            exchange: whose result is a response, or stands for none.
            context: of its connection.
            encode: makes bytes of it.

        Raises:
            CloseConnection: as `encode`.
        """
        key = exchange.handler.api.key
        if key in EXEMPT or (key is ApiKey.FETCH and _is_of_follower(exchange.request)):
            return encode(exchange), 0
        began_s = perf_counter()
        chunks = encode(exchange)
        now_ms = self._services.clock.monotonic_ms()
        who = user_of_principal(context.principal), exchange.header.client_id
        request_ms = bytes_ms = 0
        kind = self._quotas.request
        is_unanswered = isinstance(exchange.result, NoResponse)
        if self._quotas.request.limits and not is_unanswered:
            busy_s = _busy_s(exchange, began_s)
            request_ms = self._quotas.request.record(*who, busy_s * PERCENT, now_ms)
        sent_bytes = 0
        if key is ApiKey.PRODUCE:
            bytes_ms = self._quotas.produce.record(*who, len(exchange.frame), now_ms)
            kind = self._quotas.produce
        elif key in RECORDS and self._quotas.fetch.limits:
            # Kafka adds 4 to the size of the answer without its header.
            sent_bytes = sum(map(len, chunks)) - _header_bytes(exchange)
            bytes_ms = self._quotas.fetch.record(*who, sent_bytes, now_ms)
            kind = self._quotas.fetch
        if bytes_ms > request_ms:
            kind.throttled(*who, bytes_ms, now_ms)
        else:
            self._quotas.request.throttled(*who, request_ms, now_ms)
        throttle_ms = max(request_ms, bytes_ms, _told_ms(exchange))
        if throttle_ms:
            by_api = self._quotas.throttled_ms_by_api
            by_api[key] = by_api.get(key, 0) + throttle_ms
        if not throttle_ms or is_unanswered:
            return chunks, throttle_ms
        response = exchange.response
        if key is ApiKey.FETCH and isinstance(response, FetchResponse):
            self._quotas.fetch.take_back(*who, sent_bytes, now_ms)
            exchange.result = self._emptied(exchange.request, response)
        return _told(exchange, throttle_ms, chunks, encode), throttle_ms

    def _emptied(self, request: "FetchRequest", response: FetchResponse) -> FetchResponse:
        """Return a Fetch's answer without records, and forget that they were told (rule 561)."""
        sessions = self._services.fetch_sessions
        is_full = request.session_epoch in FULL_EPOCHS
        if is_full:
            sessions.forget(response.session_id)
        else:
            sessions.not_told(response.session_id, response.responses)
        replicas = self._services.replicas
        for topic in response.responses:
            for data in topic.partitions:
                if not data.records:
                    continue
                try:
                    if topic.topic_id != ZERO_UUID:
                        replica = replicas.replica_by_id(topic.topic_id, data.partition_index)
                    else:
                        replica = replicas.replica(topic.topic, data.partition_index)
                except KafkaError:
                    continue  # it was deleted meanwhile
                replica.traffic.bytes_out -= len(data.records)
        return FetchResponse(
            error_code=response.error_code, session_id=0 if is_full else response.session_id
        )


def _is_of_follower(request: "FetchRequest") -> bool:
    return request.replica_id >= 0 or request.replica_state.replica_id >= 0


def _busy_s(exchange: "InFlightRequest", began_s: float) -> float:
    """Return for how long a request kept the loop busy: its handler, and encoding its answer."""
    busy_s = perf_counter() - began_s
    if exchange.began_s:
        busy_s += (exchange.handled_s or began_s) - exchange.began_s
    return busy_s


def _header_bytes(exchange: "InFlightRequest") -> int:
    """Return the size of an answer's header, without that of the frame in front of it."""
    api, version = exchange.handler.api, exchange.header.api_version
    is_flexible = api.flexible_from is not None and version >= api.flexible_from
    return CORRELATION_ID_BYTES + (is_flexible and api.key is not ApiKey.API_VERSIONS)


def _told_ms(exchange: "InFlightRequest") -> int:
    """Return how long the handler, or the controller, tells the client to wait."""
    result = exchange.result
    if isinstance(result, RelayedAnswer):
        if not _begins_with_field(exchange):
            return 0
        at = _header_bytes(exchange)
        return int.from_bytes(bytes(result.data[at : at + FIELD_BYTES]), "big")
    return getattr(exchange.response, FIELD, 0)


def _begins_with_field(exchange: "InFlightRequest") -> bool:
    """Tell whether the time to wait is the first thing in the answer, as it nearly always is."""
    fields = exchange.handler.api.response.record.FIELDS
    first = next((one for one in fields if one.exists_at(exchange.header.api_version)), None)
    return first is not None and first.name == FIELD


def _told(
    exchange: "InFlightRequest", throttle_ms: int, chunks: "list[Chunk]", encode: Encode
) -> "list[Chunk]":
    """Return the bytes of an answer that tells the client to wait."""
    result = exchange.result
    if isinstance(result, RelayedAnswer | EncodedAnswer):
        if not _begins_with_field(exchange):
            return chunks
        # Records, the only chunks that are no bytes, come later.
        at = FIELD_BYTES + _header_bytes(exchange)
        data, taken = bytearray(), 0
        while len(data) < at + FIELD_BYTES:
            data += cast("bytes", chunks[taken])
            taken += 1
        data[at : at + FIELD_BYTES] = throttle_ms.to_bytes(FIELD_BYTES, "big")
        return [bytes(data), *chunks[taken:]]
    if hasattr(result, FIELD):
        setattr(result, FIELD, throttle_ms)
        return encode(exchange)
    return chunks
