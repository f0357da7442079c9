"""Places in a topic as a person writes them: `beginning`, `-10`, `@2026-01-31T12:00`."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Final

import click

from kafkalite.client.cluster import Client
from kafkalite.client.offsets import READ_UNCOMMITTED, beginnings, ends, list_offsets
from kafkalite.types import TopicPartition

FORMS: Final = (
    "beginning, end, an offset (42), so many before the end (-10), or a time: "
    "@2026-01-31T12:00, @-15m (s, m, h, d), @1769860800000"
)

_AGO: Final = re.compile(r"@-(\d+)([smhd])")
_UNIT_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Anchor(Enum):
    """Point that a position counts from."""

    BEGINNING = auto()
    END = auto()
    OFFSET = auto()
    TIMESTAMP = auto()


@dataclass(slots=True, frozen=True)
class Position:
    """A place in every partition: `value` is an offset, a distance before the end, or a time."""

    anchor: Anchor
    value: int = 0

    def resolve(
        self,
        client: Client,
        partitions: Sequence[TopicPartition],
        *,
        isolation: int = READ_UNCOMMITTED,
    ) -> dict[TopicPartition, int]:
        """Return the offset in each partition; never outside of what the partition holds."""
        first = beginnings(client, partitions)
        last = ends(client, partitions, isolation=isolation)
        if self.anchor is Anchor.BEGINNING:
            return first
        if self.anchor is Anchor.TIMESTAMP:
            found = list_offsets(client, dict.fromkeys(partitions, self.value), isolation=isolation)
            return {p: last[p] if found[p].offset < 0 else found[p].offset for p in partitions}
        if self.anchor is Anchor.END:
            return {p: max(first[p], last[p] - self.value) for p in partitions}
        return {p: min(max(first[p], self.value), last[p]) for p in partitions}


def position_option(
    _context: click.Context, parameter: click.Parameter, text: str | None
) -> Position | None:
    """Turn one of `FORMS` into a position; a click callback."""
    if text is None:
        return None
    position = parse_position(text, now_ms=time.time_ns() // 1_000_000)
    if position is None:
        raise click.BadParameter(f"{text!r} is no position; write {FORMS}.", param=parameter)
    return position


def parse_position(text: str, *, now_ms: int) -> Position | None:
    """Return the position that a text stands for, None if it stands for none."""
    if text in {"beginning", "earliest"}:
        return Position(Anchor.BEGINNING)
    if text in {"end", "latest"}:
        return Position(Anchor.END)
    if text.startswith("@"):
        return _parse_time(text, now_ms)
    if text.isascii() and text.isdigit():
        return Position(Anchor.OFFSET, int(text))
    if text.startswith("-") and text[1:].isascii() and text[1:].isdigit():
        return Position(Anchor.END, int(text[1:]))
    return None


def _parse_time(text: str, now_ms: int) -> Position | None:
    ago = _AGO.fullmatch(text)
    if ago:
        return Position(Anchor.TIMESTAMP, now_ms - int(ago[1]) * _UNIT_MS[ago[2]])
    if text[1:].isascii() and text[1:].isdigit():
        return Position(Anchor.TIMESTAMP, int(text[1:]))
    try:
        moment = datetime.fromisoformat(text[1:])
    except ValueError:
        return None
    # Without an offset from UTC it is taken as local time, as a person reads the clock.
    return Position(Anchor.TIMESTAMP, int(moment.timestamp() * 1000))
