"""`python -m benchmarks tls`: what encryption costs, beside Apache Kafka; about two minutes.

One producer and one consumer of librdkafka over TLS on both brokers, over PLAINTEXT on kafkalite
with and without a TLS listener beside it, and new connections a second. The brokers take turns.
"""

import datetime as dt
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import machine
from benchmarks.compare import loads
from benchmarks.compare.brokers import APACHE_JVM_OPTIONS, NO_RECORDS
from compat_tests.apache_kafka import ApacheBroker, free_port
from kafkalite.security.certificates import Authority

RECORDS, RECORD_BYTES, PARTITIONS = 1_000_000, 100, 6
RUNS = 3
WARM_UP_SHARE, READ_SHARE = 0.3, 0.6
HANDSHAKE_SECONDS, HANDSHAKE_THREADS = 4.0, 4
TARGET, PLAINTEXT_TARGET = 1.0, 0.98
PLAIN, BESIDE, OURS, THEIRS = (
    "kafkalite, PLAINTEXT",
    "kafkalite, PLAINTEXT with a TLS listener beside",
    "kafkalite, TLS",
    "Apache Kafka, TLS",
)


class Measured(NamedTuple):
    """One broker as a client reaches it, and its process."""

    bootstrap: str
    pid: int
    settings: dict[str, Any]

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Figures:
    """What was measured, by what and of whom."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], list[float]] = {}

    def add(self, what: str, whose: str, value: float) -> None:
        self.values.setdefault((what, whose), []).append(value)

    def median(self, what: str, whose: str) -> float:
        return statistics.median(self.values[what, whose])


@contextmanager
def kafkalite(folder: Path, store: dict[str, str] | None) -> Iterator[tuple[str, str, int]]:
    """Run `kafkalite serve`; give its PLAINTEXT address, that of TLS or "", and its process id."""
    plain, encrypted = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    listeners = f"PLAINTEXT://{plain}"
    settings = dict(store or {})
    if store is not None:
        listeners += f",SSL://{encrypted}"
    settings["listeners"] = listeners
    options = [word for pair in settings.items() for word in ("--set", "=".join(pair))]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "kafkalite", "serve", "--data-dir", str(folder)),
            *(*options, *NO_RECORDS),
        ],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"kafkalite ready: ")
        yield plain, encrypted if store is not None else "", process.pid
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def transfer(broker: Measured, count: int, figures: Figures, whose: str) -> None:
    """Produce so many records and read them."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **broker.settings})
    topic = f"measured-{time.time_ns()}"
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(60)
    where = {"bootstrap": broker.bootstrap, "topic": topic}
    produce = {"acks": 1, "batch.size": 65536, **broker.settings}
    cpu = broker.cpu_seconds()
    done = loads.librdkafka("produce", **where, count=count, size=RECORD_BYTES, settings=produce)
    figures.add("producer, thousand records/s", whose, count / done["seconds"] / 1_000)
    figures.add("producer, processor s of the broker", whose, broker.cpu_seconds() - cpu)
    cpu = broker.cpu_seconds()
    # Not to the end, where librdkafka waits for more.
    some = int(count * READ_SHARE)
    read = loads.librdkafka(
        "consume", **where, count=some, partitions=PARTITIONS, settings=broker.settings
    )
    figures.add("consumer, thousand records/s", whose, read["count"] / read["seconds"] / 1_000)
    figures.add("consumer, processor s of the broker", whose, broker.cpu_seconds() - cpu)
    admin.delete_topics([topic])[topic].result(60)


def handshakes(broker: Measured, ca: str, figures: Figures, whose: str) -> None:
    """Connect, shake hands and leave, again and again, from several threads."""
    host, _, port = broker.bootstrap.rpartition(":")
    context = ssl.create_default_context(cafile=ca)
    counts = [0] * HANDSHAKE_THREADS
    end = time.monotonic() + HANDSHAKE_SECONDS

    def connect(number: int) -> None:
        while time.monotonic() < end:
            with (
                socket.create_connection((host, int(port))) as sock,
                context.wrap_socket(sock, server_hostname="localhost"),
            ):
                counts[number] += 1

    cpu = broker.cpu_seconds()
    threads = [threading.Thread(target=connect, args=(n,)) for n in range(HANDSHAKE_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    figures.add("handshakes/s", whose, sum(counts) / HANDSHAKE_SECONDS)
    used_ms = (broker.cpu_seconds() - cpu) * 1_000
    figures.add("handshake, processor ms of the broker", whose, used_ms / max(sum(counts), 1))


def measure(records: int, runs: int) -> Figures:
    """Start the brokers, and let them take turns."""
    figures, warm_up = Figures(), Figures()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkalite-tls-")))
        now = dt.datetime.now(dt.UTC)
        authority = Authority.new(now)
        (folder / "ca.pem").write_bytes(authority.certificate_pem)
        shown = authority.issue("broker", now, hosts=("localhost", "127.0.0.1"))
        (folder / "broker.pem").write_bytes(shown.pem)
        store = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / "broker.pem"),
        }
        trust = {"security.protocol": "ssl", "ssl.ca.location": str(folder / "ca.pem")}
        plain, _, plain_pid = stack.enter_context(kafkalite(folder / "plain", None))
        beside, encrypted, pid = stack.enter_context(kafkalite(folder / "tls", store))
        apache = stack.enter_context(
            ApacheBroker(
                config=store,
                data_dir=folder / "apache",
                jvm_options=APACHE_JVM_OPTIONS,
                more_listeners={"TLS": "SSL"},
            )
        )
        assert apache.process is not None
        brokers = {
            PLAIN: Measured(plain, plain_pid, {}),
            BESIDE: Measured(beside, pid, {}),
            OURS: Measured(encrypted, pid, trust),
            THEIRS: Measured(apache.addresses["TLS"], apache.process.pid, trust),
        }
        for whose, broker in brokers.items():
            transfer(broker, int(records * WARM_UP_SHARE), warm_up, whose)
        order = list(brokers)
        for _ in range(runs):
            for whose in order:
                transfer(brokers[whose], records, figures, whose)
                if whose in (OURS, THEIRS):
                    handshakes(brokers[whose], trust["ssl.ca.location"], figures, whose)
            order.reverse()
    return figures


def table(figures: Figures) -> Iterator[str]:
    """Yield the lines of a Markdown table, with the ratios that are wanted."""
    yield "| what | whose | median | wanted |"
    yield "| --- | --- | --- | --- |"
    for what, whose in sorted(figures.values):
        median = figures.median(what, whose)
        wanted = ""
        if what.endswith("/s"):
            peer, target = {OURS: (THEIRS, TARGET), BESIDE: (PLAIN, PLAINTEXT_TARGET)}.get(
                whose, ("", 0.0)
            )
            if peer:
                ratio = median / figures.median(what, peer)
                verdict = "ok" if ratio >= target else "MISSED"
                wanted = f"{ratio:.2f} x, at least {target} x {peer}: {verdict}"
        yield f"| {what} | {whose} | {median:,.3g} | {wanted} |"


@click.command()
@click.option("--records", default=RECORDS, show_default=True)
@click.option("--runs", default=RUNS, show_default=True)
def main(records: int, runs: int) -> None:
    """Measure TLS on kafkalite and Apache Kafka, and print one table."""
    click.echo(machine.describe())
    click.echo()
    for line in table(measure(records, runs)):
        click.echo(line)
