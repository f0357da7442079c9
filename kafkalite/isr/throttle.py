"""Throttles of replication (KIP-73): which replicas, and how much of them in a second.

For followers that are not in sync, so that a reassignment leaves something for the others.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkalite.clock import Clock
    from kafkalite.config import BrokerConfig
    from kafkalite.isr.partition import Partition
    from kafkalite.meta.image import Image
    from kafkalite.types import TopicPartition

WILDCARD: Final = "*"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
UNLIMITED: Final = 2**63 - 1


def throttled_brokers(entries: Sequence[str], index: int) -> frozenset[int] | None:
    """Return the brokers whose replicas of partition `index` are throttled; None for all.

    Args:
        entries: of `leader.` or `follower.replication.throttled.replicas`: "*", or pairs
            "partition:broker".
        index: of the partition.
    """
    if WILDCARD in entries:
        return None
    pairs = (entry.strip().partition(":") for entry in entries)
    return frozenset(int(broker) for at, _, broker in pairs if at == str(index))


class RateWindow:
    """Bytes of the last second or so, against a rate.

    A bucket of tokens: it holds what the rate allows in `window_ms`, and may be overdrawn once,
    as whole batches are sent or not at all.
    """

    __slots__ = ("_checked_ms", "_rate", "_tokens", "_window_ms")

    def __init__(self, bytes_per_second: int, *, window_ms: int = 1_000, now_ms: int = 0) -> None:
        self._window_ms = window_ms
        self._rate = bytes_per_second
        self._tokens = self._capacity
        self._checked_ms = now_ms

    @property
    def bytes_per_second(self) -> int:
        """The rate."""
        return self._rate

    @property
    def _capacity(self) -> float:
        return self._rate * self._window_ms / 1_000

    def set_rate(self, bytes_per_second: int) -> None:
        """Follow a change of the setting."""
        if bytes_per_second != self._rate:
            self._rate = bytes_per_second
            self._tokens = self._capacity

    def is_exceeded(self, now_ms: int) -> bool:
        """Tell whether nothing more may be sent now."""
        if self._rate >= UNLIMITED:
            return False
        elapsed_ms = max(0, now_ms - self._checked_ms)
        self._checked_ms = max(self._checked_ms, now_ms)
        self._tokens = min(self._capacity, self._tokens + elapsed_ms * self._rate / 1_000)
        return self._tokens <= 0

    def on_sent(self, size_bytes: int) -> None:
        """Count what was sent."""
        if self._rate < UNLIMITED:
            self._tokens -= size_bytes


class LeaderThrottle(RateWindow):
    """Throttle of a leader for followers that are not in sync (KIP-73)."""

    __slots__ = ("_throttled",)

    def __init__(self, bytes_per_second: int, *, window_ms: int = 1_000, now_ms: int = 0) -> None:
        super().__init__(bytes_per_second, window_ms=window_ms, now_ms=now_ms)
        # Brokers throttled as followers of a partition, None for all; absent if there are none.
        self._throttled: dict[TopicPartition, frozenset[int] | None] = {}

    def configure(self, name: "TopicPartition", configs: Mapping[str, str]) -> None:
        """Follow the settings of a partition's topic."""
        text = configs.get(LEADER_REPLICAS, "").strip()
        brokers = throttled_brokers(text.split(","), name.partition) if text else frozenset[int]()
        if brokers is None or brokers:
            self._throttled[name] = brokers
        else:
            self.forget(name)

    def forget(self, name: "TopicPartition") -> None:
        """Forget a partition."""
        self._throttled.pop(name, None)

    def applies_to(self, partition: "Partition", replica_id: int, now_ms: int) -> bool:
        """Tell whether a follower gets nothing now: out of sync, and over the rate."""
        if not self._throttled or not self._is_counted(partition, replica_id):
            return False
        return self.is_exceeded(now_ms)

    def on_replicated(self, partition: "Partition", replica_id: int, size_bytes: int) -> None:
        """Count what a follower is sent, if it is throttled."""
        if self._throttled and self._is_counted(partition, replica_id):
            self.on_sent(size_bytes)

    def _is_counted(self, partition: "Partition", replica_id: int) -> bool:
        brokers = self._throttled.get(partition.topic_partition, frozenset[int]())
        leader = partition.leader
        return (
            (brokers is None or replica_id in brokers)
            and leader is not None
            and replica_id not in leader.state.isr
        )


class FollowerThrottle:
    """follower.replication.throttled.*: how much partitions may copy that are behind (KIP-73)."""

    def __init__(
        self, config: "BrokerConfig", image: "Callable[[], Image]", clock: "Clock"
    ) -> None:
        self._config = config
        self._image = image
        self._clock = clock
        self._window = RateWindow(
            config.int("follower.replication.throttled.rate"),
            window_ms=config.int("replication.quota.window.size.seconds") * 1_000,
            now_ms=clock.monotonic_ms(),
        )

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit, so that it matters which partitions are throttled."""
        return self._window.bytes_per_second < UNLIMITED

    def is_exceeded(self) -> bool:
        """Tell whether throttled partitions get nothing now; follows changes of the rate."""
        self._window.set_rate(self._config.int("follower.replication.throttled.rate"))
        return self._window.is_exceeded(self._clock.monotonic_ms())

    def applies_to(self, topic_partition: "TopicPartition") -> bool:
        """Tell whether a limit holds for this partition while it is behind."""
        if not self.is_limited:
            return False
        name, index = topic_partition
        topic = self._image().topics.get(name)
        text = "" if topic is None else topic.configs.get(FOLLOWER_REPLICAS, "")
        if not text.strip():
            return False
        brokers = throttled_brokers(text.split(","), index)
        return brokers is None or self._config.node_id in brokers

    def on_received(self, size_bytes: int) -> None:
        """Count what came for a partition that is throttled."""
        self._window.on_sent(size_bytes)
