"""Metrics as Prometheus reads them: text format 0.0.4, and OpenMetrics 1.0. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

TEXT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
SUMMARY: Final = "summary"
HISTOGRAM: Final = "histogram"
UNTYPED: Final = "untyped"

PLACES_MAX: Final = 2_000
"""Partitions whose labels are remembered: more than have series of their own."""

Labels = tuple[tuple[str, str], ...] | str
"""Names and values, or what `labels_text` makes of them."""


@dataclass(slots=True)
class Family:
    """Samples of one name.

    Attributes:
        samples: end of the name after the family's, labels, value.
    """

    name: str
    type: str
    help: str
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)

    def add_to(self, labels: str, value: float) -> None:
        """Add a sample whose labels are text already: those of a partition are used many times."""
        self.samples.append(("", labels, value))

    def add(self, value: float, suffix: str = "", /, **labels: object) -> "Family":
        """Add one sample; labels with a trailing underscore lose it (Python's words)."""
        named = tuple((name.rstrip("_"), str(each)) for name, each in labels.items())
        self.samples.append((suffix, named, value))
        return self


def labels_text(**labels: object) -> str:
    """Return labels as they are written."""
    return ",".join(f'{name}="{_escaped(str(value))}"' for name, value in labels.items())


@lru_cache(maxsize=PLACES_MAX)
def place_labels(topic: str, partition: int) -> str:
    """Return the labels of a partition, which each scrape needs often."""
    return labels_text(topic=topic, partition=partition)


def render(
    families: Iterable[Family], *, openmetrics: bool, labels: Mapping[str, str]
) -> Iterator[bytes]:
    """Yield the text, a piece for each family; `labels` are added to every sample."""
    used: set[str] = set()
    more = "".join(f',{name}="{_escaped(value)}"' for name, value in labels.items())
    for family in families:
        if not family.samples:
            continue
        kind, name = family.type, family.name
        if openmetrics:
            kind = "unknown" if kind == UNTYPED else kind
            if kind == COUNTER:
                base = name.removesuffix("_total")
                if name.endswith("_total") and base not in used:
                    name = base
                else:
                    kind = "unknown"  # a counter's samples have to end so there
        used.add(name)
        text = family.help.replace("\\", "\\\\").replace("\n", "\\n")
        lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        own = family.name
        lines += [
            f"{own}{{{named}{more}}} {value}"
            if named.__class__ is str and value.__class__ is int
            else _line(f"{own}{suffix}", named, more, value)
            for suffix, named, value in family.samples
        ]
        lines.append("")
        yield "\n".join(lines).encode()
    if openmetrics:
        yield b"# EOF\n"


def _line(name: str, labels: Labels, more: str, value: float) -> str:
    named = labels if isinstance(labels, str) else labels_text(**dict(labels))
    inner = (named + more).removeprefix(",")
    braces = f"{{{inner}}}" if inner else ""
    return f"{name}{braces} {_number(value)}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
