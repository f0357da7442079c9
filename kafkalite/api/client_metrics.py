"""Metrics that clients push, and what they are asked for (KIP-714).

After Kafka's ClientMetricsManager.

Subscriptions are resources of the kind CLIENT_METRICS. What a client is to push follows from those
that match it; the subscription's id follows from that and from the client instance's, so that
another broker gives and knows the same one.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple
from uuid import UUID
from zlib import crc32

from kafkalite.meta.changes import CLIENT_METRICS_RESOURCE
from kafkalite.meta.image import ConfigResource
from kafkalite.settings.config_def import SettingError, parse_value, split_list
from kafkalite.settings.registry import CLIENT_METRICS
from kafkalite.types import ZERO_UUID
from kafkalite.wire.compression import Codec, decompress
from kafkalite.wire.errors import ErrorCode, KafkaError, MalformedMessage
from kafkalite.wire.telemetry import read_metrics

INSTANCES_MAX: Final = 16_384
"""Client instances that are remembered, as in Kafka; the one not heard of for longest goes."""
KEPT_BYTES_MAX: Final = 16 << 20
"""Of the last metrics of all instances, decompressed; those of the instance longest silent go."""
INTERVAL_MS_DEFAULT: Final = 300_000
ALL_METRICS: Final = "*"
ATTRIBUTE_LENGTH_MAX: Final = 256
"""Characters of a client's name that patterns look at."""
RESERVED_IDS: Final = (ZERO_UUID, UUID(int=1))
"""No client instance has these; they mean "none" and the metadata topic in Kafka."""


class ClientAttributes(NamedTuple):
    """Attributes of a client, which the patterns of a subscription are compared with."""

    client_id: str
    client_software_name: str | None
    client_software_version: str | None
    client_source_address: str
    client_source_port: str


class Subscription(NamedTuple):
    """Metrics that one client instance is asked for.

    Attributes:
        subscription_id: changes with the rest.
        metrics: prefixes of names; "*" alone for all, nothing for none.
        push_interval_ms: the shortest of the subscriptions that match.
    """

    subscription_id: int
    metrics: tuple[str, ...]
    push_interval_ms: int


@dataclass(slots=True, kw_only=True)
class ClientInstance:
    """One client, as long as it is remembered.

    Attributes:
        instance_id: that it was given, and names in each request.
        connection_id: of the connection that it asks on; on another one its intervals begin anew.
        pushes: accepted so far.
        pushed_bytes: of them, as they came.
        last_push_ms: wall clock of the last of them; -1 before.
        payload: its last metrics, decompressed; empty once others need the room.
    """

    instance_id: UUID
    client: ClientAttributes
    connection_id: int
    subscription: Subscription
    pushes: int = 0
    pushed_bytes: int = 0
    last_get_ms: int = -1
    last_push_ms: int = -1
    payload: bytes = b""
    terminating: bool = False
    last_error: ErrorCode = field(default=ErrorCode.NONE)

    @property
    def metrics(self) -> dict[str, float]:
        """The values that it pushed last, by name; none where they cannot be read."""
        try:
            return read_metrics(self.payload)
        except MalformedMessage:
            return {}


class ClientMetrics:
    """All client instances that this broker has heard of lately.

    Args:
        telemetry_max_bytes: of one push, as it comes and decompressed.
    """

    def __init__(self, *, telemetry_max_bytes: int) -> None:
        self.telemetry_max_bytes = telemetry_max_bytes
        self._instances: OrderedDict[UUID, ClientInstance] = OrderedDict()
        self._subscriptions: Sequence[_Pattern] = ()
        self._configs: object = None
        self._kept_bytes = 0

    def instances(self) -> list[ClientInstance]:
        """Return them, the one heard of last at the end; not to be changed."""
        return list(self._instances.values())

    def snapshot(self) -> list[ClientInstance]:
        """Return copies of those that pushed anything, the one heard of last at the end."""
        return [replace(each) for each in self._instances.values() if each.pushes]

    def update(self, configs: Mapping[ConfigResource, Mapping[str, str]]) -> None:
        """Take over the subscriptions among the image's settings; the same ones cost nothing."""
        if configs is self._configs:
            return
        self._configs = configs
        self._subscriptions = [
            _Pattern.of(values)
            for resource, values in sorted(configs.items())
            if resource.type == CLIENT_METRICS_RESOURCE
        ]

    def subscribe(
        self, instance_id: UUID, client: ClientAttributes, *, connection_id: int, now_ms: int
    ) -> ClientInstance:
        """Return the instance with what it is to push (GetTelemetrySubscriptions).

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED: it asked before the interval was over, and
                nothing changed.
        """
        instance, is_new = self._instance(instance_id, client, connection_id)
        last_ms = max(instance.last_get_ms, instance.last_push_ms)
        has_cause = is_new or instance.last_error in (
            ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        )
        if not has_cause and 0 <= now_ms - last_ms < instance.subscription.push_interval_ms:
            raise _too_early(instance_id)
        instance.last_get_ms = now_ms
        instance.last_error = ErrorCode.NONE
        return instance

    def push(
        self,
        instance_id: UUID,
        client: ClientAttributes,
        *,
        connection_id: int,
        now_ms: int,
        subscription_id: int,
        terminating: bool,
        compression_type: int,
        metrics: bytes,
    ) -> None:
        """Keep what a client pushes (PushTelemetry), in Kafka's order of checks.

        Raises:
            KafkaError: INVALID_REQUEST, THROTTLING_QUOTA_EXCEEDED, UNKNOWN_SUBSCRIPTION_ID,
                UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE, INVALID_RECORD.
        """
        if instance_id in RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "invalid client instance id")
        instance, _ = self._instance(instance_id, client, connection_id)
        try:
            self._check_push(
                instance,
                now_ms=now_ms,
                subscription_id=subscription_id,
                terminating=terminating,
                compression_type=compression_type,
                size=len(metrics),
            )
            if metrics:
                self._keep(instance, self._decompressed(Codec(compression_type), metrics))
        except KafkaError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.terminating = terminating
        instance.last_error = ErrorCode.NONE
        instance.pushes += 1
        instance.pushed_bytes += len(metrics)

    def _instance(
        self, instance_id: UUID, client: ClientAttributes, connection_id: int
    ) -> tuple[ClientInstance, bool]:
        """Return an instance, and whether it is new or asked for other things than before."""
        subscription = self._subscription(instance_id, client)
        known = self._instances.get(instance_id)
        if known is not None:
            self._instances.move_to_end(instance_id)
            if (known.connection_id, known.subscription) == (connection_id, subscription):
                return known, False
            known.client, known.connection_id = client, connection_id
            known.subscription = subscription
            known.last_get_ms = known.last_push_ms = -1
            known.terminating = False
            known.last_error = ErrorCode.NONE
            return known, True
        made = ClientInstance(
            instance_id=instance_id,
            client=client,
            connection_id=connection_id,
            subscription=subscription,
        )
        self._instances[instance_id] = made
        if len(self._instances) > INSTANCES_MAX:
            _, gone = self._instances.popitem(last=False)
            self._kept_bytes -= len(gone.payload)
        return made, True

    def _subscription(self, instance_id: UUID, client: ClientAttributes) -> Subscription:
        metrics: set[str] = set()
        interval_ms = INTERVAL_MS_DEFAULT
        for each in self._subscriptions:
            if each.matches(instance_id, client):
                metrics.update(each.metrics)
                interval_ms = min(interval_ms, each.interval_ms)
        names = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
        mixed = crc32(repr((names, interval_ms)).encode()) ^ crc32(instance_id.bytes)
        # The id is a signed number on the wire.
        return Subscription(mixed - (1 << 32) if mixed >= 1 << 31 else mixed, names, interval_ms)

    def _check_push(
        self,
        instance: ClientInstance,
        *,
        now_ms: int,
        subscription_id: int,
        terminating: bool,
        compression_type: int,
        size: int,
    ) -> None:
        if instance.terminating:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"client instance {instance.instance_id} has sent its last metrics before",
            )
        interval_ms = instance.subscription.push_interval_ms
        # The first push after asking may come early: clients spread themselves over the interval.
        if instance.last_get_ms > instance.last_push_ms or not (
            0 <= now_ms - instance.last_push_ms < interval_ms and instance.last_push_ms >= 0
        ):
            instance.last_push_ms = now_ms
        elif not terminating:
            raise _too_early(instance.instance_id)
        if subscription_id != instance.subscription.subscription_id:
            raise KafkaError(
                ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
                f"client instance {instance.instance_id} has another subscription",
            )
        if compression_type not in tuple(Codec):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression type {compression_type}"
            )
        if size > self.telemetry_max_bytes:
            raise KafkaError(
                ErrorCode.TELEMETRY_TOO_LARGE,
                f"{size} bytes of metrics are more than telemetry.max.bytes "
                f"({self.telemetry_max_bytes})",
            )

    def _decompressed(self, codec: Codec, metrics: bytes) -> bytes:
        """Return the metrics decompressed. They are read when somebody wants to see them."""
        try:
            return decompress(codec, metrics, max_bytes=self.telemetry_max_bytes)
        except KafkaError as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"metrics: {error.message}") from None

    def _keep(self, instance: ClientInstance, payload: bytes) -> None:
        self._kept_bytes += len(payload) - len(instance.payload)
        instance.payload = payload
        if self._kept_bytes <= KEPT_BYTES_MAX:
            return
        for other in self._instances.values():
            if other is not instance:
                self._kept_bytes -= len(other.payload)
                other.payload = b""
            if self._kept_bytes <= KEPT_BYTES_MAX:
                return


class _Pattern(NamedTuple):
    """One subscription: what it wants, of whom."""

    metrics: tuple[str, ...]
    interval_ms: int
    expressions: tuple[tuple[str, re.Pattern[str]], ...]

    @classmethod
    def of(cls, configs: Mapping[str, str]) -> "_Pattern":
        interval = CLIENT_METRICS["interval.ms"]
        try:
            interval_ms = parse_value(interval, configs.get(interval.name, "300000"))
            assert isinstance(interval_ms, int)
        except SettingError:
            interval_ms = INTERVAL_MS_DEFAULT
        return cls(
            metrics=split_list(configs.get("metrics", "")),
            interval_ms=interval_ms,
            expressions=tuple(_expressions(split_list(configs.get("match", "")))),
        )

    def matches(self, instance_id: UUID, client: ClientAttributes) -> bool:
        """Tell whether each of the attributes that are named is as it is to be, as a whole."""
        attributes = {**client._asdict(), "client_instance_id": str(instance_id)}
        for name, expression in self.expressions:
            value = attributes.get(name)
            if value is None or not expression.fullmatch(value[:ATTRIBUTE_LENGTH_MAX]):
                return False
        return True


def _expressions(match: Iterable[str]) -> Iterable[tuple[str, re.Pattern[str]]]:
    for pattern in match:
        name, _, expression = pattern.partition("=")
        yield name.strip(), re.compile(expression.strip())


def _too_early(instance_id: UUID) -> KafkaError:
    return KafkaError(
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        f"client instance {instance_id} asks before its interval is over",
    )
