"""Microseconds to decode and encode common messages, and milliseconds to import them all.

python benchmarks/wire_codec.py
"""

import os
import subprocess
import sys
import tempfile
import time

from kafkalite.wire.messages import fetch, metadata, produce

BATCH = bytes(1000)


def microseconds(function, repeat=7):
    """Return the best mean of several rounds of about 20 ms."""
    started = time.perf_counter()
    function()
    function()
    rounds = max(1, int(0.04 / (time.perf_counter() - started)))
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        for _ in range(rounds):
            function()
        best = min(best, (time.perf_counter() - started) / rounds)
    return best * 1e6


def fetch_request(topics, partitions):
    return fetch.FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        topics=[
            fetch.FetchTopic(
                topic=f"topic-{topic}",
                partitions=[
                    fetch.FetchPartition(partition=index, fetch_offset=12345)
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def fetch_response():
    data = fetch.PartitionData(high_watermark=100, last_stable_offset=100, records=BATCH)
    topic = fetch.FetchableTopicResponse(topic="topic-1", partitions=[data])
    return fetch.FetchResponse(responses=[topic])


def metadata_response(topics, partitions):
    return metadata.MetadataResponse(
        brokers=[
            metadata.MetadataResponseBroker(node_id=node, host="broker.example.com", port=9092)
            for node in range(3)
        ],
        topics=[
            metadata.MetadataResponseTopic(
                name=f"topic-{topic}",
                partitions=[
                    metadata.MetadataResponsePartition(
                        partition_index=index, replica_nodes=[0, 1, 2], isr_nodes=[0, 1, 2]
                    )
                    for index in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def produce_request():
    partition = produce.PartitionProduceData(index=0, records=BATCH)
    topic = produce.TopicProduceData(name="topic-1", partition_data=[partition])
    return produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def produce_response():
    partition = produce.PartitionProduceResponse(index=0, base_offset=5)
    topic = produce.TopicProduceResponse(name="topic-1", partition_responses=[partition])
    return produce.ProduceResponse(responses=[topic])


def import_ms():
    """Return the best import time with the bytecode cached, as it is when installed."""
    code = "import time; t = time.perf_counter(); import kafkalite.wire.messages; "
    code += "print((time.perf_counter() - t) * 1000)"
    with tempfile.TemporaryDirectory() as cache:
        variables = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": cache}
        environment = {**os.environ, **variables}
        command = [sys.executable, "-c", code]
        runs = [subprocess.run(command, env=environment, capture_output=True) for _ in range(6)]
    return min(float(run.stdout) for run in runs)


def main():
    cases = (
        ("Produce v9 request, 1 partition", produce.PRODUCE.request, 9, produce_request()),
        ("Produce v9 response, 1 partition", produce.PRODUCE.response, 9, produce_response()),
        ("Fetch v12 request, 1 partition", fetch.FETCH.request, 12, fetch_request(1, 1)),
        ("Fetch v12 request, 100 partitions", fetch.FETCH.request, 12, fetch_request(10, 10)),
        ("Fetch v12 response, 1 partition", fetch.FETCH.response, 12, fetch_response()),
        (
            "Metadata v12, 1,000 partitions",
            metadata.METADATA.response,
            12,
            metadata_response(100, 10),
        ),
    )
    print(f"{'message':36}{'decode us':>12}{'encode us':>12}")
    for name, codec, version, message in cases:
        frame = memoryview(bytearray(b"".join(codec.encode(version, message))))
        decode = microseconds(lambda c=codec, v=version, f=frame: c.decode(v, f))
        encode = microseconds(lambda c=codec, v=version, m=message: c.encode(v, m))
        print(f"{name:36}{decode:12.1f}{encode:12.1f}")
    print(f"import of all messages: {import_ms():.0f} ms")


if __name__ == "__main__":
    main()
