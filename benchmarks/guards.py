"""What the hot paths cost, in bytecodes and bytes: the same figures on any machine, busy or not.

    python -m benchmarks.guards            what they cost now, beside what the table says
    python -m benchmarks.guards --renew    write the table anew

Run in CI by `tests/test_guards.py`, which fails where a path has become dearer than the table says
by more than the tolerances below. Bytecodes are those of one version of Python: on others nothing
is compared. What C code does is not counted; time is measured by `python -m benchmarks compare`.
"""

import gc
import json
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import trio

from benchmarks.guarded import scenarios

TABLE = Path(__file__).with_suffix(".json")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

BYTECODES_TOLERANCE = 0.05
BYTES_TOLERANCE = 0.15
BYTES_SLACK = 512

WARM_UPS = 20
"""Runs until code is made, caches are filled, and lists have grown."""
RUNS = 5


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run of a path: bytecodes executed, and the most bytes that it held at a time."""

    bytecodes: int
    bytes: int

    def exceeds(self, other: "Cost") -> bool:
        """Whether this is more than `other`, beyond the tolerances."""
        return (
            self.bytecodes > other.bytecodes * (1 + BYTECODES_TOLERANCE)
            or self.bytes > other.bytes * (1 + BYTES_TOLERANCE) + BYTES_SLACK
        )


def cost_of(function: Callable[[], object]) -> Cost:
    """Run it often, and return the least that a run took."""
    for _ in range(WARM_UPS):
        function()
    gc.collect()
    gc.disable()
    before = sys.gettrace()  # coverage's, which takes memory of its own
    sys.settrace(None)
    try:
        return Cost(
            min(_bytecodes(function) for _ in range(RUNS)),
            min(_bytes(function) for _ in range(RUNS)),
        )
    finally:
        sys.settrace(before)
        gc.enable()


def _bytecodes(function: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(None)
    return count


def _bytes(function: Callable[[], object]) -> int:
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start(1)
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        result = function()
        _, peak = tracemalloc.get_traced_memory()
        del result
    finally:
        if not was_tracing:
            tracemalloc.stop()
    return peak - before


def measure() -> dict[str, Cost]:
    """Return what each path costs now."""

    async def measure_all() -> dict[str, Cost]:
        with tempfile.TemporaryDirectory(prefix="kafkalite-guards-") as folder:
            async with scenarios(folder) as paths:
                return {name: cost_of(function) for name, function in paths.items()}

    return trio.run(measure_all)


def expected() -> dict[str, Cost] | None:
    """Return the table's costs; None if they are of another version of Python."""
    table = json.loads(TABLE.read_text())
    if table["python"] != PYTHON:
        return None
    return {name: Cost(**cost) for name, cost in table["paths"].items()}


def _report(now: dict[str, Cost], before: dict[str, Cost]) -> None:
    print(f"{'path':44} {'bytecodes':>20} {'bytes held':>22}")
    for name, cost in now.items():
        old = before.get(name, Cost(0, 0))
        print(
            f"{name:44} {old.bytecodes:8,} -> {cost.bytecodes:8,} {old.bytes:9,} -> {cost.bytes:9,}"
        )


def main() -> None:
    """Print, or renew, the table."""
    now = measure()
    _report(now, (TABLE.exists() and expected()) or {})
    if "--renew" in sys.argv[1:]:
        paths = {name: {"bytecodes": c.bytecodes, "bytes": c.bytes} for name, c in now.items()}
        TABLE.write_text(json.dumps({"python": PYTHON, "paths": paths}, indent=1) + "\n")


if __name__ == "__main__":
    main()
