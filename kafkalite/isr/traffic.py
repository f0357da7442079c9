"""Bytes and records that clients wrote to and read from each topic since this broker started.

The numbers never go down while a topic lives; what a deleted topic had stays in the total. After
Kafka's BrokerTopicMetrics.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(slots=True)
class TopicTraffic:
    """Counts of one topic, or of all; bytes are those of batches as they lie in the log."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    replication_bytes_out: int = 0
    produce_requests: int = 0
    """Batches that clients sent, one for each partition in a request; also refused ones."""
    failed_produce_requests: int = 0
    bytes_rejected: int = 0
    """Of batches that were too large."""
    failed_fetch_requests: int = 0
    """Times that a client or a follower was refused a partition."""
    fetch_requests: int = 0
    """Times that a partition had something for a consumer or a follower."""

    def add(self, other: "TopicTraffic") -> None:
        """Count what `other` counted."""
        for each in _NAMES:
            setattr(self, each, getattr(self, each) + getattr(other, each))


_NAMES = [field.name for field in fields(TopicTraffic)]


class Traffic:
    """The counts of all topics with a replica on this broker."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicTraffic] = {}
        self._gone = TopicTraffic()
        self.refused_produce_requests = 0
        """Batches for partitions that are not led here."""

    @property
    def topics(self) -> Mapping[str, TopicTraffic]:
        """By name; not to be changed."""
        return self._topics

    def of(self, topic: str) -> TopicTraffic:
        """Return the counts of a topic; they begin at nothing."""
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = TopicTraffic()
        return found

    def forget(self, topic: str) -> None:
        """Count a topic only in the total from now on."""
        gone = self._topics.pop(topic, None)
        if gone is not None:
            self._gone.add(gone)

    def total(self) -> TopicTraffic:
        """Return what all topics had together, also those that are gone."""
        total = TopicTraffic()
        total.add(self._gone)
        for topic in self._topics.values():
            total.add(topic)
        return total
