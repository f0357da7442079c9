"""What the driver programs of the Python clients share: the request loop and the encoding.

Runs in the driver's process, not in pytest's. A driver subclasses `DriverProgram` with one method
an operation, named `do_<op>`, and calls `main`.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
import traceback
from typing import Any

_OUTPUT = threading.Lock()


class OperationError(Exception):
    """An error to report: Kafka's number or name of it, and a message."""

    def __init__(self, code: int | str, message: str) -> None:
        super().__init__(message)
        self.code = code


def send(message: dict[str, Any]) -> None:
    """Write one line; any thread may."""
    line = json.dumps(message)
    with _OUTPUT:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def encode(value: bytes | str | None) -> str | None:
    """Return base64 text of bytes."""
    if value is None:
        return None
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()


def decode(text: str | None) -> bytes | None:
    """Return the bytes of base64 text."""
    return None if text is None else base64.b64decode(text)


def decode_headers(headers: list[list[str | None]] | None) -> list[tuple[str, bytes | None]]:
    """Return headers as most Python clients take them."""
    return [(name or "", decode(value)) for name, value in headers or ()]


class DriverProgram:
    """The request loop; one request at a time, members in threads of their own."""

    #: Exceptions of the client library, and how to read (code, message) off them.
    client_errors: tuple[type[BaseException], ...] = ()

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.members: dict[str, Any] = {}

    def error_of(self, error: BaseException) -> tuple[int | str, str]:
        """Return Kafka's number or name of a client's exception, and its message."""
        raise NotImplementedError

    def perform(self, operation: Any, arguments: dict[str, Any]) -> Any:
        """Call an operation; a driver with an event loop does it there."""
        return operation(**arguments)

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out one request and return the reply without its id."""
        operation = getattr(self, f"do_{request['op']}", None)
        if operation is None:
            return {"error": {"code": "NO_SUCH_OPERATION", "message": request["op"]}}
        arguments = {name: value for name, value in request.items() if name not in {"id", "op"}}
        try:
            return {"ok": self.perform(operation, arguments) or {}}
        except OperationError as error:
            return {"error": {"code": error.code, "message": str(error)}}
        except self.client_errors as error:
            code, message = self.error_of(error)
            return {"error": {"code": code, "message": message}}
        except Exception as error:
            traceback.print_exc()
            return {"error": {"code": "CLIENT", "message": f"{type(error).__name__}: {error}"}}

    def run(self) -> None:
        """Serve requests until stdin ends."""
        for line in sys.stdin:
            request = json.loads(line)
            send({"id": request["id"], **self.handle(request)})
        for member in list(self.members.values()):
            member.close()

    def do_member_open(self, member: str, **options: Any) -> None:
        """Start a member in a thread."""
        self.members[member] = self.make_member(member, **options)

    def make_member(self, member: str, **options: Any) -> Any:
        """Return a running member with `commit(offsets, metadata)` and `close()`."""
        raise NotImplementedError

    def do_member_commit(
        self, member: str, offsets: dict[str, dict[str, int]], metadata: str | None = None
    ) -> None:
        """Commit explicit offsets through a member."""
        flat = {
            (topic, int(index)): offset
            for topic, by_partition in offsets.items()
            for index, offset in by_partition.items()
        }
        self.members[member].commit(flat, metadata)

    def do_member_close(self, member: str) -> None:
        """Close a member and wait until it has left."""
        self.members.pop(member).close()


class MemberEvents:
    """Sends a member's events and keeps its whole assignment."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.assignment: set[tuple[str, int]] = set()

    def assigned(self, partitions: list[tuple[str, int]]) -> None:
        """Add partitions (all of them after an eager rebalance)."""
        self.assignment |= set(partitions)
        self._send("assigned", partitions)

    def revoked(self, partitions: list[tuple[str, int]]) -> None:
        """Take partitions away."""
        self.assignment -= set(partitions)
        self._send("revoked", partitions)

    def records(self, records: list[dict[str, Any]]) -> None:
        """Pass on what the member received."""
        if records:
            send({"event": "records", "member": self.name, "records": records})

    def failed(self, code: int | str, message: str) -> None:
        """Tell that the member cannot go on."""
        send({"event": "failed", "member": self.name, "code": code, "message": message})

    def _send(self, kind: str, partitions: list[tuple[str, int]]) -> None:
        send(
            {
                "event": kind,
                "member": self.name,
                "partitions": sorted(partitions),
                "assignment": sorted(self.assignment),
            }
        )
