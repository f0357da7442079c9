"""What an idle broker costs."""

import resource
import time

from benchmarks.process import RawClient, running
from benchmarks.result import Result

IDLE_SECONDS = 10
CONNECTIONS = 1_000
MIB = 2**20


def idle() -> list[Result]:
    """Memory after the start, and processor time over ten seconds without a client."""
    with running() as broker:
        client = RawClient(broker.address)
        client.ask()
        client.close()
        resident = broker.resident_bytes()
        before = broker.cpu_seconds()
        time.sleep(IDLE_SECONDS)
        used = broker.cpu_seconds() - before
    return [
        Result(what="resident memory, idle", value=resident / MIB, unit="MiB", target=60),
        Result(
            what=f"processor time, idle for {IDLE_SECONDS} s",
            value=used * 1000,
            unit="ms",
            target=10,
            note="the kernel counts in steps of 10 ms",
        ),
    ]


def idle_connections() -> list[Result]:
    """Memory that a thousand connections add, each of which has asked once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * CONNECTIONS)), hard))
    with running() as broker:
        warm = RawClient(broker.address)
        warm.ask()
        before = broker.resident_bytes()
        clients = [RawClient(broker.address) for _ in range(CONNECTIONS)]
        for client in clients:
            client.ask()
        added = broker.resident_bytes() - before
        cpu_before = broker.cpu_seconds()
        time.sleep(IDLE_SECONDS)
        used = broker.cpu_seconds() - cpu_before
        for client in [warm, *clients]:
            client.close()
    return [
        Result(
            what=f"memory of {CONNECTIONS:,} idle connections",
            value=added / MIB,
            unit="MiB",
            target=40,
        ),
        Result(
            what=f"processor time with them, idle for {IDLE_SECONDS} s",
            value=used * 1000,
            unit="ms",
            target=10,
        ),
    ]
