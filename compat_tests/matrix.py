"""The matrix client × version × scenario, written to docs/compatibility.md after a whole run."""

from __future__ import annotations


def collect(report: object) -> None:
    pass


def write_if_complete() -> None:
    pass
