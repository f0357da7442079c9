"""How long a broker takes to start and to stop."""

import json
import statistics
import subprocess
import sys
import time

from benchmarks.process import RawClient, running
from benchmarks.result import Result

PROCESS_STARTS = 15
IN_PROCESS_STARTS = 50

_FIRST_BROKER = """
import time
began = time.perf_counter()
from kafkalite.testing import Broker
broker = Broker().start()
print(time.perf_counter() - began)
broker.stop()
"""

_LATER_BROKERS = """
import json, time
from kafkalite.testing import Broker
Broker().start().stop()
times = []
for _ in range(%d):
    broker = Broker()
    began = time.perf_counter()
    broker.start()
    started = time.perf_counter()
    broker.create_topic("orders", partitions=3)
    broker.produce("orders", b"v")
    created = time.perf_counter()
    broker.reset()
    reset = time.perf_counter()
    broker.stop()
    times.append((started - began, reset - created, time.perf_counter() - reset))
print(json.dumps(times))
"""


def process_start() -> list[Result]:
    """From the start of the process to the answer to the first Metadata request."""
    times, busy = [], []
    for _ in range(PROCESS_STARTS):
        began = time.perf_counter()
        with running() as broker:
            client = RawClient(broker.address)
            client.ask()
            times.append(time.perf_counter() - began)
            busy.append(broker.cpu_seconds())
            client.close()
    return [
        Result(
            what="process start to first Metadata reply",
            value=statistics.median(times),
            unit="s",
            target=0.4,
            note=f"median of {PROCESS_STARTS}, {min(times):.2f} to {max(times):.2f}, "
            f"of which the processor's {statistics.median(busy):.2f}",
        )
    ]


def in_process() -> list[Result]:
    """`kafkalite.testing.Broker`: the first one of a process imports everything."""
    first = [float(_run(_FIRST_BROKER)) for _ in range(PROCESS_STARTS)]
    later = json.loads(_run(_LATER_BROKERS % IN_PROCESS_STARTS))
    start, reset, stop = (statistics.median(column) for column in zip(*later, strict=True))
    return [
        Result(
            what="in-process Broker(), first of a process with all imports",
            value=statistics.median(first),
            unit="s",
            note=f"median of {PROCESS_STARTS}",
        ),
        Result(what="in-process Broker(), start", value=start, unit="s", target=0.15),
        Result(what="in-process Broker(), stop", value=stop, unit="s", target=0.05),
        Result(what="in-process Broker(), reset", value=reset, unit="s", target=0.01),
    ]


def _run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout
