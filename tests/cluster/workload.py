"""Clients that work on a cluster while it is being broken, and note everything they see.

Each client is a thread with a history of its own. Producers are idempotent and write with
acks=all; transactional ones write one record to each partition of a topic and commit or abort;
consumers read everything as it becomes visible; members of a group commit offsets.
"""

import contextlib
import itertools
import logging
import random
import threading
import time

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalite.testing.history import History

ORDERS, PAYMENTS, GROUP = "orders", "payments", "watchers"
PATIENCE_S = 120
"""How long a client may need after the last fault before it counts as stuck."""
QUIET = {"log_level": 0, "socket.timeout.ms": 10_000}


def logger_to(path):
    """Return a logger that writes what librdkafka tells into a file."""
    logger = logging.getLogger(str(path))
    handler = logging.FileHandler(path, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.handlers[:] = [handler]
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    return logger


class Client(threading.Thread):
    """One client; `stop` ends it, and `failure` tells what it died of."""

    def __init__(self, name, access, seed):
        super().__init__(name=name, daemon=True)
        self.access = access
        self.random = random.Random(f"{seed}-{name}")
        self.history = History()
        self.done = 0
        self.failure = None
        self._stopping = threading.Event()

    def run(self):
        try:
            self.work()
        except BaseException as error:  # told by `stop`
            self.failure = error

    def work(self):
        raise NotImplementedError

    @property
    def is_stopping(self):
        return self._stopping.is_set()

    def ask_to_stop(self):
        self._stopping.set()

    def settings(self, **more):
        return {**self.access, **QUIET, **more}


class OrderProducer(Client):
    """Idempotent, acks=all; a value is acknowledged only by its delivery report."""

    def __init__(self, name, access, seed, partitions, *, folder, pause_s=0.004):
        super().__init__(name, access, seed)
        self._partitions, self._pause_s = partitions, pause_s
        self._logger = logger_to(f"{folder}/{name}.log")

    def work(self):
        for life in itertools.count():
            if self.is_stopping:
                return
            self._live(f"{self.name}-{life}")

    def _live(self, name):
        """Produce until told to stop, or until the producer cannot go on."""
        producer = Producer(
            self.settings(
                **{
                    "enable.idempotence": True,
                    "linger.ms": 2,
                    "message.timeout.ms": PATIENCE_S * 1000,
                    "queue.buffering.max.messages": 20_000,
                    # Of no use until there is a finding, and then the first thing to look at.
                    "debug": "eos,msg",
                    "log_level": 7,
                }
            ),
            logger=self._logger,
        )
        fatal = []

        def on_delivery(write):
            def report(error, message):
                if error is None:
                    # None: acknowledged by the success of a later batch.
                    offset = message.offset()
                    self.history.acknowledge(write, offset=-1 if offset is None else offset)
                    self.done += 1
                elif error.fatal():
                    fatal.append(error)

            return report

        for number in itertools.count():
            if self.is_stopping or fatal:
                break
            partition = self.random.randrange(self._partitions)
            value = f"{name}:{number}"
            write = self.history.send(name, ORDERS, partition, value)
            try:
                producer.produce(ORDERS, value, partition=partition, on_delivery=on_delivery(write))
            except BufferError:
                self.history.fail(write)  # it never left
            except KafkaException:
                self.history.fail(write)
                break
            producer.poll(self._pause_s)
        left = producer.flush(PATIENCE_S)
        assert not left or fatal, f"{left} records were never answered"


class PaymentProducer(Client):
    """One transaction after another, each with one record to every partition."""

    def __init__(self, name, access, seed, partitions, *, folder, pause_s=0.02):
        super().__init__(name, access, seed)
        self._partitions, self._pause_s = partitions, pause_s
        self._logger = logger_to(f"{folder}/{name}.log")
        self.aborted = self.unknown = 0

    def work(self):
        for life in itertools.count():
            if self.is_stopping:
                return
            with contextlib.suppress(KafkaException):
                self._live(f"{self.name}-{life}")

    def _live(self, name):
        producer = Producer(
            self.settings(
                **{
                    "transactional.id": self.name,
                    "transaction.timeout.ms": 10_000,
                    "message.timeout.ms": 10_000,
                    "linger.ms": 0,
                    "debug": "eos",
                    "log_level": 7,
                }
            ),
            logger=self._logger,
        )
        self._retried(producer.init_transactions)
        for number in itertools.count():
            if self.is_stopping:
                return
            wanted = self.random.random() < 0.8
            writes = []
            try:
                producer.begin_transaction()
                for partition in range(self._partitions):
                    value = f"{name}:{number}:{partition}"
                    writes.append(self.history.send(name, PAYMENTS, partition, value))
                    producer.produce(PAYMENTS, value, partition=partition)
                if wanted:
                    self._retried(producer.commit_transaction)
                else:
                    self._retried(producer.abort_transaction)
            except KafkaException as error:
                self._give_up(producer, error.args[0], writes, wanted=wanted)
                continue
            for write in writes:
                if wanted:
                    self.history.acknowledge(write)
                else:
                    self.history.fail(write)
            self.done += wanted
            self.aborted += not wanted
            time.sleep(self._pause_s)

    def _give_up(self, producer, error, writes, *, wanted):
        """Abort what can be aborted; anything else ends this producer's life."""
        if error.txn_requires_abort():
            self._retried(producer.abort_transaction)
            for write in writes:
                self.history.fail(write)
            self.aborted += 1
            return
        # Fatal, or out of time: whether the commit went through is not known.
        self.unknown += 1
        if not wanted:
            for write in writes:
                self.history.fail(write)
        raise KafkaException(error)

    def _retried(self, step):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                step(10)
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
            else:
                return


class Watcher(Client):
    """Reads all of a topic as it becomes visible, without a group."""

    def __init__(self, name, access, seed, topic, partitions, *, isolation):
        super().__init__(name, access, seed)
        self._topic, self._partitions, self._isolation = topic, partitions, isolation

    def work(self):
        consumer = Consumer(
            self.settings(
                **{
                    "group.id": f"unused-{self.name}",
                    "enable.auto.commit": False,
                    "isolation.level": self._isolation,
                    "auto.offset.reset": "error",
                    "fetch.wait.max.ms": 100,
                }
            )
        )
        consumer.assign(
            [TopicPartition(self._topic, p, OFFSET_BEGINNING) for p in range(self._partitions)]
        )
        try:
            while not self.is_stopping:
                self.take(consumer.consume(500, 0.2))
        finally:
            consumer.close()

    def take(self, messages):
        for message in messages:
            error = message.error()
            if error is not None:
                # An offset that was readable and is not any more is what this is here to find.
                assert error.code() != KafkaError.OFFSET_OUT_OF_RANGE, error
                assert error.code() != KafkaError._AUTO_OFFSET_RESET, error
                continue
            self.done += 1
            self.history.read(
                self.name,
                message.topic(),
                message.partition(),
                offset=message.offset(),
                value=message.value().decode(),
            )


class Member(Client):
    """A member of the group; remembers what it was told is committed."""

    def __init__(self, name, access, seed):
        super().__init__(name, access, seed)
        self.committed = {}

    def work(self):
        while not self.is_stopping:
            with contextlib.suppress(KafkaException):
                self._live()

    def _live(self):
        consumer = Consumer(
            self.settings(
                **{
                    "group.id": GROUP,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "session.timeout.ms": 6_000,
                    "heartbeat.interval.ms": 500,
                }
            )
        )
        consumer.subscribe([ORDERS])
        try:
            while not self.is_stopping:
                messages = [m for m in consumer.consume(200, 0.2) if m.error() is None]
                self.done += len(messages)
                if not messages:
                    continue
                with contextlib.suppress(KafkaException):
                    for answer in consumer.commit(asynchronous=False) or ():
                        if answer.error is None:
                            self.committed[answer.partition] = answer.offset
        finally:
            consumer.close()


class Workload:
    """All the clients. `with` starts them; `finish` stops them once all is well.

    Args:
        access: settings by which clients reach the cluster; an address alone if there is no more.
        seed: of what they do.
        folder: for what producers log.
        partitions: of each topic.
        producers: how many.
        transactional: how many.
    """

    def __init__(self, access, *, seed, folder, partitions=3, producers=2, transactional=1):
        access = {"bootstrap.servers": access} if isinstance(access, str) else access
        self.access, self.partitions = access, partitions
        self.producers = [
            OrderProducer(f"orders-{n}", access, seed, partitions, folder=folder)
            for n in range(producers)
        ]
        self.transactional = [
            PaymentProducer(f"payments-{n}", access, seed, partitions, folder=folder)
            for n in range(transactional)
        ]
        self.members = [Member(f"member-{n}", access, seed) for n in range(2)]
        self.watchers = [
            Watcher("all", access, seed, ORDERS, partitions, isolation="read_uncommitted"),
            Watcher("settled", access, seed, PAYMENTS, partitions, isolation="read_committed"),
        ]

    @property
    def clients(self):
        return [*self.producers, *self.transactional, *self.members, *self.watchers]

    def __enter__(self):
        create_topics(self.access, self.partitions)
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.ask_to_stop()

    def finish(self):
        """Stop writing, then reading; every client must have come through alive."""
        for group in (self.producers + self.transactional, self.members + self.watchers):
            for client in group:
                client.ask_to_stop()
            for client in group:
                client.join(2 * PATIENCE_S)
                assert not client.is_alive(), f"{client.name} is stuck"
                if client.failure is not None:
                    raise client.failure

    def wait_progress(self, seconds):
        """Return when every writer has had something acknowledged, and every reader read."""
        before = {client: client.done for client in self.clients}
        deadline = time.monotonic() + seconds
        while stuck := [c for c, done in before.items() if c.done == done and c.is_alive()]:
            names = ", ".join(client.name for client in stuck)
            assert time.monotonic() < deadline, f"no progress in {seconds} s: {names}"
            time.sleep(0.05)
        for client in self.clients:
            if client.failure is not None:
                raise client.failure

    def history(self):
        """What all of them noted."""
        merged = History()
        for client in self.clients:
            merged.merge(client.history)
        return merged

    def counts(self):
        return {client.name: client.done for client in self.clients}


def create_topics(access, partitions):
    admin = AdminClient({**access, **QUIET})
    config = {"min.insync.replicas": "2"}
    topics = [NewTopic(name, partitions, 3, config=config) for name in (ORDERS, PAYMENTS)]
    for future in admin.create_topics(topics, request_timeout=30).values():
        future.result(60)
