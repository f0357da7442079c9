"""Runs a client's driver program and speaks its JSON-lines protocol (see DRIVERS.md)."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkalite.wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

REPOSITORY = Path(__file__).resolve().parent.parent

#: What a reply may take; far more than any needs, so that a loaded machine does not fail a test.
REPLY_TIMEOUT_S = 60.0


class ClientError(Exception):
    """An error that a client reported; ``code`` is Kafka's name of it, or the driver's own."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class DriverDied(Exception):
    """The driver program ended or went silent; the message has the end of its stderr."""


@dataclass(slots=True, frozen=True, kw_only=True)
class ConsumedRecord:
    """A record as a client handed it to its user."""

    partition: int
    offset: int
    timestamp: int | None
    timestamp_type: str | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    topic: str | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class Produced:
    """Where a record went, or the name of the error that it met."""

    partition: int = -1
    offset: int = -1
    error: str | None = None
    message: str = ""


def encode_bytes(value: bytes | None) -> str | None:
    """Return bytes as the protocol carries them."""
    return None if value is None else base64.b64encode(value).decode()


def decode_bytes(text: str | None) -> bytes | None:
    """Return bytes that the protocol carried."""
    return None if text is None else base64.b64decode(text)


def error_name(code: int | str) -> str:
    """Return Kafka's name of an error number; names pass through."""
    if isinstance(code, str):
        return code
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def _record(fields: Mapping[str, Any]) -> ConsumedRecord:
    return ConsumedRecord(
        topic=fields.get("topic"),
        partition=fields["partition"],
        offset=fields["offset"],
        timestamp=fields.get("timestamp"),
        timestamp_type=fields.get("timestamp_type"),
        key=decode_bytes(fields["key"]),
        value=decode_bytes(fields["value"]),
        headers=tuple((name, decode_bytes(value)) for name, value in fields.get("headers") or ()),
    )


@dataclass(slots=True)
class Member:
    """One group member inside a driver: what it has been assigned and has received so far."""

    driver: Driver
    name: str
    assignment: set[tuple[str, int]] = field(default_factory=set)
    #: ("assigned" | "revoked", the partitions of that change), in order.
    changes: list[tuple[str, set[tuple[str, int]]]] = field(default_factory=list)
    records: list[ConsumedRecord] = field(default_factory=list)
    failure: ClientError | None = None
    is_open: bool = True

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Take in one event; called with the driver's lock held."""
        kind = event["event"]
        if kind == "records":
            self.records.extend(_record(fields) for fields in event["records"])
        elif kind == "failed":
            self.failure = ClientError(error_name(event["code"]), event["message"])
        else:
            self.changes.append((kind, {(topic, index) for topic, index in event["partitions"]}))
            self.assignment = {(topic, index) for topic, index in event["assignment"]}

    def wait(self, condition: Callable[[Member], bool], what: str, timeout: float = 30.0) -> None:
        """Return when the condition holds; raises with `what` and the state if it never does."""
        wait_members([self], lambda: condition(self), what, timeout)

    def wait_records(self, count: int, timeout: float = 30.0) -> list[ConsumedRecord]:
        """Return all records so far once there are at least `count`."""
        self.wait(lambda member: len(member.records) >= count, f"{count} records", timeout)
        return list(self.records)

    def wait_assignment(self, partitions: set[tuple[str, int]], timeout: float = 30.0) -> None:
        """Return when the member has exactly these partitions."""
        self.wait(lambda member: member.assignment == partitions, f"assigned {partitions}", timeout)

    def commit(self, offsets: Mapping[str, Mapping[int, int]], metadata: str | None = None) -> None:
        """Commit these next offsets synchronously."""
        self.driver.call(
            "member_commit", member=self.name, offsets=_text_keys(offsets), metadata=metadata
        )

    def close(self) -> None:
        """Leave the group (a static member does not) and end the consumer."""
        if self.is_open:
            self.is_open = False
            self.driver.call("member_close", member=self.name)


def wait_members(
    members: Sequence[Member], condition: Callable[[], bool], what: str, timeout: float = 30.0
) -> None:
    """Return when a condition over several members holds, whatever drivers they live in."""
    deadline = time.monotonic() + timeout
    changed = members[0].driver.changed
    assert all(member.driver.changed is changed for member in members)
    with changed:
        while not condition():
            for member in members:
                if member.failure is not None:
                    raise member.failure
                member.driver.check_alive()
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                states = "; ".join(
                    f"{member.name}: {sorted(member.assignment)}, {len(member.records)} records,"
                    f" changes {member.changes[-4:]}"
                    for member in members
                )
                logs = "\n".join(member.driver.log_tail() for member in members[:2])
                raise AssertionError(f"not reached in {timeout} s: {what}; {states}\n{logs}")
            changed.wait(min(remaining, 1.0))


def _text_keys(offsets: Mapping[str, Mapping[int, Any]]) -> dict[str, dict[str, Any]]:
    return {
        topic: {str(index): value for index, value in by_partition.items()}
        for topic, by_partition in offsets.items()
    }


#: One lock for all drivers of the process: members of different drivers are awaited together.
_CHANGED = threading.Condition()


class Driver:
    """A running driver program of one client."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.name = name
        self.changed = _CHANGED
        self.members: dict[str, Member] = {}
        self._replies: dict[int, dict[str, Any]] = {}
        self._next_id = 0
        self._log = tempfile.TemporaryFile("w+b")  # noqa: SIM115 (closed by close)
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=REPOSITORY,
            env={**os.environ, **environment},
        )
        self._ended = False
        self._reader = threading.Thread(target=self._read, name=f"read {name}", daemon=True)
        self._reader.start()

    def call(self, op: str, *, timeout: float = REPLY_TIMEOUT_S, **arguments: Any) -> Any:
        """Send one request and return what came back; raises `ClientError` on an error reply."""
        with self.changed:
            self.check_alive()
            self._next_id += 1
            request_id = self._next_id
        line = json.dumps({"id": request_id, "op": op, **arguments}).encode() + b"\n"
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise DriverDied(f"driver of {self.name} ended\n{self.log_tail()}") from None
        deadline = time.monotonic() + timeout
        with self.changed:
            while request_id not in self._replies:
                self.check_alive()
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    raise DriverDied(f"{self.name}: no reply to {op}\n{self.log_tail()}")
                self.changed.wait(min(remaining, 1.0))
            reply = self._replies.pop(request_id)
        if "error" in reply:
            error = reply["error"]
            raise ClientError(error_name(error["code"]), error.get("message", ""))
        return reply["ok"]

    def close(self) -> None:
        """End the program by ending its input; kill it if that takes longer than a moment."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()

    def check_alive(self) -> None:
        """Raise if the program has ended."""
        if self._ended:
            raise DriverDied(f"driver of {self.name} ended\n{self.log_tail()}")

    def log_tail(self) -> str:
        """Return the end of the program's stderr."""
        if self._log.closed:
            return ""
        size = os.fstat(self._log.fileno()).st_size
        tail = os.pread(self._log.fileno(), 4000, max(0, size - 4000))
        return f"--- stderr of {self.name}:\n{tail.decode(errors='replace')}"

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                os.write(self._log.fileno(), b"not a reply: " + line)
                continue
            with self.changed:
                if "event" in message:
                    member = self.members.get(message["member"])
                    if member is not None:
                        member.on_event(message)
                else:
                    self._replies[message["id"]] = message
                self.changed.notify_all()
        with self.changed:
            self._ended = True
            self.changed.notify_all()

    # The operations, with Python's types.

    def produce(
        self, topic: str, records: Sequence[Mapping[str, Any]], **options: Any
    ) -> list[Produced]:
        """Produce records given as mappings with bytes; returns a result for each, in order."""
        wire_records = [
            {
                **record,
                "key": encode_bytes(record.get("key")),
                "value": encode_bytes(record.get("value")),
                "headers": [
                    [name, encode_bytes(value)] for name, value in record.get("headers") or ()
                ],
            }
            for record in records
        ]
        reply = self.call("produce", topic=topic, records=wire_records, **options)
        assert len(reply["results"]) == len(records), reply
        return [_produced(result) for result in reply["results"]]

    def consume(
        self, topic: str, starts: Mapping[int, Any], count: int, **options: Any
    ) -> list[ConsumedRecord]:
        """Return the first `count` records of these partitions from these starts, no group."""
        text_starts = {str(index): start for index, start in starts.items()}
        reply = self.call("consume", topic=topic, starts=text_starts, count=count, **options)
        return [_record(fields) for fields in reply["records"]]

    def open_member(self, member: str, group: str, topics: Sequence[str], **options: Any) -> Member:
        """Start a group member that polls in the background."""
        opened = self.members[member] = Member(self, member)
        self.call("member_open", member=member, group=group, topics=list(topics), **options)
        return opened

    def list_offsets(self, topic: str, at: Mapping[int, Any]) -> dict[int, int]:
        """Return the offset of each partition at "earliest", "latest", a time..."""
        reply = self.call("list_offsets", topic=topic, at={str(i): w for i, w in at.items()})
        return {int(index): offset for index, offset in reply["offsets"].items()}

    def delete_records(self, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
        """Delete what lies before these offsets; returns the low watermarks."""
        text_offsets = {str(index): offset for index, offset in offsets.items()}
        reply = self.call("delete_records", topic=topic, offsets=text_offsets)
        return {int(index): offset for index, offset in reply["low_watermarks"].items()}

    def group_offsets(self, group: str) -> dict[str, dict[int, int]]:
        """Return the committed next offsets by topic and partition."""
        reply = self.call("group_offsets", group=group)
        return {
            topic: {int(index): entry["offset"] for index, entry in by_partition.items()}
            for topic, by_partition in reply["offsets"].items()
        }


def _produced(result: Mapping[str, Any]) -> Produced:
    if "error" in result:
        error = result["error"]
        return Produced(error=error_name(error["code"]), message=error.get("message", ""))
    offset = result.get("offset")
    return Produced(partition=result["partition"], offset=-1 if offset is None else offset)
