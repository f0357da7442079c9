"""The chain: its workers as processes, what is done to them, and what must come out at its end."""

from __future__ import annotations

import collections
import signal
import subprocess
import sys
import threading
import time
from enum import Enum
from typing import TYPE_CHECKING, Self

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, Producer
from confluent_kafka.admin import AdminClient

from compat_tests.cache import cached_dir, digest_of
from compat_tests.chain.worker import STANDS_STILL
from compat_tests.driver import REPOSITORY
from compat_tests.streams.output import ANSWER_S, Tail, end_offsets
from compat_tests.streams.source import create_topics
from compat_tests.toolchains import find_program, run_build
from kafkalite.testing.history import History

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from compat_tests.chain.proxy import CuttingProxy, ProxyGroup
    from compat_tests.streams.brokers import RestartableBroker

PARTITIONS = 3
PAUSE_S = 5.0
SOURCE, BETWEEN, END = "chain-source", "chain-between", "chain-end"
_FOLDER = REPOSITORY / "compat_tests" / "chain"


def go_worker() -> list[str]:
    """Return the command of the worker in Go; builds it if it is new."""
    module = REPOSITORY / "compat_tests" / "franz_go"
    sources = [_FOLDER / "worker.go", module / "go.mod", module / "go.sum"]

    def build(target: Path) -> None:
        for source in sources:
            (target / source.name).write_bytes(source.read_bytes())
        run_build([find_program("go"), "build", "-o", "worker", "."], cwd=target)

    return [str(cached_dir(f"go/chain-{digest_of(*sources)}", build, lock="go") / "worker")]


def python_worker() -> list[str]:
    """Return the command of the worker in Python."""
    return [sys.executable, "-m", "compat_tests.chain.worker"]


class Worker:
    """One worker's process, started again whenever it ended."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[str] | None = None
        #: How many transactions it said to have ended, by how; over all of its lives.
        self.ended: collections.Counter[str] = collections.Counter()
        self.starts = 0
        #: Calls of its library that did not return, which the worker named before it ended.
        self.stood_still: list[str] = []
        self.log: collections.deque[str] = collections.deque(maxlen=60)

    def start(self) -> None:
        """Start it."""
        self.starts += 1
        self._process = subprocess.Popen(
            self._command,
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()

    def keep_alive(self) -> None:
        """Start it again if it ended by itself: fenced, or out of its library's depth."""
        if self._process is not None and self._process.poll() is not None:
            self.start()

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it as a crash would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            word = line.strip()
            if word in ("committed", "aborted"):
                self.ended[word] += 1
            else:
                if word.startswith(STANDS_STILL):
                    self.stood_still.append(word)
                self.log.append(word)
        process.stdout.close()


class Fault(Enum):
    """What may happen to the chain."""

    WORKER_KILLED = "worker killed"
    WORKER_PAUSED = "worker paused until it is a zombie"
    CONNECTIONS_CUT = "connections cut"
    BROKER_KILLED = "broker killed"


class Chain:
    """Two stages of workers between three topics, and who feeds the first.

    Args:
        broker: serves all; its clients come through the proxy.
        proxy: where connections are cut.
        workers_per_stage: processes that share a group.
        records_per_s: what the feeder writes.
    """

    def __init__(
        self,
        broker: RestartableBroker,
        proxy: CuttingProxy | ProxyGroup,
        *,
        workers_per_stage: int,
        records_per_s: int,
    ) -> None:
        self.broker = broker
        self.proxy = proxy
        create_topics(proxy.bootstrap, SOURCE, BETWEEN, END, partitions=PARTITIONS)
        stages = ((python_worker(), SOURCE, BETWEEN), (go_worker(), BETWEEN, END))
        self.workers = [
            Worker(
                [*command, proxy.bootstrap, f"to-{target}", source, target, f"{target}-{number}"]
            )
            for command, source, target in stages
            for number in range(workers_per_stage)
        ]
        self._records_per_s = records_per_s
        self._feeding = threading.Thread(target=self._feed, daemon=True)
        self._stopping = threading.Event()
        #: Values that the feeder sent, by partition, in order.
        self.sent: list[list[str]] = [[] for _ in range(PARTITIONS)]
        self._failures: list[object] = []

    def __enter__(self) -> Self:
        for worker in self.workers:
            worker.start()
        self._feeding.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stopping.set()
        for worker in self.workers:
            worker.kill()
        if error is not None:
            logs = ("\n".join(worker.log) for worker in self.workers)
            error.add_note("the workers' logs:\n" + "\n---\n".join(logs))

    def summary(self) -> str:
        """Return in a line what was done."""
        ended = sum((worker.ended for worker in self.workers), collections.Counter[str]())
        starts = sum(worker.starts for worker in self.workers)
        stood_still = "".join(f"; {line}" for each in self.workers for line in each.stood_still)
        return (
            f"{sum(map(len, self.sent))} records, {ended['committed']} transactions committed and "
            f"{ended['aborted']} aborted, by {len(self.workers)} workers in {starts} lives"
            f"{stood_still}"
        )

    def strike(self, fault: Fault, numbers: random.Random) -> None:
        """Let a fault happen."""
        worker = numbers.choice(self.workers)
        if fault is Fault.WORKER_KILLED:
            worker.kill()
            worker.start()
        elif fault is Fault.WORKER_PAUSED:
            worker.send_signal(signal.SIGSTOP)
            threading.Timer(PAUSE_S, worker.send_signal, (signal.SIGCONT,)).start()
        elif fault is Fault.CONNECTIONS_CUT:
            self.proxy.cut(numbers.choice((0.3, 1.0)), numbers)
        else:
            self.broker.kill()
            time.sleep(numbers.uniform(0, self.broker.away_s_max))
            self.broker.start()

    def read_until(
        self, tail: Tail, condition: Callable[[], bool], what: str, timeout: float
    ) -> None:
        """Read the chain's end until the condition holds; workers that ended are started again."""

        def holds() -> bool:
            for worker in self.workers:
                worker.keep_alive()
            return condition()

        tail.read_until(holds, what, timeout)

    def read_more(self, tail: Tail, count: int, timeout: float) -> None:
        """Read so many more records of the chain's end."""
        wanted = tail.count + count
        self.read_until(tail, lambda: tail.count >= wanted, f"{count} more records", timeout)

    def finish(self, tail: Tail, timeout: float) -> None:
        """End the feeding, wait until all is through, and judge.

        Raises:
            AssertionError: with everything that no correct broker does.
        """
        self._stopping.set()
        self._feeding.join()
        assert not self._failures, self._failures[0]
        total = sum(map(len, self.sent))
        try:
            self.read_until(tail, lambda: tail.count >= total, f"{total} records", timeout)
        except AssertionError as missing:
            missing.add_note("\n".join(map(str, self._findings(tail)[:20])))
            raise
        with Tail(self.proxy.bootstrap, [BETWEEN, END]) as again:
            # An aborted transaction may still be open when the last of the others is through.
            self.read_until(again, self._is_stable, "no transaction is open", timeout)
            for worker in self.workers:
                worker.kill()
            again.read_until(self._is_stable, "no transaction is open", timeout)
            again.read_to_end(ANSWER_S)
            findings = [*self._findings(tail), *self._findings(again)]
            assert not findings, "\n".join(map(str, findings[:20]))
        self._check_group_offsets()

    def _is_stable(self) -> bool:
        admin = AdminClient({"bootstrap.servers": self.proxy.bootstrap})
        return all(
            end_offsets(admin, topic) == end_offsets(admin, topic, IsolationLevel.READ_COMMITTED)
            for topic in (BETWEEN, END)
        )

    def _findings(self, reader: Tail) -> list[object]:
        """Return what is wrong in each topic: it must hold what was sent, in that order."""
        found: list[object] = []
        for topic in reader.updates:
            history = History()
            for index, values in enumerate(self.sent):
                for value in values:
                    history.acknowledge(history.send(f"feeder-{index}", topic, index, value))
                history.complete(topic, index, end_offset=reader.ends.get((topic, index), 1 << 62))
            for place, index, offset, value in reader.records:
                if place == topic:
                    history.read("reader", topic, index, offset=offset, value=value)
            found += history.check()
        return found

    def _check_group_offsets(self) -> None:
        """The groups stand where all that was sent has been dealt with."""
        admin = AdminClient({"bootstrap.servers": self.proxy.bootstrap})
        for source, target in ((SOURCE, BETWEEN), (BETWEEN, END)):
            asked = [ConsumerGroupTopicPartitions(f"to-{target}")]
            listed = admin.list_consumer_group_offsets(asked)[f"to-{target}"].result(ANSWER_S)
            offsets = {place.partition: place.offset for place in listed.topic_partitions}
            with Tail(self.proxy.bootstrap, [source]) as reader:
                reader.read_to_end(ANSWER_S)
                last = {index: offset for _, index, offset, _ in reader.records}
            assert offsets == {index: offset + 1 for index, offset in last.items()}

    def _feed(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.proxy.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
                "reconnect.backoff.max.ms": 200,
            }
        )

        def on_delivery(error: object, _: object) -> None:
            if error is not None:
                self._failures.append(error)

        begin = time.monotonic()
        number = 0
        while not self._stopping.is_set():
            index = number % PARTITIONS
            value = f"{index}-{number}"
            producer.produce(SOURCE, value, "key", partition=index, on_delivery=on_delivery)
            self.sent[index].append(value)
            number += 1
            producer.poll(0)
            ahead_s = begin + number / self._records_per_s - time.monotonic()
            if ahead_s > 0:
                self._stopping.wait(ahead_s)
        if producer.flush(ANSWER_S):
            self._failures.append("the feeder's last records were not answered")
