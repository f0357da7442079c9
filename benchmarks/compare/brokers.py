"""The two brokers under measurement, each a process of its own, and what the kernel says."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from benchmarks.process import RawClient
from compat_tests.apache_kafka import KAFKA_4, ApacheBroker
from compat_tests.cache import cached_dir, digest_of
from compat_tests.toolchains import find_program, run_build

KAFKALITE, APACHE, BARE = "kafkalite", "Apache Kafka", "bare loop"
KFAKE, MOCK = "kfake", "librdkafka mock"
"""Peers that keep nothing on disk; they join the rows that they can do."""
NO_RECORDS = ("--set", "kafkalite.validate.records=false")

APACHE_JVM_OPTIONS = ("-Xms1g", "-Xmx1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
"""As `kafka-server-start.sh` of the distribution has them, in short."""
APACHE_SETTINGS = {
    # Back to the distribution's defaults from what suits tests.
    "offsets.topic.num.partitions": 50,
    "transaction.state.log.num.partitions": 50,
    "log.cleaner.dedupe.buffer.size": 134217728,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 10000,
    "group.initial.rebalance.delay.ms": 0,
    # Of a deleted topic, where only the broker's setting counts; a topic's own is below.
    "log.segment.delete.delay.ms": 1000,
}
TOPIC_SETTINGS = {"file.delete.delay.ms": "1000"}
"""Deleted records leave the page cache before the disk has to take them."""
READY_SECONDS = 120


class BrokerUnderTest:
    """One broker; `with` starts it. Its data stay in a temporary directory until the end."""

    name: str
    tells_offsets = True
    """Whether it can be asked how many records it has."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(
            prefix="kafkalite-compare-", ignore_cleanup_errors=True
        )
        self.folder = Path(self._folder.name)
        self.port = 0
        self._topics = 0
        self._admin: AdminClient | None = None

    @property
    def pid(self) -> int:
        raise NotImplementedError

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pids(self) -> list[int]:
        """All its processes."""
        return [self.pid]

    def ports_of(self, topic: str, partitions: int) -> list[int]:
        """Return where each partition is led."""
        del topic
        return [self.port] * partitions

    def start(self) -> Self:
        raise NotImplementedError

    def stop(self, *, kill: bool = False) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._folder.cleanup()

    def start_seconds(self) -> float:
        """Start on the existing data; return the time until a Metadata request is answered."""
        began = time.perf_counter()
        self.start()
        wait_for_reply(self.port, began + READY_SECONDS)
        return time.perf_counter() - began

    # --- Topics ----------------------------------------------------------------------------------

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        return self._admin

    def create_topic(self, partitions: int) -> str:
        """Create a topic of a fresh name; return when each partition's leader answers."""
        self._topics += 1
        name = f"measured-{self._topics}"
        new = NewTopic(name, partitions, 1, config=dict(TOPIC_SETTINGS))
        self.admin.create_topics([new])[name].result(60)
        self.end_offset(name, partitions)
        return name

    def end_offset(self, topic: str, partitions: int) -> int:
        """Sum of the end offsets.

        Apache's metadata names leaders that do not know of it yet: asked again for a minute.
        """
        asked = {TopicPartition(topic, p): OffsetSpec.latest() for p in range(partitions)}
        deadline = time.monotonic() + 60
        while True:
            try:
                answers = self.admin.list_offsets(asked, request_timeout=10)
                return sum(f.result(30).offset for f in answers.values())
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                # librdkafka goes on believing the first answer for a minute and more.
                self._admin = None
                time.sleep(0.05)

    def delete_topic(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result(60)

    # --- What the kernel says --------------------------------------------------------------------

    def cpu_seconds(self) -> float:
        """User and system time so far, of all threads."""
        ticks = 0
        for pid in self.pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def forget_peak(self) -> None:
        """Begin the peak of resident memory anew."""
        for pid in self.pids:
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def peak_bytes(self) -> int:
        return self._status("VmHWM")

    def resident_bytes(self) -> int:
        return self._status("VmRSS")

    def _status(self, name: str) -> int:
        total = 0
        for pid in self.pids:
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith(f"{name}:"):
                    total += int(line.split()[1]) * 1024
        return total


class Kafkalite(BrokerUnderTest):
    """`kafkalite serve` with its defaults; but it looks at no records, as with profile kafka.

    Args:
        compiled: an interpreter that has the compiled build installed; else the checkout is run.
        processes: of `--processes`.
    """

    def __init__(self, *, compiled: str | None = None, processes: int = 1) -> None:
        super().__init__()
        self.name = KAFKALITE
        if compiled:
            self.name += " compiled"
        if processes > 1:
            self.name += f", {processes} processes"
        self._compiled = compiled
        self._processes = processes
        self._bootstrap = ""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        run = [self._compiled or sys.executable, "-m", "kafkalite"]
        command = [*run, "serve", "--listen", f"127.0.0.1:{self.port}"]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)}
        if self._compiled:
            del environment["PYTHONPATH"]
            said = [*run, "--version"]
            version = subprocess.check_output(said, cwd=self.folder, env=environment, text=True)
            assert "(compiled)" in version, f"{self._compiled} has no compiled kafkalite: {version}"
        if self._processes > 1:
            command += ["--processes", str(self._processes)]
        with open(self.folder / "broker.log", "ab") as log:
            self._process = subprocess.Popen(
                [*command, "--data-dir", str(self.folder / "data"), *NO_RECORDS],
                cwd=self.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode()
        assert line.startswith("kafkalite ready: "), line
        self._bootstrap = line.split("bootstrap=")[1].split()[0]
        self.port = int(self._bootstrap.split(",")[0].rpartition(":")[2])
        return self

    @property
    def bootstrap(self) -> str:
        return self._bootstrap

    @property
    def pids(self) -> list[int]:
        own = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        others = own.read_text().split() if self._processes > 1 else []
        return [self.pid, *map(int, others)]

    def ports_of(self, topic: str, partitions: int) -> list[int]:
        if self._processes == 1:
            return super().ports_of(topic, partitions)
        described = self.admin.describe_topics(TopicCollection([topic]))[topic].result(30)
        return [partition.leader.port for partition in described.partitions]

    def stop(self, *, kill: bool = False) -> None:
        if self._process is None:
            return
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None


class Apache(BrokerUnderTest):
    """Apache Kafka, one KRaft node, 1 GB heap."""

    name = APACHE
    version = KAFKA_4

    def __init__(self) -> None:
        super().__init__()
        self._broker: ApacheBroker | None = None

    @property
    def pid(self) -> int:
        assert self._broker is not None
        assert self._broker.process is not None
        return self._broker.process.pid

    def start(self) -> Self:
        self._broker = self._broker or ApacheBroker(
            config=APACHE_SETTINGS,
            data_dir=self.folder / "data",
            jvm_options=APACHE_JVM_OPTIONS,
        )
        self._broker.start(READY_SECONDS)
        self.port = self._broker.wanted_port = self._broker.port
        return self

    def stop(self, *, kill: bool = False) -> None:
        if self._broker is not None:
            self._broker.stop(kill=kill)


class Kfake(BrokerUnderTest):
    """franz-go's in-memory stand-in, one broker."""

    name = KFAKE

    def __init__(self) -> None:
        super().__init__()
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        self._process = subprocess.Popen([str(_kfake())], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().rpartition(":")[2])
        return self

    def stop(self, *, kill: bool = False) -> None:
        del kill
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


class MockCluster(BrokerUnderTest):
    """The mock cluster inside librdkafka: it lives in the client's process, and dies with it.

    So there is nothing to be asked about afterwards, and its processor time is the client's.
    """

    name = MOCK
    tells_offsets = False

    @property
    def bootstrap(self) -> str:
        return MOCK

    def start(self) -> Self:
        return self

    def stop(self, *, kill: bool = False) -> None:
        del kill

    def create_topic(self, partitions: int) -> str:
        del partitions  # it has four of each topic, which it makes when it hears of them
        self._topics += 1
        return f"measured-{self._topics}"

    def delete_topic(self, name: str) -> None:
        del name

    def cpu_seconds(self) -> float:
        return 0.0

    def forget_peak(self) -> None:
        return

    def peak_bytes(self) -> int:
        return 0


def _kfake() -> Path:
    """Return the compiled server of `kfake/`; compiles on first use."""
    source = Path(__file__).parent / "kfake"
    files = [source / name for name in ("main.go", "go.mod", "go.sum")]

    def build(target: Path) -> None:
        for file in files:
            (target / file.name).write_bytes(file.read_bytes())
        run_build([find_program("go"), "build", "-o", "kfake", "."], cwd=target)

    return cached_dir(f"go/kfake-{digest_of(*files)}", build, lock="go") / "kfake"


def wait_for_reply(port: int, deadline: float) -> None:
    """Ask for metadata until it is answered; `deadline` is of `time.perf_counter`."""
    ask_until(port, None, lambda _: True, deadline)


def ask_until(
    port: int, frame: bytes | None, is_good: Callable[[bytes], bool], deadline: float
) -> None:
    """Connect and ask, again and again, until a good answer comes; None asks for metadata.

    Raises:
        OSError, AssertionError: what the last attempt met, after the deadline.
    """
    while True:
        try:
            client = RawClient(("127.0.0.1", port), frame)
            try:
                assert is_good(client.ask()), "the broker refused"
            finally:
                client.close()
        except (OSError, AssertionError):
            if time.perf_counter() > deadline:
                raise
            time.sleep(0.005)
        else:
            return
