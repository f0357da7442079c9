"""Output for a person at a terminal: help, tables, JSON for programs, progress of long work."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, Self

import click


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in aligned columns; numbers to the right, None as `-`."""
    rows = list(rows)
    cells = [["-" if value is None else str(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    numeric = [any(isinstance(cell, int) for cell in column) for column in zip(*rows, strict=True)]
    numeric = numeric or [False] * len(headings)
    for line in [list(headings), *cells]:
        padded = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ]
        click.echo("  ".join(padded).rstrip())


def print_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def plural(count: int, noun: str) -> str:
    """Return `1 record`, `2 records`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def examples(*lines: str) -> str:
    """Return the epilog of a command's help that shows how it is used."""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in lines)])


class Progress(Protocol):
    """A bar that is moved forward."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *details: object) -> None: ...

    def update(self, amount: int, /) -> Any:
        """Move by an amount."""
        ...


class NoProgress:
    """A bar that nobody sees."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, amount: int, /) -> None:
        """Do nothing."""


def progress(label: str, *, total: int | None, unit: str, shown: bool = True) -> Progress:
    """Return a bar on stderr; one that is not shown unless a person watches there.

    Args:
        label: what is going on.
        total: amount at the end; None if not known.
        unit: what is counted; `B` is printed as kB, MB...
        shown: False where the bar would get between the lines of the output.
    """
    if not shown or not sys.stderr.isatty():
        return NoProgress()
    from tqdm import tqdm  # 50 ms that only those pay who see it

    bar: Progress = tqdm(
        desc=label,
        total=total,
        unit=unit if unit == "B" else f" {unit}",
        unit_scale=True,
        leave=False,
        dynamic_ncols=True,
    )
    return bar
