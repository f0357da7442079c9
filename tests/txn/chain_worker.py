"""A link of the chain: reads one topic, writes another, in transactions; made to be killed.

    python -m tests.txn.chain_worker BOOTSTRAP TRANSACTIONAL_ID SOURCE TARGET GROUP

Every record is written to the partition it came from. Ends with code 3 where only a new producer
helps, as an application does that is started again.
"""

import random
import sys

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

RECORDS_MAX = 20
WAIT_S = 30
NEEDS_A_NEW_PRODUCER = 3


class Worker:
    def __init__(self, bootstrap, transactional_id, source, target, group):
        common = {
            "bootstrap.servers": bootstrap,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
        }
        self.target = target
        self.transactional_id = transactional_id
        self.is_rebalanced = False
        self.attempt = 0
        self.chance = random.Random()
        self.producer = Producer(
            {
                **common,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": 8_000,
                "message.timeout.ms": 8_000,
                "linger.ms": 0,
            }
        )
        self.consumer = Consumer(
            {
                **common,
                "group.id": group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
                "fetch.wait.max.ms": 50,
                "topic.metadata.refresh.interval.ms": 2_000,
            }
        )
        self.producer.init_transactions(WAIT_S)
        self.consumer.subscribe([source], on_revoke=self.on_rebalance, on_lost=self.on_rebalance)

    def on_rebalance(self, *_):
        """Positions are those of the group again: what was read and not committed comes again."""
        self.is_rebalanced = True

    def run(self):
        while True:
            records = self.read()
            if not records:
                continue
            try:
                self.transform(records)
            except KafkaException as error:
                self.recover(error)

    def read(self):
        """Return records that were read under one assignment."""
        self.is_rebalanced = False
        records = []
        wanted = self.chance.randint(1, RECORDS_MAX)
        timeout_s = 1.0
        while len(records) < wanted:
            message = self.consumer.poll(timeout_s)
            if self.is_rebalanced:
                # librdkafka goes on from the committed offsets; so must this.
                self.is_rebalanced = False
                records = []
                self.rewind()
                continue
            if message is None:
                break
            if message.error() is None:
                records.append(message)
                timeout_s = 0.0
        return records

    def transform(self, records):
        self.attempt += 1
        self.producer.begin_transaction()
        offsets = {}
        for record in records:
            self.producer.produce(
                self.target,
                record.value(),
                key=f"{self.transactional_id} {self.attempt}",
                partition=record.partition(),
            )
            offsets[record.topic(), record.partition()] = record.offset() + 1
        self.producer.send_offsets_to_transaction(
            [TopicPartition(*place, offset) for place, offset in offsets.items()],
            self.consumer.consumer_group_metadata(),
            WAIT_S,
        )
        if self.chance.random() < 0.05:
            self.producer.abort_transaction(WAIT_S)
            self.rewind()
            return
        while True:
            try:
                self.producer.commit_transaction(WAIT_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            else:
                return

    def recover(self, error):
        if not error.args[0].txn_requires_abort():
            sys.exit(NEEDS_A_NEW_PRODUCER)
        try:
            self.producer.abort_transaction(WAIT_S)
        except KafkaException:
            sys.exit(NEEDS_A_NEW_PRODUCER)
        self.rewind()

    def rewind(self):
        """Go back to what the group has committed."""
        while True:
            assigned = self.consumer.assignment()
            try:
                for place in self.consumer.committed(assigned, WAIT_S):
                    place.offset = max(place.offset, 0)
                    self.consumer.seek(place)
            except KafkaException:
                self.consumer.poll(0.05)  # the assignment has changed, or nobody answers
            else:
                return


if __name__ == "__main__":
    try:
        Worker(*sys.argv[1:]).run()
    except KafkaException:
        sys.exit(NEEDS_A_NEW_PRODUCER)
