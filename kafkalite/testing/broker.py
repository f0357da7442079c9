"""A broker in a thread of the test process.

One of the modules that may start threads: the broker has its own event loop there, so it
answers while the test's thread blocks in its client.
"""

import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from uuid import UUID, uuid4

import trio

import kafkalite as package
from kafkalite.client.consumer import ConsumedRecord, consumed, visible_batches
from kafkalite.client.murmur import murmur2
from kafkalite.clock import AdjustableClock, TrioClock
from kafkalite.config import KafkaliteConfigError, load_config
from kafkalite.faults.disk import FaultyDisk
from kafkalite.fixtures.transfer import dump_topics, load_fixture
from kafkalite.meta.events import CreateTopic, DeleteTopic
from kafkalite.server.broker import Broker as ServerBroker
from kafkalite.testing.clock import BrokerClock
from kafkalite.testing.cluster_http import registry_url
from kafkalite.testing.faults import Faults
from kafkalite.testing.followed import FollowedBroker
from kafkalite.testing.groups import (
    describe_group,
    has_assigned,
    has_committed,
    is_reading,
    is_stable,
    wait_finished,
)
from kafkalite.testing.journal import BYTES_MAX, Journal
from kafkalite.testing.observed import LogTail, ObservedBroker
from kafkalite.testing.secured import SecuredBroker
from kafkalite.testing.setting_text import setting_text
from kafkalite.testing.snapshots import SnapshotBroker
from kafkalite.types import CONSUMER_OFFSETS_TOPIC, TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import Record, build_batch, iterate_records

if TYPE_CHECKING:
    from kafkalite.security.acls import Rule

Result = TypeVar("Result")

DEFAULT_TIMEOUT_S: Final = 10.0
START_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 30.0
CONFIG: Final = "Broker(config=...)"
STOPPED_MEANWHILE: Final = "the broker was stopped meanwhile"


class Broker(SecuredBroker, ObservedBroker, SnapshotBroker, FollowedBroker):
    """A real broker for tests: `with Broker() as broker:`, then any client on `broker.bootstrap`.

    Each has a free port and a temporary data directory of its own, so any number of them run side
    by side. Its settings are those of `--profile test`: groups start at once, and members are gone
    as soon as their connection is. All methods may be called from any thread.

    Args:
        config: broker settings by Kafka's names, such as {"num.partitions": 3}; a name that
            neither Kafka nor kafkalite knows is an error.
        data_dir: where to keep data; by default a temporary directory, removed at the end.
        host: address to listen on.
        port: TCP port; 0 takes any free one.
        http: also serve HTTP (health, metrics, the API, the console), at `http_url`.
        tls: add a listener with TLS, beside the one without; needs `kafkalite[tls]`.
        users: passwords by name: the added listener wants a login, by SCRAM or PLAIN.
        acls: rules about these users: what no rule allows is denied. Who comes in by the listener
            without may do everything.
        schema_registry: also serve a schema registry, at `schema_registry_url`.
        processes: so many brokers: this one, and others as processes that follow it. Clients see
            all of them; `produce` and `records` see the partitions that this one leads.

    Attributes:
        security: certificates, users and rules; None without any of these.
        clock: the time that this broker goes by, to be advanced, frozen and set.
        faults: rules that make it fail requests, lose answers, or be slow.
    """

    def __init__(
        self,
        *,
        config: Mapping[str, Any] | None = None,
        data_dir: str | Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        http: bool = False,
        tls: bool = False,
        users: Mapping[str, str] | None = None,
        acls: "Iterable[Rule | Iterable[Rule]] | None" = None,
        schema_registry: bool = False,
        processes: int = 1,
    ) -> None:
        SnapshotBroker.__init__(self)
        self._settings = {name: setting_text(value) for name, value in (config or {}).items()}
        self._settings.setdefault("kafkalite.profile", "test")
        self._settings.setdefault("kafkalite.journal.max.bytes", str(BYTES_MAX))
        self._settings.setdefault("listeners", f"PLAINTEXT://{host}:{port}")
        if schema_registry:
            self._settings["kafkalite.schema.registry"] = "true"
        if http or schema_registry:
            self._settings.setdefault("kafkalite.http.listener", "127.0.0.1:0")
        self._settings |= self._secure(self._settings, tls=tls, users=users, acls=acls, host=host)
        self._follow(processes - 1, self._settings)
        self._data_dir = data_dir
        self._thread: threading.Thread | None = None
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._server: ServerBroker | None = None
        self._journal = Journal(self._topic_name)
        self.log = LogTail()
        self._clock = AdjustableClock()
        self.clock = BrokerClock(self, self._clock)
        self.faults = Faults(self)
        self.disk = FaultyDisk(syncs=False)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = f"at {self.bootstrap}" if self._is_running else "not running"
        return f"<kafkalite.testing.Broker {state}>"

    # --- Life ------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start, and return when clients can connect.

        Raises:
            KafkaliteConfigError, LogDirectoryError, BindError: as `kafkalite serve` would say.
            RuntimeError: it was started before, or Python runs without assertions.
        """
        if not __debug__:
            raise RuntimeError(package.NEEDS_ASSERTIONS)
        if self._thread is not None:
            raise RuntimeError("this broker was started already; make another")
        settings = dict(self._settings)
        if self._data_dir is not None:
            settings["log.dirs"] = str(self._data_dir)
        self._thread = threading.Thread(
            target=self._run, args=[settings], name="kafkalite-broker", daemon=True
        )
        logging.getLogger("kafkalite").addHandler(self.log)
        self._thread.start()
        if not self._started.wait(START_TIMEOUT_S):
            raise TimeoutError("the broker did not start")
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        if self._followers is not None:
            self._followers.start(self._data_dir)
        return self

    def stop(self) -> None:
        """Stop cleanly and remove the temporary data directory; nothing if it does not run.

        Raises:
            RuntimeError: the broker had ended by itself, by a bug of its own.
        """
        logging.getLogger("kafkalite").removeHandler(self.log)
        thread, token = self._thread, self._token
        if thread is None or token is None:
            return
        self._token = None
        if self._followers is not None:
            self._followers.stop()
        if thread.is_alive():
            token.run_sync_soon(self._turn.set)
            thread.join(STOP_TIMEOUT_S)
        if thread.is_alive():
            raise TimeoutError("the broker did not stop")
        if self.security is not None:
            self.security.close()
        if self._failure is not None:
            raise RuntimeError("the broker ended by itself") from self._failure

    @property
    def schema_registry_url(self) -> str:
        """URL of its schema registry, for clients; made with `schema_registry=True`.

        A token that was made up is the password in it, which clients show by themselves.
        """
        return registry_url(self.http_url)

    @property
    def http_url(self) -> str:
        """URL of its HTTP port, without a slash at the end; made with `http=True`."""
        url = self.server.http_url
        if url is None:
            raise RuntimeError("this broker has no HTTP port; make it with http=True")
        return url

    @property
    def server(self) -> ServerBroker:
        """The broker itself, whose parts may only be touched in its own thread."""
        if self._server is None:
            raise RuntimeError("this broker is not running")
        return self._server

    def reset(self) -> None:
        """Delete all topics, groups and committed offsets, and forget the requests seen.

        Clients stay connected; consumers find their group gone and join anew. There are no fault
        rules, and the clock is that of the machine again.
        """
        self.faults.clear()
        self.clock.reset()
        self._submit(
            lambda: [DeleteTopic(name=name) for name in self._services.metadata.image.topics]
        )
        self._in_loop(self._journal.clear)

    # --- Topics and records ----------------------------------------------------------------------

    def create_topic(
        self, name: str, *, partitions: int = 1, config: Mapping[str, Any] | None = None
    ) -> None:
        """Create a topic; when this returns, any client can use it.

        Raises:
            KafkaError: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_CONFIG...
        """
        configs = {key: setting_text(value) for key, value in (config or {}).items()}
        event = CreateTopic(
            name=name,
            topic_id=uuid4(),
            num_partitions=partitions,
            replication_factor=1,
            configs=configs,
        )
        self._submit(lambda: [event])

    def delete_topic(self, name: str) -> None:
        """Delete a topic; when this returns, its name can be used for another.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        self._submit(lambda: [DeleteTopic(name=name)])

    def topics(self) -> list[str]:
        """Return the names of all topics but internal ones, sorted."""
        names = self._in_loop(lambda: list(self._services.metadata.image.topics))
        return sorted(name for name in names if not name.startswith("__"))

    def produce(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> int:
        """Write one record, without a client; return its offset.

        The topic is created if it is not there. The partition is the key's, as in Java's client,
        or 0 without a key.
        """
        timestamp = self._clock.wall_ms() if timestamp_ms is None else timestamp_ms
        batch = build_batch([Record(0, timestamp, key, value, list(headers))])

        async def write() -> int:
            image = await self._services.topic_creation.ensure_topic(topic)
            index = partition
            if index is None:
                index = (murmur2(key or b"") & 0x7FFFFFFF) % len(image.partitions) if key else 0
            replica = self._services.replicas.partition(topic, index)
            offset: int = replica.append(batch, now_ms=self._clock.wall_ms()).first_offset
            return offset

        return self._await(write)

    def records(
        self, topic: str, partition: int | None = None, *, read_committed: bool = False
    ) -> list[ConsumedRecord]:
        """Return what a topic holds, decoded, by partition and offset.

        Args:
            topic: its name.
            partition: only this one.
            read_committed: leave out what belongs to open and aborted transactions.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        found: list[ConsumedRecord] = []
        # The bytes are taken in the broker's thread, and decoded in this one.
        for place, first, data, aborted in self._in_loop(
            lambda: self._read(topic, partition, read_committed)
        ):
            for _, batch in visible_batches(memoryview(data), aborted):
                if batch is not None:  # the first one may begin with records that were deleted
                    records = [consumed(place, record) for record in iterate_records(batch)]
                    found += [record for record in records if record.offset >= first]
        return found

    def dump(self, *topics: str) -> str:
        """Return topics as JSON lines, as `kafkalite export` writes them."""
        return dump_topics(self.bootstrap, topics)

    def load(self, fixture: str | Path, *, topic: str | None = None) -> None:
        """Write a fixture's records, and make its topics (`fixtures.transfer.load_fixture`)."""
        load_fixture(self.bootstrap, fixture, topic=topic)

    # --- Waiting ---------------------------------------------------------------------------------

    def wait_assigned(
        self, group: str, members: int = 1, *, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        """Return when a group has so many members, and all of them read what they were assigned.

        A consumer that starts at `latest` gets everything that is written after this returned.

        Raises:
            TimeoutError: with what the group does instead.
        """

        async def wait() -> None:
            await self._wait_group(group, lambda shard: has_assigned(shard, group, members))
            await self._journal.wait_until(
                lambda: bool(
                    self._look_at_group(
                        group, lambda shard: is_reading(shard, group, members, self._journal)
                    )
                )
            )

        self._wait_or_tell(wait, timeout_s, group, f"no {members} members that read")

    def wait_stable(self, group: str, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Return when a group has members, all know their assignment, and no rebalance goes on.

        Raises:
            TimeoutError: with what the group does instead.
        """
        self._wait_or_tell(
            lambda: self._wait_group(group, lambda shard: is_stable(shard, group)),
            timeout_s,
            group,
            "not stable",
        )

    def wait_committed(
        self,
        group: str,
        topic: str,
        partition: int | None = None,
        *,
        offset: int | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """Return when a group has committed all that a topic holds at the time of this call.

        Args:
            group: its id.
            topic: its name.
            partition: wait for this one only.
            offset: wait until this is committed (or more), not for the partition's end.
            timeout_s: the most that it may take.

        Raises:
            TimeoutError: with what the group does instead.
        """
        wanted = self._in_loop(lambda: self._wanted_offsets(topic, partition, offset))
        self._wait_or_tell(
            lambda: self._wait_group(group, lambda shard: has_committed(shard, group, wanted)),
            timeout_s,
            group,
            f"has not committed {', '.join(f'{p} up to {at}' for p, at in wanted.items())}",
        )

    # --- What clients sent -----------------------------------------------------------------------

    def wait_acknowledged(
        self,
        group: str,
        topic: str,
        partition: int | None = None,
        *,
        offset: int | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """Return when a share group has finished with all that a topic holds at this call.

        That is: each record was accepted or rejected, or given up after too many deliveries, and
        this is stored.

        Args:
            group: its id.
            topic: its name.
            partition: wait for this one only.
            offset: wait until everything below this is finished with, not all of the partition.
            timeout_s: the most that it may take.

        Raises:
            TimeoutError: with what the group does instead.
        """
        wanted = self._in_loop(lambda: self._wanted_offsets(topic, partition, offset))
        self._wait_or_tell(
            lambda: wait_finished(self._services, group, wanted),
            timeout_s,
            group,
            f"has not finished with {', '.join(f'{p} up to {at}' for p, at in wanted.items())}",
        )

    # --- In the broker's thread ------------------------------------------------------------------

    def _run(self, settings: Mapping[str, str]) -> None:
        try:
            trio.run(self._main, settings, clock=TrioClock(self._clock))
        except BaseException as error:
            while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
                error = error.exceptions[0]
            self._failure = error
        finally:
            self._started.set()

    async def _main(self, settings: Mapping[str, str]) -> None:
        next_settings: Mapping[str, str] | None = settings
        while next_settings is not None:
            self._next_settings, self._turn = None, trio.Event()
            await self._serve(next_settings)
            next_settings = self._next_settings
        self._forget_restored()

    async def _serve(self, settings: Mapping[str, str]) -> None:
        """Run a server until somebody wants it to stop, or another one in its place."""
        config = load_config(overrides=settings, overrides_from=CONFIG)
        if config.unknown:
            # A test that misspells a setting would test something else.
            names = ", ".join(sorted(config.unknown))
            raise KafkaliteConfigError(f"unknown settings: {names} (from {CONFIG})")
        self.disk.syncs = config.bool("kafkalite.metadata.flush")
        server = ServerBroker(config, clock=self._clock, disk=self.disk)
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            if self.security is not None:
                await server.services.metadata.submit_all(self.security.events())
            self._journal.attach(server.observe_requests())
            server.dispatcher.observer = self._journal.observe
            self._server = server
            self._token = trio.lowlevel.current_trio_token()
            self._started.set()
            self._has_started.set()
            await self._turn.wait()
            nursery.cancel_scope.cancel()

    def _read(
        self, topic: str, index: int | None, read_committed: bool
    ) -> list[tuple[TopicPartition, int, bytes, list[Any] | None]]:
        replicas = self._services.replicas
        if index is None:
            partitions = [p for _, p in sorted(replicas.partitions_of(topic).items())]
            if not partitions:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic!r} does not exist"
                )
        else:
            partitions = [replicas.partition(topic, index)]
        found = []
        for partition in partitions:
            log, end = partition.log, partition.high_watermark
            aborted = None
            if read_committed:
                end = partition.last_stable_offset
                aborted = log.aborted_transactions(log.log_start_offset, end)
            data = b"".join(log.read_batches(log.log_start_offset, end))
            found.append((partition.topic_partition, log.log_start_offset, data, aborted))
        return found

    def _wanted_offsets(
        self, topic: str, index: int | None, offset: int | None
    ) -> dict[TopicPartition, int]:
        """Return what is to be committed; a partition that holds nothing need not be."""
        replicas = self._services.replicas
        indexes = [*replicas.partitions_of(topic)] if index is None else [index]
        partitions = [replicas.partition(topic, each) for each in indexes]
        return {
            p.topic_partition: p.log_end_offset if offset is None else offset
            for p in partitions
            if offset is not None or p.log_end_offset > p.log_start_offset
        }

    async def _wait_group(self, group: str, predicate: Callable[[Any], bool]) -> None:
        await self._services.coordinators.wait_until(CONSUMER_OFFSETS_TOPIC, group, predicate)

    def _look_at_group(self, group: str, look: Callable[[Any], Result]) -> Result | None:
        """Return what `look` says of the group's shard, None if it is not there."""
        shard = self._services.coordinators.shard_of(CONSUMER_OFFSETS_TOPIC, group)
        return None if shard is None else look(shard)

    def _topic_name(self, topic_id: UUID) -> str | None:
        topic = self._services.metadata.image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    # --- From other threads ----------------------------------------------------------------------

    @property
    def _services(self) -> Any:
        return self.server.services

    @property
    def _is_running(self) -> bool:
        return self._token is not None and self._thread is not None and self._thread.is_alive()

    def call_in_broker(self, function: Callable[[], Result]) -> Result:
        """Return what a synchronous function returns that is called in the broker's thread.

        Raises:
            RuntimeError: the broker is not running, or was stopped meanwhile.
        """
        return self._in_loop(function)

    def run_in_broker(
        self,
        function: Callable[[], Awaitable[Result]],
        *,
        timeout_s: float | None = None,
        default: Result | None = None,
    ) -> Result | None:
        """Return what an async function returns that is run in the broker's thread.

        After `timeout_s` of real time it is cancelled, and `default` returned.

        Raises:
            RuntimeError: as `call_in_broker`.
        """

        async def run() -> Result | None:
            with trio.CancelScope() as scope:
                alarm = None
                if timeout_s is not None:
                    token = trio.lowlevel.current_trio_token()
                    alarm = threading.Timer(timeout_s, token.run_sync_soon, [scope.cancel])
                    alarm.daemon = True
                    alarm.start()
                try:
                    return await function()
                finally:
                    if alarm is not None:
                        alarm.cancel()
            return default

        return self._await(run)

    def _in_loop(self, function: Callable[[], Result]) -> Result:
        try:
            return trio.from_thread.run_sync(function, trio_token=self._running_token())
        except (trio.Cancelled, trio.RunFinishedError):
            raise RuntimeError(STOPPED_MEANWHILE) from None

    def _await(self, function: Callable[[], Awaitable[Result]]) -> Result:
        try:
            return trio.from_thread.run(function, trio_token=self._running_token())
        except (trio.Cancelled, trio.RunFinishedError):
            # Not to be let out: this thread is none of the loop whose end it tells of.
            raise RuntimeError(STOPPED_MEANWHILE) from None

    def _running_token(self) -> trio.lowlevel.TrioToken:
        if self._token is None or not self._is_running:
            raise RuntimeError("this broker is not running")
        return self._token

    def _submit(self, events: Callable[[], Sequence[Any]]) -> None:
        async def submit() -> list[Any]:
            results: list[Any] = await self._services.metadata.submit_all(events())
            return results

        for result in self._await(submit):
            if isinstance(result, KafkaError):
                raise result

    def _wait_or_tell(
        self, wait: Callable[[], Awaitable[None]], timeout: float, group: str, missing: str
    ) -> None:
        async def wait_long_enough() -> bool:
            await wait()
            return True

        if not self.run_in_broker(wait_long_enough, timeout_s=timeout, default=False):
            state = self._in_loop(
                lambda: self._look_at_group(group, lambda shard: describe_group(shard, group))
            )
            state = state or f"group {group!r} has no coordinator yet"
            raise TimeoutError(f"{missing} after {timeout:g} s: {state}")
