"""A consume-transform-produce chain, everything that can go wrong with it, and what must come out.

Workers in processes of their own read a topic in a group and write another in transactions. They
are killed, their connections cut, and the broker is killed and started again. In the end the
target must hold, for readers of committed records, every record of the source that was committed,
once, in order: see `kafkalite.testing.history`.
"""

import contextlib
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalite.testing.history import History
from tests.server.broker_process import BrokerProcess, free_port

SOURCE, TARGET, GROUP = "source", "target", "chain"
WAIT_S = 30
DRAIN_S = 240
"""A transaction of a worker that was killed runs out after 8 s, a member's session after 6."""


class Proxy:
    """Passes connections on to the broker, and cuts them all when told to."""

    def __init__(self, target_port):
        self.target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._pairs = set()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self):
        while not self._closed:
            try:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self.target_port), 2)
            except OSError:
                with contextlib.suppress(OSError, UnboundLocalError):
                    client.close()
                continue
            with self._lock:
                self._pairs.add((client, broker))
            threading.Thread(target=self._pump, args=(client, broker), daemon=True).start()

    def _pump(self, client, broker):
        other = {client: broker, broker: client}
        with contextlib.suppress(OSError, ValueError):
            while True:
                for ready in select.select([client, broker], [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        raise OSError
                    other[ready].sendall(data)
        with self._lock:
            self._pairs.discard((client, broker))
        client.close()
        broker.close()

    def cut(self):
        """Break every connection, half-sent requests and answers included."""
        with self._lock:
            pairs = [*self._pairs]
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._closed = True
        self._listener.close()
        self.cut()


class Chain:
    """The broker, the workers, and what was written into the source."""

    def __init__(self, data_dir, *, partitions=3, workers=2, seed=0):
        self.partitions = partitions
        self.chance = random.Random(seed)
        self.history = History()
        self.faults = Counter()
        self.exits = Counter()
        self.count = 0
        self.ends = dict.fromkeys(range(partitions), 0)
        """Behind the last committed record of the source, by partition."""
        self._ends = {}
        port = free_port()
        self.proxy = Proxy(port)
        self.broker = BrokerProcess(
            data_dir,
            port=port,
            advertised_listeners=f"PLAINTEXT://127.0.0.1:{self.proxy.port}",
            group_min_session_timeout_ms=1_000,
            kafkalite_group_evict_on_disconnect="true",
        )
        self.bootstrap = f"127.0.0.1:{self.proxy.port}"
        self.workers = [None] * workers

    def __enter__(self):
        self.broker.start()
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        topics = [NewTopic(name, self.partitions) for name in (SOURCE, TARGET)]
        for future in admin.create_topics(topics).values():
            future.result(WAIT_S)
        return self

    def __exit__(self, *_):
        for index in range(len(self.workers)):
            self.kill_worker(index)
        self.broker.kill()
        self.proxy.close()

    def fill(self, count):
        """Write `count` records to be passed on, among others that were aborted."""
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "transactional.id": "filler", "linger.ms": 5}
        )
        producer.init_transactions(WAIT_S)
        while count > 0:
            commits = self.chance.random() < 0.9
            size = min(self.chance.randint(1, 200), count)
            producer.begin_transaction()
            self._ends = {}
            for number in range(size):
                partition = (self.count + number) % self.partitions
                name = f"{'record' if commits else 'aborted'} {self.count + number}"
                producer.produce(SOURCE, name, partition=partition, on_delivery=self._sent)
                if commits:
                    write = self.history.send(f"source-{partition}", TARGET, partition, name)
                    self.history.acknowledge(write)
            producer.flush(WAIT_S)
            if commits:
                producer.commit_transaction(WAIT_S)
                self.ends |= self._ends
                self.count += size
                count -= size
            else:
                producer.abort_transaction(WAIT_S)

    def _sent(self, error, message):
        assert error is None, error
        self._ends[message.partition()] = message.offset() + 1

    def start_worker(self, index):
        command = [sys.executable, "-m", "tests.txn.chain_worker", self.bootstrap]
        command += [f"worker-{index}", SOURCE, TARGET, GROUP]
        self.workers[index] = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def kill_worker(self, index):
        worker, self.workers[index] = self.workers[index], None
        if worker is not None:
            worker.send_signal(signal.SIGKILL)
            worker.wait()

    def keep_workers(self):
        """Start those that have ended again."""
        for index, worker in enumerate(self.workers):
            if worker is None or worker.poll() is not None:
                if worker is not None:
                    self.exits[worker.returncode] += 1
                self.start_worker(index)

    def one_fault(self):
        """Something goes wrong."""
        kind = self.chance.choice(["worker", "broker", "connections", "connections"])
        self.faults[kind] += 1
        if kind == "worker":
            self.kill_worker(self.chance.randrange(len(self.workers)))
        elif kind == "broker":
            self.broker.kill()
            time.sleep(self.chance.uniform(0, 0.5))
            self.broker.start()
        else:
            self.proxy.cut()

    def run(self, *, faults, seconds_between=(0.3, 1.5)):
        """Have so many faults happen, then wait until everything has passed."""
        for _ in range(faults):
            self.keep_workers()
            time.sleep(self.chance.uniform(*seconds_between))
            self.one_fault()
        self.drain()

    def drain(self):
        """Wait until the group has committed all of the source."""
        consumer = self._consumer()
        deadline = time.monotonic() + DRAIN_S
        try:
            while any(left := self._left(consumer)):
                assert time.monotonic() < deadline, (
                    f"the chain hangs, {left} records before its end"
                )
                self.keep_workers()
                time.sleep(0.1)
        finally:
            consumer.close()

    def _left(self, consumer):
        """Return, by partition, how far the group is from the last record that was committed."""
        places = [TopicPartition(SOURCE, index) for index in range(self.partitions)]
        try:
            committed = consumer.committed(places, 5)
        except KafkaException:
            return [-1]
        return [max(self.ends[p.partition] - max(p.offset, 0), 0) for p in committed]

    def check(self):
        """Return what no correct broker can have done."""
        for index in range(len(self.workers)):
            self.kill_worker(index)
        # What the killed workers had open must run out by itself.
        consumer = self._consumer()
        try:
            for partition in range(self.partitions):
                self._read(consumer, partition)
        finally:
            consumer.close()
        return self.history.check()

    def _read(self, consumer, partition):
        place = TopicPartition(TARGET, partition, 0)
        consumer.assign([place])
        deadline = time.monotonic() + DRAIN_S
        while True:
            _, end = consumer.get_watermark_offsets(place, timeout=10)
            for message in consumer.consume(10_000, timeout=0.2):
                assert message.error() is None, message.error()
                self.history.read(
                    "check",
                    TARGET,
                    partition,
                    offset=message.offset(),
                    value=message.value().decode(),
                )
            position = consumer.position([place])[0].offset
            if position >= end:
                self.history.complete(TARGET, partition, end_offset=end)
                return
            assert time.monotonic() < deadline, f"{TARGET}-{partition} is stuck at {position}"

    def _consumer(self):
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": GROUP,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 20,
            }
        )

    def transactions(self):
        """Count the transactions that the target shows, and all that it holds, by isolation."""
        counts = {}
        for isolation in ("read_committed", "read_uncommitted"):
            consumer = Consumer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "group.id": "count",
                    "isolation.level": isolation,
                    "enable.partition.eof": True,
                }
            )
            places = [TopicPartition(TARGET, index, 0) for index in range(self.partitions)]
            consumer.assign(places)
            keys, ends = set(), 0
            while ends < self.partitions:
                for message in consumer.consume(1_000, timeout=5):
                    if message.error() is not None:
                        ends += 1
                    else:
                        keys.add(message.key())
            consumer.close()
            counts[isolation] = len(keys)
        return counts
