"""What one client wrote, every other reads the same."""

from __future__ import annotations

import random

from compat_tests.clients import all_clients
from compat_tests.driver import ClientError
from compat_tests.scenarios.records import check_same, check_sent
from compat_tests.scenarios.registry import Bench, scenario

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@scenario("written by it, read by all clients")
def every_other_client_reads_the_same(bench: Bench) -> None:
    codecs = [
        codec
        for codec in _CODECS
        if codec == "none" or bench.client.reason_against([f"codec:{codec}"]) is None
    ]
    topic = bench.topic(partitions=len(codecs))
    numbers = random.Random(7)
    timed = bench.client.reason_against(["timestamps"]) is None
    sent_by_codec = []
    for partition, codec in enumerate(codecs):
        sent = []
        for i in range(20):
            record = {
                "partition": partition,
                "key": None if i % 5 == 0 else b"key-%d" % i,
                # Some of it compresses and some does not; one is longer than a block of snappy's.
                "value": b"text " * i + numbers.randbytes(70_000 if i == 3 else 50),
                "headers": [("codec", codec.encode()), ("i", b"%d" % (i // 5))],
            }
            sent.append(record | ({"timestamp": 1_700_000_000_000 + i} if timed else {}))
        # Several batches: without a sequence a retried one could come after its successor.
        idempotent = bench.client.reason_against(["idempotence"]) is None
        check_sent(bench.driver.produce(topic, sent, codec=codec, idempotence=idempotent))
        sent_by_codec.append(sent)
    for reader in all_clients():
        driver = bench.driver_of(reader)
        readable = [
            partition
            for partition, codec in enumerate(codecs)
            if reader.reason_against([f"reads:{bench.client.name} {codec}"]) is None
        ]
        try:
            read = driver.consume(topic, dict.fromkeys(readable, "earliest"), 20 * len(readable))
        except ClientError as error:
            raise AssertionError(f"{reader.id} cannot read it") from error
        for partition in readable:
            sent = sent_by_codec[partition]
            here = [record for record in read if record.partition == partition]
            assert [record.offset for record in here] == list(range(20)), reader.id
            check_same(sent, here)
            if timed:
                stamps = [record.timestamp for record in here]
                assert stamps == [record["timestamp"] for record in sent], reader.id
