"""Metadata of a cluster in ZooKeeper.

Only this package knows kazoo, whose threads hand everything over through `KazooTrioBridge.call`.
That cannot raise: an exception there would end the run.

A commit is one transaction: it checks that nobody became controller since (rule 188), makes the
node /changes/<version>, which must not be there, and writes the nodes that Apache Kafka 3.9 has.
Who decided upon an old image therefore changes nothing.
"""

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import trio
from kazoo.client import KazooState
from kazoo.exceptions import (
    BadVersionError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
)

from kafkalite.meta.changes import Change, TopicDeleted
from kafkalite.meta.image import BrokerImage, Image
from kafkalite.meta.store import (
    NO_CONTROLLER,
    BrokerIdTaken,
    CommitEvent,
    ControllerChanged,
    FellBehind,
    MetadataStoreError,
    OutcomeUnknown,
    SessionLost,
    SessionResumed,
    SessionSuspended,
    StoreConflict,
    Stored,
    StoreEvent,
)
from kafkalite.meta.zookeeper import kazoo_bridge, znodes
from kafkalite.meta.zookeeper.access import (
    RECONNECT_DELAY_S,
    REFUSALS,
    ZookeeperAccess,
    why_refused,
)
from kafkalite.meta.zookeeper.kazoo_bridge import (
    NOT_REACHED,
    KazooTrioBridge,
    first_error,
    node_errors,
    stop,
)
from kafkalite.meta.zookeeper.live_brokers import read_brokers
from kafkalite.meta.zookeeper.loader import read_everything
from kafkalite.meta.zookeeper.multi_operations import (
    check_size,
    operations,
    split_commit,
)
from kafkalite.meta.zookeeper.notice_nodes import notices_of
from kafkalite.meta.zookeeper.notices import Notices
from kafkalite.meta.zookeeper.session import Session
from kafkalite.meta.zookeeper.token_nodes import parents_of
from kafkalite.meta.zookeeper.topic_deletions import Deletions
from kafkalite.meta.zookeeper.transactions import fill
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.clock import Clock
    from kafkalite.config import BrokerConfig

logger = logging.getLogger("kafkalite.meta")

# Bugs only: of lost connections we tell ourselves, in one line.
_kazoo_logger = logging.getLogger("kafkalite.meta.kazoo")
_kazoo_logger.setLevel(logging.ERROR)

CHANGES_KEPT: Final = 1_000
CHANGES_DROPPED_AT_ONCE: Final = 100
LOAD_ATTEMPTS: Final = 50
PIPELINED: Final = 1_000
"""Requests that are under way at a time when everything is read."""

LONGER_SESSION_S: Final = 5.0
"""ZooKeeper grants no session under twice its tickTime (2 s by default), whatever is asked for."""

RETRY_S: Final = 0.1
_CONTRADICTIONS = (BadVersionError, NodeExistsError, NoNodeError, NoAuthError)

CONTROLLER, CHANGES, BROKERS, NOTICES = "controller", "changes", "brokers", "notices"


class ZookeeperStore:
    """One broker's access to the cluster's metadata; see `MetadataStore`.

    Args:
        connect: as zookeeper.connect.
        clock: for the timestamps in nodes.
        session_timeout_ms: as zookeeper.session.timeout.ms.
        connection_timeout_ms: as zookeeper.connection.timeout.ms.
        protocols: security protocol of each listener.
        access: what the broker shows to ZooKeeper; nothing if None.
    """

    shared: Final = True

    def __init__(
        self,
        connect: str,
        *,
        clock: "Clock",
        session_timeout_ms: int = 18_000,
        connection_timeout_ms: int | None = None,
        protocols: Mapping[str, str] | None = None,
        access: ZookeeperAccess | None = None,
    ) -> None:
        self._access = access or ZookeeperAccess()
        self._connect = connect
        self._clock = clock
        self._session_timeout_s = session_timeout_ms / 1_000
        self._connection_timeout_ms = connection_timeout_ms or session_timeout_ms
        self._protocols = protocols or {}
        self._client: Any = None
        self._bridge: KazooTrioBridge
        self._deletions: Deletions
        self._notices: Notices
        self._watches: dict[str, Callable[[object], None]] = {}
        self._acl_of = self._access.acl_of
        self.session = Session()
        self._broker_id = NO_CONTROLLER
        # The epoch of this broker, and the version of the node that fences it; -1 without one.
        self._own_epoch = self._own_epoch_version = -1
        # The last commit that was loaded or told.
        self._version = 0
        self._is_connected = self._is_lost = self._is_closed = False
        self._is_waiting_for_id = False
        self._events: deque[StoreEvent] = deque()
        self._to_read = {CONTROLLER, CHANGES}
        self._woken = trio.Event()

    @classmethod
    def of(cls, config: "BrokerConfig", clock: "Clock") -> "ZookeeperStore":
        """Return the store that a broker's settings name."""
        pairs = config.str("listener.security.protocol.map").split(",")
        return cls(
            config.str("zookeeper.connect"),
            clock=clock,
            session_timeout_ms=config.int("zookeeper.session.timeout.ms"),
            connection_timeout_ms=config.optional_int("zookeeper.connection.timeout.ms"),
            protocols={
                name.strip(): protocol.strip()
                for name, _, protocol in (pair.partition(":") for pair in pairs)
            },
            access=ZookeeperAccess.of(config),
        )

    # --- Start and end ---------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect, and make the folders."""
        self._bridge = KazooTrioBridge()
        try:
            self._client = self._access.client(
                self._connect, self._session_timeout_s, _kazoo_logger
            )
        except (ValueError, TypeError) as error:
            raise MetadataStoreError(f"zookeeper.connect: {self._connect}: {error}") from error
        self._client.add_listener(lambda state: self._bridge.call(self._on_state, state))
        self._client.start_async()
        self._deletions = Deletions(self._client, self._one)
        self._notices = Notices(self._client, self._one)
        try:
            with trio.fail_after(self._connection_timeout_ms / 1_000):
                await self._make_folders()
        except trio.TooSlowError:
            self.close()
            why = f": {self._access.failure}" if self._access.failure else ""
            raise MetadataStoreError(
                f"ZooKeeper at {self._connect} was not reached within "
                f"{self._connection_timeout_ms} ms (zookeeper.connection.timeout.ms){why}"
            ) from None
        except BaseException:
            self.close()
            raise
        self._events.clear()

    async def _make_folders(self) -> None:
        """Make them once there is a connection, and again if it is lost meanwhile."""
        client, path = self._client, self._client.chroot
        while True:
            while not self._is_connected:
                await self._wait_woken()
            try:
                # The path in `connect`, of which kazoo would make only the last part.
                client.chroot = ""
                await self._one(client.ensure_path_async(path or "/", self._acl_of("/")))
                client.chroot = path
                await self._all(
                    [client.ensure_path_async(one, self._acl_of(one)) for one in znodes.FOLDERS]
                )
            except KafkaError:
                await trio.sleep(RECONNECT_DELAY_S)
            else:
                return

    def close(self) -> None:
        """End the session."""
        if self._client is None or self._is_closed:
            return
        self._is_closed = True
        client = self._client
        if self._is_connected:
            # A round trip; the others then know at once that this broker is gone.
            stop(client)
        else:
            client.handler.spawn(stop, client)

    async def cluster_id(self, proposed: str) -> str:
        """Return the id of the cluster, which is `proposed` if it had none."""
        with node_errors(self._connect):
            try:
                data, _ = await self._one(self._client.get_async(znodes.CLUSTER_ID))
            except NoNodeError:
                data = znodes.cluster_id_data(proposed)
                try:
                    await self._one(self._create(znodes.CLUSTER_ID, data))
                except NodeExistsError:
                    data, _ = await self._one(self._client.get_async(znodes.CLUSTER_ID))
            return znodes.read_cluster_id(data)

    # --- Reading ---------------------------------------------------------------------------------

    async def load(self, known_version: int = -1) -> Stored | None:
        """Read all nodes, again if a commit came in between."""
        self._check_connected()
        with node_errors(self._connect):
            # What another server has acknowledged is seen by ours after this.
            await self._one(self._client.sync_async(znodes.CHANGES))
            newest = await self._newest()
            if newest == known_version:
                self._version = newest
                return None
            for _ in range(LOAD_ATTEMPTS):
                half_made: dict[str, znodes.TopicNode] = {}
                folder, nodes = self._read_folder, self._read_nodes
                try:
                    changes = await read_everything(folder, nodes, half_made)
                except NoNodeError:
                    changes = None
                before, newest = newest, await self._newest()
                if changes is not None and before == newest:
                    self._notices.half_made, self._version = half_made, newest
                    return Stored(newest, changes)
        raise self._not_reached("it changes faster than it can be read")

    async def _newest(self) -> int:
        children = await self._one(self._client.get_children_async(znodes.CHANGES))
        return max(map(int, children), default=0)

    async def _read_folder(self, folder: str) -> dict[str, bytes]:
        names = await self._one(self._client.get_children_async(folder))
        nodes = await self._read_nodes([f"{folder}/{name}" for name in names])
        return {name: data for name, (data, _) in zip(names, nodes, strict=True)}

    async def _read_nodes(self, paths: Sequence[str]) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(paths), PIPELINED):
            some = paths[start : start + PIPELINED]
            found += await self._all([self._client.get_async(path) for path in some])
        return found

    # --- Being there -----------------------------------------------------------------------------

    async def register(self, broker: BrokerImage) -> int:
        """Make the broker's node, or write it anew if it is this session's."""
        self._broker_id = broker.broker_id
        path = znodes.broker_path(broker.broker_id)
        data = znodes.broker_data(broker, self._protocols, now_ms=self._clock.wall_ms())
        taken = (
            f"another broker is registered as node.id {broker.broker_id} "
            f"in ZooKeeper at {self._connect}"
        )
        # A node of this broker's life before goes when its session has timed out.
        wait_s = self._session_timeout_s * 1.5 + LONGER_SESSION_S
        deadline = trio.current_time() + wait_s
        while True:
            self._check_connected()
            woken = trio.Event()
            try:
                _, stat = await self._one(
                    self._create(path, data, ephemeral=True, include_data=True)
                )
                self._is_waiting_for_id = False
                return int(stat.czxid)
            except NodeExistsError:
                pass
            try:
                _, stat = await self._one(self._client.get_async(path, watch=self._sets(woken)))
                if stat.ephemeralOwner == self._session_id():
                    await self._one(self._client.set_async(path, data))
                    return int(stat.czxid)
            except NoNodeError:
                continue
            if trio.current_time() >= deadline:
                raise BrokerIdTaken(taken)
            if not self._is_waiting_for_id:
                self._is_waiting_for_id = True
                logger.warning("%s; waiting up to %.0f s for its end", taken, wait_s)
            with trio.move_on_at(deadline):
                await woken.wait()

    async def campaign(self) -> int | None:
        """Make the controller's node and the next epoch, both or none."""
        self._check_connected()
        client = self._client
        try:
            data, stat = await self._one(client.get_async(znodes.CONTROLLER_EPOCH))
        except NoNodeError:
            with contextlib.suppress(NodeExistsError):
                await self._one(self._create(znodes.CONTROLLER_EPOCH, b"0"))
            data, stat = await self._one(client.get_async(znodes.CONTROLLER_EPOCH))
        epoch, version = znodes.read_controller_epoch(data), stat.version
        transaction = client.transaction()
        node = znodes.controller_data(self._broker_id, now_ms=self._clock.wall_ms())
        acl = self._acl_of(znodes.CONTROLLER)
        transaction.create(znodes.CONTROLLER, node, acl, ephemeral=True)
        transaction.set_data(znodes.CONTROLLER_EPOCH, str(epoch + 1).encode(), version=version)
        results = await self._one(transaction.commit_async())
        if first_error(results) is None:
            epoch, version = epoch + 1, version + 1
        elif not await self._is_own_controller_node():
            return None
        else:  # an earlier campaign won, and its answer was lost
            data, stat = await self._one(client.get_async(znodes.CONTROLLER_EPOCH))
            epoch, version = znodes.read_controller_epoch(data), stat.version
        self._own_epoch, self._own_epoch_version = epoch, version
        await self._deletions.finish(version)
        self._notices.forget()
        self._to_read.add(NOTICES)
        self._read_soon(BROKERS)
        return epoch

    async def _is_own_controller_node(self) -> bool:
        try:
            _, stat = await self._one(self._client.get_async(znodes.CONTROLLER))
        except NoNodeError:
            return False
        return bool(stat.ephemeralOwner == self._session_id())

    # --- Writing ---------------------------------------------------------------------------------

    async def commit(self, before: Image, after: Image, changes: Sequence[Change]) -> int:
        """Write one transaction, or several if they are too long for one."""
        self._check_connected()
        if self._own_epoch < 0:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")
        # Neither half a commit nor one that was made and not heard of: so no cancellation.
        with trio.CancelScope(shield=True):
            if self._deletions.is_due:
                await self._deletions.finish(self._own_epoch_version)
            parts, (theirs, there) = split_commit(changes, before), self._notices.nodes_of(changes)
            for number, part in enumerate(parts):
                image = after if len(parts) == 1 else before.apply(part)
                try:
                    await self._commit_part(before, image, part, theirs, there)
                except KafkaError as error:
                    if not number:
                        raise
                    raise OutcomeUnknown(f"only partly committed: {error.message}") from error
                before = image
            if any(isinstance(change, TopicDeleted) for change in changes):
                await self._deletions.finish(self._own_epoch_version)
        return before.version

    async def _commit_part(
        self,
        before: Image,
        after: Image,
        changes: Sequence[Change],
        theirs: Collection[str],
        overwritten: frozenset[str],
    ) -> None:
        transaction = self._client.transaction()
        transaction.check(znodes.CONTROLLER_EPOCH, self._own_epoch_version)
        data = znodes.change_data(
            changes, broker_id=self._broker_id, controller_epoch=self._own_epoch
        )
        path = znodes.change_path(after.version)
        transaction.create(path, data, self._acl_of(path))
        needed = operations(before, after, changes, controller_epoch=self._own_epoch)
        needed = [each for each in needed if each.path not in theirs]
        fill(transaction, [*needed, *notices_of(needed)], overwritten, self._acl_of)
        check_size((each.path, getattr(each, "data", b"")) for each in transaction.operations)
        try:
            results = await self._one(transaction.commit_async())
        except KafkaError as error:
            raise OutcomeUnknown(f"perhaps committed: {error.message}") from error
        failure = first_error(results)
        if failure is None:
            self._version = max(self._version, after.version)
            return
        place = next(i for i, result in enumerate(results) if result is failure)
        what = transaction.operations[place].path.removeprefix(self._client.chroot)
        if not place and isinstance(failure, BadVersionError):
            self._own_epoch = self._own_epoch_version = -1
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "another broker became controller")
        if what.startswith("/config/") and isinstance(failure, NodeExistsError):
            # Somebody else's, of a topic that is not there; Kafka overwrites it too.
            return await self._commit_part(before, after, changes, theirs, overwritten | {what})
        missing = parents_of(what) if isinstance(failure, NoNodeError) else ()
        if await kazoo_bridge.make_missing(missing, lambda *one: self._one(self._create(*one))):
            return await self._commit_part(before, after, changes, theirs, overwritten)
        # Somebody committed (this broker itself, if an answer was lost); but if the first two
        # operations would have worked, it was nobody, and somebody wrote by hand.
        is_by_hand = place >= 2 and isinstance(failure, _CONTRADICTIONS)
        raise (StoreConflict if is_by_hand else OutcomeUnknown)(
            f"metadata in ZooKeeper are others than thought: {what}: {failure!r}"
        )

    # --- Following -------------------------------------------------------------------------------

    async def next_event(self) -> StoreEvent:
        """Return what is new; reading it is done here, watches only say where to look."""
        while True:
            if self._events:
                await trio.lowlevel.checkpoint_if_cancelled()
                return self._events.popleft()
            if not self._is_connected or not self._to_read:
                await self._wait_woken()
                continue
            try:
                with node_errors(self._connect):
                    await self._read_news()
            except KafkaError as error:
                logger.debug("ZooKeeper: %s", error.message)
                with trio.move_on_after(RETRY_S):
                    await self._wait_woken()

    async def _read_news(self) -> None:
        for what, read in (
            (CONTROLLER, self._read_controller),
            (CHANGES, self._read_changes),
            (BROKERS, self._read_brokers),
            (NOTICES, self._read_notices),
        ):
            if what not in self._to_read:
                continue
            # A watch that fires meanwhile has it read again.
            self._to_read.discard(what)
            try:
                self._events += await read()
            except BaseException:
                self._to_read.add(what)
                raise
            if self._events:
                return

    async def _read_controller(self) -> list[StoreEvent]:
        client = self._client
        watch = self._watch(CONTROLLER)
        try:
            data, _ = await self._one(client.get_async(znodes.CONTROLLER, watch=watch))
            broker_id = znodes.read_controller(data)
        except NoNodeError:
            broker_id = NO_CONTROLLER
            if await self._one(client.exists_async(znodes.CONTROLLER, watch=watch)) is not None:
                self._to_read.add(CONTROLLER)
                return []
        try:
            data, _ = await self._one(client.get_async(znodes.CONTROLLER_EPOCH))
            epoch = znodes.read_controller_epoch(data)
        except NoNodeError:
            epoch = 0
        return [ControllerChanged(broker_id=broker_id, epoch=epoch)]

    async def _read_changes(self) -> list[StoreEvent]:
        watch = self._watch(CHANGES)
        children = await self._one(self._client.get_children_async(znodes.CHANGES, watch=watch))
        versions = sorted(map(int, children))
        if self._own_epoch >= 0 and len(versions) > CHANGES_KEPT + CHANGES_DROPPED_AT_ONCE:
            for version in versions[:-CHANGES_KEPT]:
                self._client.delete_async(znodes.change_path(version))
        new = [version for version in versions if version > self._version]
        if not new:
            return []
        paths = [znodes.change_path(version) for version in new]
        is_gap = new[0] != self._version + 1
        if not is_gap:
            try:
                nodes = await self._read_nodes(paths)
            except NoNodeError:
                is_gap = True
        if is_gap:
            self._version = max(self._version, new[-1])
            return [FellBehind()]
        events: list[StoreEvent] = []
        for version, path, (data, _) in zip(new, paths, nodes, strict=True):
            events.append(CommitEvent(version=version, changes=znodes.read_changes(path, data)))
        self._version = max(self._version, new[-1])
        return events

    async def _read_brokers(self) -> list[StoreEvent]:
        if self._own_epoch < 0:
            return []
        return [await read_brokers(self._client, self._one, self._watch(BROKERS))]

    async def _read_notices(self) -> list[StoreEvent]:
        if self._own_epoch < 0:
            return []
        return await self._notices.news(self._watch(NOTICES), self._clock.wall_ms())

    async def compact(self, image: Image) -> None:
        """Do nothing: the nodes are the sum."""

    # --- From kazoo's threads --------------------------------------------------------------------

    def _on_state(self, state: str) -> None:
        """Take up that the connection is another; called in trio, and cannot raise."""
        self.session.on_state(state)
        if state == KazooState.CONNECTED:
            self._is_connected = True
            self._events.append(SessionLost() if self._is_lost else SessionResumed())
            self._is_lost = False
            self._to_read |= {CONTROLLER, CHANGES, BROKERS, NOTICES}
            self._notices.forget()
        else:
            if self._is_connected:
                self._events.append(SessionSuspended())
            self._is_connected = False
            if state == KazooState.LOST:
                self._is_lost = True
                self._own_epoch = self._own_epoch_version = -1
        self._woken.set()

    def _sets(self, event: trio.Event) -> Callable[[object], None]:
        return lambda _: self._bridge.call(event.set)

    def _watch(self, what: str) -> Callable[[object], None]:
        # Always the same one: kazoo keeps all that differ until something happens.
        return self._watches.setdefault(what, lambda _: self._bridge.call(self._read_soon, what))

    def _read_soon(self, what: str) -> None:
        self._to_read.add(what)
        self._woken.set()

    async def _wait_woken(self) -> None:
        await self._woken.wait()
        self._woken = trio.Event()

    # --- Requests --------------------------------------------------------------------------------

    def _create(self, path: str, data: bytes, **options: bool) -> Any:
        return self._client.create_async(path, data, self._acl_of(path), **options)

    async def _one(self, pending: Any) -> Any:
        (result,) = await self._all([pending])
        return result

    async def _all(self, pending: Sequence[Any]) -> list[Any]:
        """Return the results of requests that are under way; they come in order.

        Raises:
            KazooException: of the first that failed.
            KafkaError: ZooKeeper is not reached.
        """
        sent_s = perf_counter()
        # While there is no connection requests wait; nobody waits longer than the session would.
        with trio.move_on_after(self._session_timeout_s) as scope:
            for request in reversed(pending):
                if not request.ready():
                    arrived = trio.Event()
                    request.rawlink(self._sets(arrived))
                    await arrived.wait()
        if scope.cancelled_caught:
            raise self._not_reached("no answer in time")
        self.session.on_answer(sent_s)
        try:
            return [request.get_nowait() for request in pending]
        except NOT_REACHED as error:
            raise self._not_reached(type(error).__name__) from error
        except REFUSALS as error:
            why = why_refused(error)
            raise MetadataStoreError(f"ZooKeeper at {self._connect} {why}") from error

    def _check_connected(self) -> None:
        if not self._is_connected:
            raise self._not_reached("no connection")

    def _not_reached(self, why: str) -> KafkaError:
        message = f"ZooKeeper at {self._connect} is not reached: {why}"
        return KafkaError(ErrorCode.NOT_CONTROLLER, message)

    def _session_id(self) -> int | None:
        return self._client.client_id[0] if self._client.client_id else None
