"""What looking at a broker costs: scrapes, counted requests, an open console, start and memory.

    python -m benchmarks.http           all of it, in under four minutes on an idle machine
    python -m benchmarks.http --quick   the same with few repetitions, to see that it works

Brokers run in processes of their own, with metrics and journal (an HTTP port) beside without
(`--http off`), and are asked turn and turn about, so that what else the machine does hits both.
"""

import argparse
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.compare.loads import prepared_batch, produce_frame, send_frames
from kafkalite.client.admin import create_topic
from kafkalite.client.cluster import Client
from kafkalite.client.producer import Producer

PARTITIONS = 1_000
TOPICS = 10
PAYLOAD = b"x" * 100
PULSE_S = 10.0
"""How often the console's pages ask an idle broker for its pulse (QUIET_S in console.js)."""

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


CONNECTIONS = 50
LOAD_S = 1.5


class Extent(NamedTuple):
    """How much is measured."""

    rounds: int
    loads: int
    records: int
    scrapes: int
    idle_s: float
    starts: int


WHOLE = Extent(rounds=100, loads=8, records=300, scrapes=15, idle_s=20.0, starts=8)
QUICK = Extent(rounds=6, loads=2, records=100, scrapes=4, idle_s=3.0, starts=2)


class Running(NamedTuple):
    """A broker's process, and where it is; `http` is empty without a port."""

    pid: int
    bootstrap: str
    http: str
    start_cpu_ms: float

    def cpu_ms(self) -> float:
        """Return the processor time that its threads have taken, as exactly as Linux knows it."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        with contextlib.suppress(OSError):
            return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6
        stat = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) * 1_000 / CLOCK_TICKS

    def resident_mb(self) -> float:
        """Return its resident memory in MB (10^6 bytes)."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def serving(*options: str) -> Iterator[Running]:
    """Run a broker of the profile dev on ports of its own."""
    with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder:
        command = [sys.executable, "-m", "kafkalite", "serve", "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(
            [*command, "--data-dir", f"{folder}/data", *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            words = dict(word.split("=", 1) for word in line.split() if "=" in word)
            running = Running(process.pid, words["bootstrap"], words.get("http", ""), 0.0)
            yield running._replace(start_cpu_ms=running.cpu_ms())
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def get(url: str) -> bytes:
    """Return what is at an address."""
    with urllib.request.urlopen(url) as answer:
        return bytes(answer.read())


def scrape_ms(extent: Extent) -> tuple[float, float]:
    """Return median (time, processor time) of a scrape of a broker with 1,000 partitions."""
    times, cpu = [], []
    with serving("--http", "127.0.0.1:0") as broker, Client(broker.bootstrap) as client:
        for topic in range(TOPICS):
            create_topic(client, f"topic-{topic}", partitions=PARTITIONS // TOPICS)
        get(f"{broker.http}/metrics")
        time.sleep(3)
        for _ in range(extent.scrapes):
            time.sleep(1.1)  # who asks sooner gets the same again
            began_s, before_ms = time.perf_counter(), broker.cpu_ms()
            get(f"{broker.http}/metrics")
            times.append((time.perf_counter() - began_s) * 1_000)
            cpu.append(broker.cpu_ms() - before_ms)
    return statistics.median(times), statistics.mean(cpu)


def produced_us(client: Client, records: int) -> list[float]:
    """Return the time of each Produce of one record, one after another."""
    producer = Producer(client, "orders")
    times = []
    for _ in range(records):
        began_s = time.perf_counter()
        producer.send(PAYLOAD)
        producer.flush()
        times.append((time.perf_counter() - began_s) * 1e6)
    return times


class Compared(NamedTuple):
    """Latency in microseconds, requests a second, and processor time of the broker a request."""

    median_us: float
    p99_us: float
    per_second: float
    cpu_us: float


def produce(extent: Extent) -> tuple[Compared, Compared]:
    """Return (without, with) metrics and journal, measured turn and turn about."""
    found: list[list[Compared]] = [[], []]
    with (
        serving("--http", "off") as off,
        serving("--http", "127.0.0.1:0") as on,
        Client(off.bootstrap) as plain,
        Client(on.bootstrap) as counted,
    ):
        sides = ((off, plain), (on, counted))
        for broker, client in sides:
            create_topic(client, "orders", partitions=1)
            produced_us(client, 10 * extent.records)
            if broker.http:
                get(f"{broker.http}/metrics")
        for _ in range(extent.rounds):
            for place, (broker, client) in enumerate(sides):
                before_ms, began_s = broker.cpu_ms(), time.perf_counter()
                times = sorted(produced_us(client, extent.records))
                taken_s = time.perf_counter() - began_s
                cpu_us = (broker.cpu_ms() - before_ms) * 1_000 / extent.records
                p99 = times[int(0.99 * len(times))]
                middle = times[len(times) // 2]
                found[place].append(Compared(middle, p99, extent.records / taken_s, cpu_us))
    off_side, on_side = (
        Compared(*map(statistics.median, zip(*rounds, strict=True))) for rounds in found
    )
    return off_side, on_side


def loaded(extent: Extent) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (without, with): requests a second of many connections, and processor time of each."""
    frames = [produce_frame("orders", 0, prepared_batch(1))]
    found: list[list[tuple[float, float]]] = [[], []]
    with serving("--http", "off") as off, serving("--http", "127.0.0.1:0") as on:
        for broker in (off, on):
            with Client(broker.bootstrap) as client:
                create_topic(client, "orders", partitions=1)
        for number in range(extent.loads + 1):
            for place, broker in enumerate((off, on)):
                before_ms = broker.cpu_ms()
                port = int(broker.bootstrap.rpartition(":")[2])
                done = send_frames(port, frames, connections=CONNECTIONS, depth=1, seconds=LOAD_S)
                cpu_us = (broker.cpu_ms() - before_ms) * 1_000 / done["all_answers"]
                if number:  # the first warms it up
                    found[place].append((done["answers"] / done["seconds"], cpu_us))
    off_side, on_side = (
        tuple(map(statistics.median, zip(*rounds, strict=True))) for rounds in found
    )
    return (off_side[0], off_side[1]), (on_side[0], on_side[1])


def idle_ms_per_s(extent: Extent, *, console: bool) -> float:
    """Return the processor time that an idle broker takes in a second.

    An open console follows its requests, and asks every ten seconds whether anything happened.
    """
    with serving("--http", "127.0.0.1:0") as broker:
        get(f"{broker.http}/console/")
        stream = None
        if console:
            stream = urllib.request.urlopen(f"{broker.http}/api/v1/requests/follow")
        time.sleep(1)
        before_ms = broker.cpu_ms()
        end_s = time.monotonic() + extent.idle_s
        while (left_s := end_s - time.monotonic()) > 0:
            time.sleep(min(left_s, PULSE_S))
            if console:
                get(f"{broker.http}/api/v1/pulse")
        taken_ms = broker.cpu_ms() - before_ms
        if stream is not None:
            stream.close()
        return taken_ms / extent.idle_s


def start(extent: Extent, *options: str) -> tuple[float, float]:
    """Return (processor time until it serves in ms, resident memory a second later in MB)."""
    cpu, memory = [], []
    for _ in range(extent.starts):
        with serving(*options) as broker:
            time.sleep(1)
            cpu.append(broker.start_cpu_ms)
            memory.append(broker.resident_mb())
    return statistics.median(cpu), statistics.median(memory)


def row(name: str, measured: str, bound: str) -> None:
    """Print a line of the table."""
    print(f"{name:42} {measured:>28} {bound:>18}")


def main() -> None:
    """Print a table, each figure beside its bound."""
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    extent = QUICK if parser.parse_args().quick else WHOLE
    row("", "measured", "bound")
    took_ms, cpu_ms = scrape_ms(extent)
    row(f"scrape of {PARTITIONS} partitions", f"{took_ms:.1f} ms", "20 ms")
    row("  of processor time", f"{cpu_ms:.1f} ms", "")
    off, on = produce(extent)
    for name, unit, place in (
        ("median of a Produce", "us", 0),
        ("99th percentile", "us", 1),
        ("requests a second", "", 2),
        ("the broker's processor time a request", "us", 3),
    ):
        change = 100 * (on[place] / off[place] - 1)
        measured = f"{off[place]:,.0f} -> {on[place]:,.0f} {unit} {change:+.1f} %"
        row(name + ", off -> on", measured, "2 %" if place in (0, 2) else "")
    for name, unit, without, counted in zip(
        (f"{CONNECTIONS} connections, requests a second", "  processor time a request"),
        ("", "us"),
        *loaded(extent),
        strict=True,
    ):
        measured = f"{without:,.0f} -> {counted:,.0f} {unit} {100 * (counted / without - 1):+.1f} %"
        row(name, measured, "" if unit else "2 %")
    alone, watched = (idle_ms_per_s(extent, console=each) for each in (False, True))
    row("idle, nobody looks, a second", f"{alone:.2f} ms", "")
    row("  with the console open, more", f"{watched - alone:+.2f} ms", "0")
    without = start(extent, "--profile", "kafka")
    with_http = start(extent, "--profile", "dev", "--http", "127.0.0.1:0")
    row("start, profile kafka", f"{without[0]:.0f} ms, {without[1]:.1f} MB", "")
    row(
        "start, profile dev with HTTP",
        f"{with_http[0]:.0f} ms, {with_http[1]:.1f} MB",
        "+30 ms, +6 MB",
    )


if __name__ == "__main__":
    main()
