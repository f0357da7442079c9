"""Metadata of several broker processes on one machine: the first keeps them, the others follow.

The first process's store is an `Ensemble` whose commits are lines of its metadata file (`local`);
it is the only one that becomes controller. Each of the others has two connections to its Unix
socket: one for questions, one on which events come. A broker's session lasts as long as the first
of these: on one machine a connection that ends is a process that ended. Messages are lines of JSON.
"""

import json
import logging
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from uuid import uuid4

import trio

from kafkalite.meta.changes import BrokerRegistered, Change, from_json, to_text
from kafkalite.meta.ensemble import Ensemble, EnsembleStore
from kafkalite.meta.image import BrokerImage, Image, ImageBuilder
from kafkalite.meta.store import (
    BrokerIdTaken,
    CommitEvent,
    ControllerChanged,
    FellBehind,
    MetadataStoreError,
    OutcomeUnknown,
    SessionLost,
    SessionSuspended,
    Stored,
    StoreEvent,
)
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.meta.local import LocalStore

logger = logging.getLogger("kafkalite.meta")

CONNECT_TIMEOUT_S: Final = 60.0
"""Recovery of the first process's logs does not count: its socket is there before."""

RETURN_S: Final = 6.0
"""For so long a first process that was started anew takes the others for alive: they are, unless
the machine went down, and have to find its socket."""

RETRY_S: Final = 0.05
RECEIVE_BYTES: Final = 1 << 16


class _Ended(Exception):
    """The other side has closed the connection."""


class _Lines:
    """Lines of JSON over a stream. `receive` may be cancelled; nothing is then lost."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._buffer = bytearray()

    async def send(self, text: str) -> None:
        try:
            await self._stream.send_all(text.encode() + b"\n")
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise _Ended from None

    async def receive(self) -> dict[str, Any]:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            try:
                data = await self._stream.receive_some(RECEIVE_BYTES)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                raise _Ended from None
            if not data:
                raise _Ended
            self._buffer += data
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        values = json.loads(line)
        assert isinstance(values, dict)
        return values

    def close(self) -> None:
        # In one step, without a checkpoint: who waits in `receive` is told by trio.
        self._stream.socket.close()


class FirstProcessStore(EnsembleStore):
    """Store of the process that keeps the metadata, and serves those that follow.

    Args:
        local: its metadata file.
        path: of the socket, in a folder that only this user can enter.
    """

    def __init__(self, local: "LocalStore", path: str) -> None:
        super().__init__(Ensemble())
        self._local = local
        self._path = path
        self._is_loaded = trio.Event()
        self._serving = trio.CancelScope()
        self._followers: dict[str, EnsembleStore] = {}

    async def open(self) -> None:
        """Listen for the others; they are answered once `load` has read the file.

        Raises:
            MetadataStoreError: the socket cannot be made.
        """
        await super().open()
        listener = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _remove(self._path)  # of a process that was killed
            await listener.bind(self._path)
        except OSError as error:
            listener.close()
            raise MetadataStoreError(f"{self._path}: {error.strerror or error}") from None
        listener.listen()
        trio.lowlevel.spawn_system_task(self._serve, trio.SocketListener(listener))

    async def cluster_id(self, proposed: str) -> str:
        """Return the id that the log directories have, or are to have."""
        self._ensemble.id = proposed
        return proposed

    async def load(self, known_version: int = -1) -> Stored | None:
        """Return what was committed; the first time, read the file."""
        if not self._is_loaded.is_set():
            stored = await self._local.load()
            builder = ImageBuilder(Image())
            for change in stored.changes:
                change.apply_to(builder)
            ensemble = self._ensemble
            ensemble.image = builder.build(stored.version)
            ensemble.epoch = stored.version
            brokers = ensemble.image.brokers.values()
            ensemble.broker_epoch = max((each.broker_epoch for each in brokers), default=0)
            ensemble.remember(RETURN_S)
            self._is_loaded.set()
        return await super().load(known_version)

    async def commit(self, before: Image, after: Image, changes: Sequence[Change]) -> int:
        """Append one line to the file, then tell the others."""
        await self._ask()
        if self._ensemble.image.version != before.version:
            raise OutcomeUnknown("the metadata are newer than was thought")
        version = await self._local.commit(before, after, changes)
        self._ensemble.append(CommitEvent(version=version, changes=list(changes)))
        self._version = max(self._version, version)
        return version

    async def compact(self, image: Image) -> None:
        """Rewrite the file once it has grown much beyond the image."""
        await self._local.compact(image)

    def close(self) -> None:
        """Close socket and file."""
        self._serving.cancel()
        with suppress(OSError):
            _remove(self._path)
        super().close()
        self._local.close()

    async def _serve(self, listener: trio.SocketListener) -> None:
        try:
            with self._serving:
                await trio.serve_listeners(self._answer, [listener])
        except OSError:
            logger.exception("the other processes cannot be served any more")

    async def _answer(self, stream: trio.SocketStream) -> None:
        lines = _Lines(stream)
        try:
            await self._is_loaded.wait()
            hello = await lines.receive()
            if hello["do"] == "follow":
                await self._tell(lines, self._followers[hello["session"]], hello["version"])
            else:
                await self._answer_questions(lines, hello["session"])
        except _Ended:
            pass
        except Exception:  # one follower's fault is not all others'
            logger.exception("a process that follows the metadata is given up")
        finally:
            lines.close()

    async def _answer_questions(self, lines: _Lines, session: str) -> None:
        store = self._followers[session] = self._ensemble.store()
        try:
            await store.open()
            await lines.send("{}")
            while True:
                question = await lines.receive()
                answer = await _answered(store, question)
                await lines.send(f'{{"number":{question["number"]},{answer}}}')
        finally:
            del self._followers[session]
            store.close()

    async def _tell(self, lines: _Lines, store: EnsembleStore, version: int) -> None:
        store.follow_from(version)
        while True:
            event = await store.next_event()
            text = _event_text(event)
            if text is None:  # the session is over, and so is the other connection
                store.close()  # `next_event` has begun another one
                return
            await lines.send(text)


class FollowingStore:
    """Store of a process that follows another one's metadata; see `MetadataStore`.

    Args:
        path: of the first process's socket.
    """

    shared: Final = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._session = ""
        self._questions: _Lines | None = None
        self._events: _Lines | None = None
        self._lock = trio.Lock()
        self._number = 0
        self._version = 0
        self._broker_epoch = -1
        self._told_suspended = False

    async def open(self) -> None:
        """Connect, as soon as the first process listens.

        Raises:
            MetadataStoreError: it does not.
        """
        with trio.move_on_after(CONNECT_TIMEOUT_S):
            while not await self._connect():  # noqa: ASYNC110 - by what would it be told?
                await trio.sleep(RETRY_S)
        if self._questions is None:
            raise MetadataStoreError(f"{self._path}: no process serves metadata there")

    async def cluster_id(self, proposed: str) -> str:
        """Return the first process's cluster id."""
        return str((await self._ask("cluster"))["id"])

    async def load(self, known_version: int = -1) -> Stored | None:
        """Return all metadata; None if `known_version` is still the newest."""
        answer = await self._ask("load", known=known_version)
        self._version = max(self._version, answer["version"])
        if answer["changes"] is None:
            return None
        return Stored(answer["version"], [from_json(each) for each in answer["changes"]])

    async def register(self, broker: BrokerImage) -> int:
        """Register at the first process."""
        known = replace(broker, broker_epoch=self._broker_epoch)
        text = json.loads(to_text(BrokerRegistered.of(known)))
        answer = await self._ask("register", broker=text)
        if "taken" in answer:
            raise BrokerIdTaken(answer["taken"])
        self._broker_epoch = int(answer["epoch"])
        return self._broker_epoch

    async def campaign(self) -> None:
        """Leave it to the first process."""
        await trio.lowlevel.checkpoint()

    async def commit(self, before: Image, after: Image, changes: Sequence[Change]) -> NoReturn:
        """Refuse: only the first process commits."""
        del before, after, changes
        await trio.lowlevel.checkpoint()
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "the first process is the controller")

    async def next_event(self) -> StoreEvent:
        """Return what the first process tells next; connect again if it was started anew."""
        while True:
            if self._questions is None:
                if not self._told_suspended:
                    self._told_suspended = True
                    return SessionSuspended()
                if not await self._connect():
                    await trio.sleep(RETRY_S)
                    continue
                self._told_suspended = False
                return SessionLost()
            try:
                if self._events is None:
                    self._events = await self._connected(
                        {"do": "follow", "session": self._session, "version": self._version}
                    )
                event = _read_event(await self._events.receive())
            except (OSError, _Ended):
                self._drop()
                continue
            if isinstance(event, CommitEvent):
                if event.version <= self._version:
                    continue  # `load` had it
                self._version = event.version
            return event

    async def compact(self, image: Image) -> None:
        """Leave it to the first process."""

    def close(self) -> None:
        """Close the connections: this broker is gone."""
        self._drop()

    # --- Connections -----------------------------------------------------------------------------

    async def _connect(self) -> bool:
        """Begin a session; return whether the first process listens."""
        self._session = uuid4().hex
        try:
            lines = await self._connected({"do": "open", "session": self._session})
            await lines.receive()
        except (OSError, _Ended):
            return False
        self._questions = lines
        return True

    async def _connected(self, hello: Mapping[str, Any]) -> _Lines:
        lines = _Lines(await trio.open_unix_socket(self._path))
        await lines.send(json.dumps(hello))
        return lines

    async def _ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        async with self._lock:
            lines = self._questions
            self._number += 1
            number = self._number
            try:
                if lines is None:
                    raise _Ended
                with trio.CancelScope(shield=True):  # a line is sent whole or not at all
                    await lines.send(json.dumps({"do": what, "number": number, **arguments}))
                while True:
                    answer = await lines.receive()
                    if answer["number"] == number:  # not that of somebody who was cancelled
                        return answer
            except _Ended:
                self._drop()
                raise KafkaError(
                    ErrorCode.NOT_CONTROLLER, "the process that keeps the metadata is not reached"
                ) from None

    def _drop(self) -> None:
        for lines in (self._questions, self._events):
            if lines is not None:
                lines.close()
        self._questions = self._events = None


async def _answered(store: EnsembleStore, question: Mapping[str, Any]) -> str:
    """Return an answer's fields, as JSON."""
    match question["do"]:
        case "cluster":
            return f'"id":{json.dumps(await store.cluster_id(""))}'
        case "load":
            stored = await store.current(question["known"])
            if stored is None:
                return f'"version":{question["known"]},"changes":null'
            return f'"version":{stored.version},"changes":[{_texts(stored.changes)}]'
        case "register":
            registered = from_json(question["broker"])
            assert isinstance(registered, BrokerRegistered)
            broker = BrokerImage(
                broker_id=registered.broker_id,
                endpoints=registered.endpoints,
                rack=registered.rack,
                broker_epoch=registered.broker_epoch,
            )
            try:
                return f'"epoch":{await store.register(broker)}'
            except BrokerIdTaken as error:
                return f'"taken":{json.dumps(str(error))}'
    raise ValueError(f"{question['do']} is no question")


def _texts(changes: Sequence[Change]) -> str:
    return ",".join(map(to_text, changes))


def _event_text(event: StoreEvent) -> str | None:
    match event:
        case CommitEvent():
            return f'{{"version":{event.version},"changes":[{_texts(event.changes)}]}}'
        case ControllerChanged():
            return f'{{"controller":{event.broker_id},"epoch":{event.epoch}}}'
        case FellBehind():
            return "{}"
    return None


def _read_event(values: Mapping[str, Any]) -> StoreEvent:
    if "controller" in values:
        return ControllerChanged(broker_id=values["controller"], epoch=values["epoch"])
    if "version" in values:
        changes = [from_json(each) for each in values["changes"]]
        return CommitEvent(version=values["version"], changes=changes)
    return FellBehind()


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)
