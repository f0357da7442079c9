"""What the transactional parts of the Python drivers share; runs in the driver's process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from compat_tests.driver_program import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What a transforming worker puts before the value that it read.
SEEN = b"seen "


def plain_record(record: Any) -> dict[str, Any]:
    """Return key, value and place of a record of kafka-python or aiokafka."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "key": encode(record.key),
        "value": encode(record.value),
        "headers": [],
    }


def transformed(record: dict[str, Any]) -> dict[str, Any]:
    """Return what a transforming worker sends for a record that it read."""
    return {
        "partition": record["partition"],
        "key": record["key"],
        "value": encode(SEEN + (decode(record["value"]) or b"")),
    }


def next_offsets(records: Iterable[dict[str, Any]]) -> dict[tuple[str, int], int]:
    """Return the offsets to commit once these records, in order, have been dealt with."""
    return {(one["topic"], one["partition"]): one["offset"] + 1 for one in records}


class UntilLast:
    """Collects what is read until every partition has shown the last value, or time is up."""

    def __init__(self, partitions: list[int], last: str, timeout_ms: int) -> None:
        self.records: list[dict[str, Any]] = []
        self._missing = set(partitions)
        self._last = last
        self._deadline = time.monotonic() + timeout_ms / 1000

    def add(self, record: dict[str, Any]) -> None:
        """Take in a record; what comes after the last value of a partition is no part of it."""
        if record["partition"] in self._missing:
            self.records.append(record)
            if record["value"] == self._last:
                self._missing.discard(record["partition"])

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to wait for."""
        return not self._missing or time.monotonic() > self._deadline

    def reply(self) -> dict[str, Any]:
        """Return the reply to read_until."""
        return {"records": self.records, "reached": not self._missing}
