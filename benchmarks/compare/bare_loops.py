"""Row 7's measure of the machine: the same loads against loops without a broker."""

import contextlib
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.compare import loads
from benchmarks.compare.bare import HEAD_BYTES
from benchmarks.compare.brokers import BARE, BrokerUnderTest
from benchmarks.compare.measure import Case, Outcome, Sample
from benchmarks.compare.rows.limits import FETCH_BYTES, LIMIT_RECORDS, METRICS, limit_sample

FILE_BYTES = 400 << 20


class _Server:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.port = int(process.stdout.readline())

    def cpu_seconds(self) -> float:
        """Ask once the client has gone."""
        assert self._process.stdout is not None
        return float(self._process.stdout.readline())


@contextlib.contextmanager
def _serving(kind: str, path: Path) -> Iterator[_Server]:
    command = [sys.executable, "-m", "benchmarks.compare.bare", kind, str(path)]
    process = subprocess.Popen(command, cwd=loads.ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield _Server(process)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _append(folder: Path, seconds: float) -> Sample:
    batch = loads.prepared_batch(LIMIT_RECORDS)
    path = folder / "append"
    with _serving("append", path) as server:
        done = loads.send_frames(
            server.port,
            [loads.produce_frame("measured", 0, batch)],
            connections=1,
            depth=2,
            seconds=seconds,
        )
        cpu = server.cpu_seconds()
    path.unlink()
    sample = limit_sample(done["answers"], LIMIT_RECORDS, len(batch), done)
    sample.broker_cpu = cpu
    return sample


def _send(folder: Path, seconds: float, kind: str = "send") -> Sample:
    batch = loads.prepared_batch(LIMIT_RECORDS)
    path = folder / "send"
    if not path.exists():
        with path.open("wb") as file:
            for _ in range(FILE_BYTES // len(batch)):
                file.write(batch)
    wanted = FETCH_BYTES // len(batch) * len(batch)
    request = struct.pack(">iiq", 12, wanted, 0)
    with _serving(kind, path) as server:
        done = loads.drain_frame(
            server.port, request, 8, HEAD_BYTES - 4, len(batch), LIMIT_RECORDS, 1 << 60, seconds
        )
        cpu = server.cpu_seconds()
    sample = limit_sample(done["record_bytes_in"] / len(batch), LIMIT_RECORDS, len(batch), done)
    sample.broker_cpu = cpu
    return sample


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder on the disk that the brokers use too."""
    with tempfile.TemporaryDirectory(prefix="kafkalite-compare-") as folder:
        yield Path(folder)


def measure(folder: Path, cases: list[Case], outcomes: list[Outcome], seconds: float) -> None:
    """Add the bare loops' samples to the outcomes they are the limit of."""
    if not outcomes:
        return
    runs = len(next(iter(outcomes[0].samples.values()), [])) or 1
    for case, outcome in zip(cases, outcomes, strict=True):
        loop = _send if case.name.startswith("out") else _append
        if "16 KiB" in case.name or "lz4" in case.name:
            continue
        loop(folder, seconds / 2)
        outcome.samples[BARE] = [loop(folder, seconds) for _ in range(runs)]


def ways_to_send(folder: Path, row: str, seconds: float, runs: int) -> list[Outcome]:
    """Measure what sendfile saves: the same pieces of a file by sendfile, and by read and send."""
    found = []
    for name, kind in (("sendfile", "send"), ("read and send", "copy")):
        case = Case(f"out: bare loop, {name}, 4 MiB", METRICS, _never)
        _send(folder, seconds / 2, kind)
        samples = [_send(folder, seconds, kind) for _ in range(runs)]
        found.append(Outcome(row, case, samples={BARE: samples}))
    return found


def _never(broker: BrokerUnderTest, scale: float) -> Sample:
    raise AssertionError("the loops are measured beside the brokers")
