"""Requests of share groups that any broker answers; its answers without ids, times and words."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tests.share.probe import Probe, acquired, offsets_in, shown

SETTINGS = {
    "group.share.min.record.lock.duration.ms": 1_000,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 3,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.num.partitions": 3,
    "share.coordinator.state.topic.min.isr": 1,
}
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4

#: What differs between two runs against one broker, and the words of errors.
_LEFT_OUT = {
    "error_message",
    "acknowledge_error_message",
    "throttle_time_ms",
    "leader_epoch",
    "host",
    "port",
    "node_id",
}

Notes = list[tuple[str, Any]]
New = Callable[..., Probe]


def play(port: int) -> Notes:
    """Play everything against the broker on a port of loopback; return (name, answer) of each."""
    notes: Notes = []
    with ExitStack() as probes:

        def new(**who: str) -> Probe:
            probe = Probe(port, **who)
            probes.callback(probe.client.close)
            return probe

        topic_id = _members_and_records(new, notes)
        _limits(new, topic_id, notes)
        _locks(new, topic_id, notes)
    return notes


def _plain(message: Any) -> Any:
    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: walk(each) for name, each in value.items() if name not in _LEFT_OUT}
        return [walk(each) for each in value] if isinstance(value, list) else value

    return walk(shown(message))


def _until(ask: Any, is_good: Any) -> Any:
    """Ask until the answer is good, at most for a minute."""
    deadline = time.monotonic() + 60
    while True:
        answer = ask()
        if is_good(answer) or time.monotonic() > deadline:
            return answer
        time.sleep(0.1)


def _join(probe: Probe, topic: str) -> None:
    _until(
        lambda: probe.find_coordinator(probe.group, key_type=0),
        lambda answer: not answer.coordinators[0].error_code,
    )
    _until(
        lambda: probe.heartbeat(0, [topic]),
        lambda answer: not answer.error_code and answer.assignment.topic_partitions,
    )


def _members_and_records(new: New, notes: Notes) -> Any:
    def note(name: str, message: Any) -> Any:
        notes.append((name, _plain(message)))
        return message

    first, topic = new(), "s3"
    topic_id = first.create_topic(topic)
    for _ in range(4):
        first.produce(topic, 5)
    first.set_group(share_auto_offset_reset="earliest")
    _until(
        lambda: first.find_coordinator(first.group, key_type=0),
        lambda answer: not answer.coordinators[0].error_code,
    )
    note(
        "join", _until(lambda: first.heartbeat(0, [topic]), lambda a: a.error_code not in (14, 16))
    )
    note("assigned", _until(lambda: first.heartbeat(2), lambda answer: answer.member_epoch == 3))
    note("heartbeat", first.heartbeat(3))
    note("epoch before", first.heartbeat(2))
    note("epoch too low", first.heartbeat(1))
    note("epoch too high", first.heartbeat(9))
    note("all said again", first.heartbeat(3, [topic]))
    note("epoch -2", first.heartbeat(-2))
    note("fetch", first.fetch(topic_id))
    note("accept", first.fetch(topic_id, (0, 4, ACCEPT), max_wait_ms=0))
    again = first.fetch(topic_id, (5, 9, RELEASE), (10, 10, REJECT), max_records=3)
    notes.append(("released", acquired(again) or acquired(first.fetch(topic_id, max_records=3))))
    for acks in (
        [(0, 4, ACCEPT)],
        [(10, 10, ACCEPT)],
        [(100, 110, ACCEPT)],
        [(11, 11, 7)],
        [(11, 11, RENEW)],
        [(12, 11, ACCEPT)],
        [(13, 13, ACCEPT), (12, 12, ACCEPT)],
        [(11, 12, ())],
        [(11, 12, (ACCEPT,) * 3)],
    ):
        note(f"acknowledge {acks}", first.acknowledge(topic_id, *acks))
    note("renew", first.acknowledge(topic_id, (11, 14, RENEW), renews=True))
    note("renew v1", first.acknowledge(topic_id, (11, 11, RENEW), version=1))
    note("other partition", first.acknowledge(topic_id, (0, 0, ACCEPT), partition=5))
    note("wrong epoch", first.acknowledge(topic_id, epoch=20))
    note("epoch 0", first.acknowledge(topic_id, epoch=0))
    note("fetch wrong epoch", first.fetch(topic_id, epoch=99))
    second, third = new(member="M2"), new(member="M3")
    note("no session", second.acknowledge(topic_id, epoch=1))
    note("acknowledge first", second.fetch(topic_id, (0, 1, ACCEPT)))
    note("fetch without session", second.fetch(topic_id, epoch=3))
    note("second opens", second.fetch(topic_id, max_wait_ms=0))
    note("end of none", third.acknowledge(topic_id, epoch=-1))
    note("describe", first.describe_offsets())
    note("alter with members", first.alter_offsets(topic, {0: 3}))
    first.close()
    taken = _until(lambda: second.fetch(topic_id), acquired)
    notes.append(("given back", (acquired(taken), offsets_in(taken))))
    note("no member", new(member="").fetch(topic_id))
    note("no partition", new(member="M5").fetch(topic_id, partitions=(7,), max_wait_ms=0))
    renewal = {"is_renew_ack": True, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    note("renew with limits", second.fetch(topic_id, (11, 11, RENEW), is_renew_ack=True))
    note("renew on the way", second.fetch(topic_id, (11, 11, RENEW), max_wait_ms=0, **renewal))
    note("fetch after it", second.fetch(topic_id, max_wait_ms=0))
    note("end", second.fetch(topic_id, (5, 9, ACCEPT), epoch=-1))
    note("after the end", second.fetch(topic_id, epoch=2))
    return topic_id


def _limits(new: New, topic_id: Any, notes: Notes) -> None:
    probe = new(group="limits")
    probe.set_group(share_auto_offset_reset="earliest")
    _join(probe, "s3")
    notes.append(("three", acquired(probe.fetch(topic_id, max_records=3))))
    exact = probe.fetch(topic_id, max_records=3, share_acquire_mode=1)
    notes.append(("exactly three", (acquired(exact), offsets_in(exact))))
    notes.append(("by five", acquired(probe.fetch(topic_id, batch_size=5))))
    notes.append(("each", _plain(probe.acknowledge(topic_id, (0, 4, (1, 2, 3, 0, 1))))))
    notes.append(("back", acquired(_until(lambda: probe.fetch(topic_id), acquired))))


def _locks(new: New, topic_id: Any, notes: Notes) -> None:
    first, second = new(group="locks"), new(group="locks", member="M2")
    first.set_group(share_auto_offset_reset="earliest", share_record_lock_duration_ms=2_000)
    _join(first, "s3")
    notes.append(("locked", acquired(first.fetch(topic_id))))
    second.fetch(topic_id, max_wait_ms=0)
    for turn in range(6):
        again = _until(lambda: second.fetch(max_wait_ms=500), acquired)
        notes.append((f"lock ended {turn}", acquired(again)))
    notes.append(("too late", _plain(first.acknowledge(topic_id, (0, 19, ACCEPT)))))
    notes.append(("leave", _plain(first.heartbeat(-1))))
    notes.append(("leave again", _plain(first.heartbeat(-1))))
    notes.append(("alter", _plain(first.alter_offsets("s3", {0: 3, 9: 1}))))
    notes.append(("altered", _plain(first.describe_offsets())))
    nobody = new(group="nobody")
    _until(
        lambda: nobody.find_coordinator("nobody", key_type=0),
        lambda answer: not answer.coordinators[0].error_code,
    )
    notes.append(("describe nobody", _plain(nobody.describe_offsets())))
    notes.append(("no key", _plain(nobody.find_coordinator("bad"))))
