"""A worker in Python: librdkafka, which speaks the first transaction protocol.

Started as ``python -m compat_tests.chain.worker BOOTSTRAP GROUP SOURCE TARGET TRANSACTIONAL_ID``;
writes ``committed`` or ``aborted`` for each transaction, and ends when it cannot go on.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
    libversion,
)

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_S = 30
#: After which a call that was given WAIT_S is one that never returns.
STANDS_STILL_S = 45
#: The worker's last word then; it is started again, as after any end of its own.
STANDS_STILL = "stands still"
ABORTED_SHARE = 0.1
RECORDS_MAX = 8
#: librdkafka 2.9, which begins anew when it loses all brokers: then send_offsets_to_transaction
#: waits until its time is up for the group's coordinator that it knew before (seen with 2.16.1).
_FORGETS_BROKERS = 0x02090000
_DISCONNECTED = {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE}


class Worker:
    """Consumes a few records, sends them on, commits both in one transaction; again and again."""

    def __init__(
        self, bootstrap: str, group: str, source: str, target: str, transactional_id: str
    ) -> None:
        common = {
            "bootstrap.servers": bootstrap,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
            # Without one, a fatal error is raised by whatever call comes next.
            "error_cb": lambda error: None,
        }
        if libversion()[1] >= _FORGETS_BROKERS:
            common["metadata.recovery.strategy"] = "none"
        self.target = target
        self.consumer = Consumer(
            {
                **common,
                "group.id": group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 2000,
                "heartbeat.interval.ms": 300,
                "fetch.wait.max.ms": 50,
            }
        )
        self.producer = Producer(
            {
                **common,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": 4000,
                "linger.ms": 0,
            }
        )
        self.producer.init_transactions(WAIT_S)
        self.consumer.subscribe([source])

    def run(self) -> None:
        """Work until something cannot be helped."""
        numbers = random.Random()
        while True:
            messages = self.consumer.consume(numbers.randint(1, RECORDS_MAX), timeout=0.2)
            for message in messages:
                error = message.error()
                if (
                    error is not None
                    and not error.retriable()
                    and error.code() not in _DISCONNECTED
                ):
                    raise KafkaException(error)
            messages = [message for message in messages if message.error() is None]
            if messages:
                is_kept = numbers.random() >= ABORTED_SHARE
                done = self.transact(messages, is_kept=is_kept)
                print("committed" if done else "aborted", flush=True)

    def transact(self, messages: list, *, is_kept: bool) -> bool:
        """Pass messages on in a transaction; return whether that was committed."""
        self.producer.begin_transaction()
        try:
            for message in messages:
                self.producer.produce(
                    self.target, message.value(), message.key(), partition=message.partition()
                )
            if is_kept:
                offsets = {
                    (message.topic(), message.partition()): message.offset() + 1
                    for message in messages
                }
                # librdkafka 2.16 does not return from it where the producer used the group's
                # coordinator before and its broker restarted; with Apache Kafka neither.
                self.watched(
                    self.producer.send_offsets_to_transaction,
                    [TopicPartition(*place, offset) for place, offset in offsets.items()],
                    self.consumer.consumer_group_metadata(),
                    WAIT_S,
                )
                self.again_if_retriable(self.producer.commit_transaction)
                return True
        except KafkaException as refused:
            if not refused.args[0].txn_requires_abort():
                raise
        self.again_if_retriable(self.producer.abort_transaction)
        self.rewind()
        return False

    @staticmethod
    def watched(call: Callable[..., Any], *arguments: object) -> None:
        """Call, and end the process if that does not return: nothing else helps the library."""

        def give_up() -> None:
            name = getattr(call, "__name__", str(call))
            print(f"{STANDS_STILL}: librdkafka did not return from {name}", flush=True)
            os._exit(1)

        watchdog = threading.Timer(STANDS_STILL_S, give_up)
        watchdog.daemon = True
        watchdog.start()
        try:
            call(*arguments)
        finally:
            watchdog.cancel()

    @classmethod
    def again_if_retriable(cls, end: Callable[..., Any]) -> None:
        """Call until it is answered; the library wants that of its users."""
        while True:
            try:
                cls.watched(end, WAIT_S)
            except KafkaException as refused:
                if not refused.args[0].retriable():
                    raise
            else:
                return

    def rewind(self) -> None:
        """Go back to where the group stands."""
        assigned = self.consumer.assignment()
        for place in self.consumer.committed(assigned, WAIT_S) if assigned else []:
            place.offset = max(place.offset, 0)
            self.consumer.seek(place)


if __name__ == "__main__":
    Worker(*sys.argv[1:]).run()
