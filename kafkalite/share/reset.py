"""Start of a share group in a partition without stored state (share.auto.offset.reset)."""

import re
from dataclasses import dataclass
from fractions import Fraction

LATEST, EARLIEST, BY_DURATION = "latest", "earliest", "by_duration"

_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?(?:T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+(?:\.\d+)?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_MS_OF = (86_400_000, 3_600_000, 60_000, 1_000)


@dataclass(slots=True, frozen=True)
class ResetStrategy:
    """A value of the setting.

    Attributes:
        name: LATEST, EARLIEST or BY_DURATION.
        duration_ms: how far back, of BY_DURATION.
    """

    name: str
    duration_ms: int | None = None


def parse_reset(text: str) -> ResetStrategy:
    """Return what a value of the setting says, which was checked when it was set."""
    name, _, duration = text.partition(":")
    if name != BY_DURATION:
        return ResetStrategy(name)
    match = _DURATION.fullmatch(duration)
    assert match is not None, f"{text!r} is no duration"
    sign, *parts = match.groups()
    total = sum(Fraction(part or 0) * ms for part, ms in zip(parts, _MS_OF, strict=True))
    return ResetStrategy(name, int(-total if sign == "-" else total))
