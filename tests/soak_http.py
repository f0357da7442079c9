"""The HTTP port at full size: 10,000 clients of event streams, and a search over 10 GB.

    python tests/soak_http.py [--streams 10000] [--gigabytes 10] [--only streams|search]

Needs so much free disk, and some minutes. All the while a Kafka client writes records one by one;
the script tells how long it waited at most, and the broker's memory, and ends with 1 if a record
was lost or if memory grew beyond MEMORY_MAX_MB. CI does the same in small:
tests/observe/test_hostile.py.
"""

import argparse
import contextlib
import json
import resource
import socket
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Self
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.http import Running, serving
from kafkalite.client.admin import create_topic
from kafkalite.client.cluster import Client
from kafkalite.client.offsets import ends
from kafkalite.client.producer import Producer
from kafkalite.types import TopicPartition

RECORD_BYTES = 100_000
RECORDS_PER_FLUSH = 100
MEMORY_MAX_MB = 400
HELD_MAX = 500
"""Connections that this script has open at a time besides those that the broker lets in."""


class Bystander:
    """A Kafka client that minds its own business, and how long each of its records took."""

    def __init__(self, bootstrap: str) -> None:
        self.count = 0
        self.slowest_ms = 0.0
        self._bootstrap = bootstrap
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with Client(self._bootstrap, client_id="bystander") as client:
            producer = Producer(client, "business")
            while not self._stop.wait(0.005):
                began_s = time.perf_counter()
                producer.send(b"%d" % self.count)
                producer.flush()
                self.slowest_ms = max(self.slowest_ms, (time.perf_counter() - began_s) * 1_000)
                self.count += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def crowd(broker: Running, streams: int) -> str:
    """Ask for so many event streams, none of which is given back; return what became of them."""
    host, _, port = broker.http.removeprefix("http://").partition(":")
    ask = b"GET /api/v1/requests/follow HTTP/1.1\r\nHost: localhost\r\n\r\n"
    served, refused = [], 0
    with contextlib.ExitStack() as stack:
        for _ in range(streams):
            stream = socket.create_connection((host, int(port)), 30)
            stream.settimeout(60)
            head = b""
            with contextlib.suppress(ConnectionError):
                stream.sendall(ask)
                head = stream.recv(64)
            if head.startswith(b"HTTP/1.1 200") and len(served) < HELD_MAX:
                served.append(stack.enter_context(stream))
            else:
                stream.close()
                refused += 1
        return f"{len(served)} streams served, {refused} refused"


def fill(client: Client, gigabytes: float) -> int:
    """Write so much; return the number of records."""
    producer = Producer(client, "large")
    count = int(gigabytes * 1e9 / RECORD_BYTES)
    body = b"x" * RECORD_BYTES
    for number in range(count):
        producer.send(b"%d " % number + body)
        if number % RECORDS_PER_FLUSH == 0:
            producer.flush()
    producer.flush()
    return count


def search(broker: Running, records: int) -> str:
    """Search for what is nowhere, step by step as the console does; return how it went."""
    path = f"{broker.http}/api/v1/topics/large/messages?from=earliest&filter=nowhere"
    scanned = steps = 0
    longest_s, cursor, done = 0.0, None, False
    began_s = time.monotonic()
    while not done:
        more = "" if cursor is None else f"&cursor={quote(json.dumps(cursor))}"
        step_s = time.monotonic()
        with urllib.request.urlopen(path + more, timeout=120) as reply:
            answer = json.load(reply)
        longest_s = max(longest_s, time.monotonic() - step_s)
        cursor, done = answer["cursor"], answer["done"]
        scanned, steps = scanned + answer["scanned"], steps + 1
    if scanned != records:
        raise SystemExit(f"{scanned} records were searched, of {records}")
    took_s = time.monotonic() - began_s
    return f"{records} records in {steps} steps, {took_s:.0f} s, at most {longest_s:.1f} s each"


def main() -> int:
    """Return 0 if everything stayed within bounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    parser.add_argument("--only", choices=("streams", "search"))
    wanted = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print(f"in {tempfile.gettempdir()}", flush=True)
    with serving("--http", "127.0.0.1:0") as broker, Client(broker.bootstrap) as client:
        for name in ("business", "large"):
            create_topic(client, name, partitions=1)
        records = 0 if wanted.only == "streams" else fill(client, wanted.gigabytes)
        parts = (
            ("streams", lambda: crowd(broker, wanted.streams)),
            ("search", lambda: search(broker, records)),
        )
        is_good = True
        for name, part in parts:
            if wanted.only not in (None, name):
                continue
            place = TopicPartition("business", 0)
            before = ends(client, [place])[place]
            with Bystander(broker.bootstrap) as bystander:
                told = part()
            written = ends(client, [place])[place] - before
            memory_mb = broker.resident_mb()
            print(
                f"{name}: {told}; a client wrote {bystander.count} records meanwhile, the slowest "
                f"in {bystander.slowest_ms:.0f} ms; {memory_mb:.0f} MB",
                flush=True,
            )
            is_good &= written == bystander.count > 0 and memory_mb <= MEMORY_MAX_MB
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
