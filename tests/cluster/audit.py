"""What must be true of a cluster once it has healed."""

import time
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from kafkalite.wire.records import iterate_batches
from tests.cluster.workload import GROUP, ORDERS, PAYMENTS, QUIET

READ_S = 60


def read_all(history, access, topic, partitions, *, isolation):
    """Read a topic from its beginning to its end into a history."""
    consumer = Consumer(
        {
            **access,
            "group.id": "auditor",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": False,
            **QUIET,
        }
    )
    places = [TopicPartition(topic, p) for p in range(partitions)]
    ends = {p.partition: consumer.get_watermark_offsets(p, READ_S)[1] for p in places}
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    deadline = time.monotonic() + READ_S
    while any(p.offset < ends[p.partition] for p in consumer.position(places) if ends[p.partition]):
        assert time.monotonic() < deadline, f"{topic} cannot be read to its end: {ends}"
        for message in consumer.consume(1_000, 0.2):
            if message.error() is None:
                history.read(
                    f"auditor of {topic}",
                    topic,
                    message.partition(),
                    offset=message.offset(),
                    value=message.value().decode(),
                )
    consumer.close()
    for partition, end in ends.items():
        history.complete(topic, partition, end_offset=end)
    return ends


def check_committed_offsets(workload):
    """Return which offsets of the group are not there though their commit was answered."""
    consumer = Consumer({**workload.access, "group.id": GROUP, **QUIET})
    places = [TopicPartition(ORDERS, p) for p in range(workload.partitions)]
    kept = {p.partition: p.offset for p in consumer.committed(places, 30)}
    consumer.close()
    wanted = {}
    for member in workload.members:
        for partition, offset in member.committed.items():
            wanted[partition] = max(offset, wanted.get(partition, 0))
    return [
        f"offset {offset} of {ORDERS}-{partition} was committed, {kept[partition]} is kept"
        for partition, offset in wanted.items()
        if kept[partition] < offset
    ]


def check_replicas(data_dirs):
    """Compare the logs of all brokers batch by batch; return how they differ.

    Segments begin where each broker happened to roll; the batches in them must be the same bytes.
    """
    found = []
    names = {path.name for folder in data_dirs for path in folder.iterdir() if path.is_dir()}
    for name in sorted(names):
        if name.endswith(("-delete", "-stray")) or "-" not in name:
            continue
        logs = {folder: _batches(folder / name) for folder in data_dirs if (folder / name).is_dir()}
        first = max((min(log, default=0) for log in logs.values()), default=0)
        logs = {
            folder: {offset: batch for offset, batch in log.items() if offset >= first}
            for folder, log in logs.items()
        }
        reference_folder, reference = next(iter(logs.items()))
        for folder, log in logs.items():
            if log == reference:
                continue
            differing = sorted(
                offset
                for offset in log.keys() | reference.keys()
                if log.get(offset) != reference.get(offset)
            )
            found.append(
                f"{name}: {folder} and {reference_folder} differ at {len(differing)} batches, "
                f"first at offset {differing[0]}"
            )
    return found


def _batches(folder: Path):
    """Return the batches of a partition's directory by their base offsets."""
    found = {}
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        for position, header in iterate_batches(data):
            found[header.base_offset] = data[position : position + header.size]
    return found


def audit(workload, data_dirs):
    """Return everything that is wrong, in words; an empty list is what one hopes for."""
    history = workload.history()
    read_all(
        history,
        workload.access,
        ORDERS,
        workload.partitions,
        isolation="read_uncommitted",
    )
    read_all(history, workload.access, PAYMENTS, workload.partitions, isolation="read_committed")
    found = [str(finding) for finding in history.check()]
    found += check_committed_offsets(workload)
    found += check_replicas(data_dirs)
    return found
