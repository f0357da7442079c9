"""A whole broker in the test's own event loop: how it starts, and what is left when it ends."""

import logging
import socket
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from kafkalite.config import load_config
from kafkalite.log import disk as disk_module
from kafkalite.log.checkpoint import write_partition_metadata
from kafkalite.log.directories import LogDirectoryError
from kafkalite.log.disk import OsDisk
from kafkalite.meta.changes import BROKER_RESOURCE
from kafkalite.meta.events import (
    CreateTopic,
    DeleteTopic,
    IncrementalAlterConfigs,
    Operation,
)
from kafkalite.meta.store import MetadataStoreError
from kafkalite.network.listeners import BindError
from kafkalite.server import broker as broker_module
from kafkalite.server.broker import Broker
from kafkalite.types import CONSUMER_OFFSETS_TOPIC
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.records import Record, build_batch
from tests.peers.asking_kit import commit_offset

CLEAN_STOP = ".kafka_cleanshutdown"


def config(data_dir=None, *, listeners="PLAINTEXT://127.0.0.1:0", **settings):
    named = {name.replace("_", "."): value for name, value in settings.items()}
    values = {"kafkalite.profile": "test", "listeners": listeners, **named}
    values = {name: str(value) for name, value in values.items()}
    if data_dir is not None:
        values["log.dirs"] = str(data_dir)
    return load_config(overrides=values)


@asynccontextmanager
async def running(*arguments, **settings):
    """A broker while the block runs, stopped at its end."""
    async with trio.open_nursery() as nursery:
        yield await nursery.start(Broker(config(*arguments, **settings)).run)
        nursery.cancel_scope.cancel()


def first_error(group):
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


async def start_and_fail(*arguments, **settings):
    """Return why a broker did not start."""
    with pytest.raises(ExceptionGroup) as failure:
        async with running(*arguments, **settings):
            pass
    return first_error(failure.value)


async def create(broker, name, **options):
    metadata = broker.services.metadata
    await metadata.submit(
        CreateTopic(
            name=name,
            topic_id=metadata.new_topic_id(),
            num_partitions=options.pop("partitions", 1),
            replication_factor=1,
            **options,
        )
    )


def write(broker, topic, value):
    batch = build_batch([Record(0, 1_000, None, value)])
    return broker.services.replicas.partition(topic, 0).append(batch, now_ms=1_000).first_offset


async def test_what_was_written_is_there_after_a_restart(tmp_path):
    async with running(tmp_path) as broker:
        await create(broker, "t", partitions=3)
        assert write(broker, "t", b"one") == 0
        epoch = broker.services.replicas.partition("t", 0).leader_epoch
    assert (tmp_path / CLEAN_STOP).exists()
    async with running(tmp_path) as broker:
        assert not (tmp_path / CLEAN_STOP).exists()
        assert sorted(broker.services.replicas.partitions_of("t")) == [0, 1, 2]
        partition = broker.services.replicas.partition("t", 0)
        assert (partition.log_end_offset, partition.leader_epoch) == (1, epoch + 1)


async def test_appends_that_took_long_are_told_of_at_the_end(tmp_path, monkeypatch, caplog):
    with caplog.at_level(logging.INFO):
        monkeypatch.setattr(disk_module, "SLOW_APPEND_MS", -1)
        async with running(tmp_path) as broker:
            await create(broker, "a")
            write(broker, "a", b"v")
            assert "appends took longer" not in caplog.text
    assert "appends took longer" in caplog.text


async def test_without_a_data_directory_nothing_is_left():
    async with running() as broker:
        (directory,) = map(Path, broker.data_dirs)
        await create(broker, "t")
        assert (directory / "t-0").is_dir()
    assert not directory.exists()


@pytest.mark.parametrize(
    ("host", "bootstrap_host"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        pytest.param(
            "[::1]",
            "[::1]",
            marks=pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6"),
        ),
    ],
)
async def test_bootstrap_is_where_clients_connect(host, bootstrap_host):
    async with running(listeners=f"PLAINTEXT://{host}:0") as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        assert host == bootstrap_host
        stream = await trio.open_tcp_stream(host.strip("[]"), int(port))
        await stream.aclose()


async def test_advertised_address_is_the_bootstrap():
    async with running(advertised_listeners="PLAINTEXT://example.org:1234") as broker:
        assert broker.bootstrap == "example.org:1234"


async def test_taken_port_is_told_and_the_data_stay_clean(tmp_path):
    """The next start has nothing to recover."""
    async with running(tmp_path) as broker:
        await create(broker, "t")
        write(broker, "t", b"one")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listeners = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        assert isinstance(await start_and_fail(tmp_path, listeners=listeners), BindError)
    assert (tmp_path / CLEAN_STOP).exists()


async def test_second_broker_on_the_same_data_is_refused_and_the_first_goes_on(tmp_path):
    async with running(tmp_path) as first:
        await create(first, "t")
        refusal = await start_and_fail(tmp_path)
        assert isinstance(refusal, LogDirectoryError)
        assert str(tmp_path) in str(refusal)
        assert write(first, "t", b"one") == 0
    async with running(tmp_path) as again:
        assert again.services.replicas.partition("t", 0).log_end_offset == 1


async def test_damaged_metadata_stop_the_start_and_free_the_directory(tmp_path):
    async with running(tmp_path) as broker:
        await create(broker, "t")
    file = tmp_path / "kafkalite-metadata.log"
    good = file.read_bytes()
    file.write_bytes(b"x" + good[1:])
    assert isinstance(await start_and_fail(tmp_path), MetadataStoreError)
    file.write_bytes(good)
    async with running(tmp_path) as broker:
        assert "t" in broker.services.metadata.image.topics


@pytest.mark.parametrize("how", ["missing", "empty"])
async def test_missing_metadata_beside_logs_stop_the_start(tmp_path, how):
    """The settings of topics would be lost silently: a compacted one would delete by time."""
    async with running(tmp_path) as broker:
        await create(broker, "t", configs={"cleanup.policy": "compact"})
    file = tmp_path / "kafkalite-metadata.log"
    content = file.read_bytes()
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(b"")
    error = await start_and_fail(tmp_path)
    assert isinstance(error, MetadataStoreError)
    assert "kafkalite-metadata.log is missing or empty, and there are 1 logs" in str(error)
    assert "\n" not in str(error)
    file.write_bytes(content)
    async with running(tmp_path) as broker:
        assert broker.services.metadata.log_config("t").cleanup_policy == {"compact"}
    file.unlink()
    properties = tmp_path / "meta.properties"
    kept = [line for line in properties.read_text().splitlines() if "kafkalite" not in line]
    properties.write_text("\n".join(kept) + "\n")
    async with running(tmp_path) as broker:  # as the line says
        assert broker.services.metadata.log_config("t").cleanup_policy == {"delete"}


async def test_failed_registration_gives_the_port_back(monkeypatch):
    ports = []

    async def register(self, bound):
        ports.append(bound["PLAINTEXT"])
        await trio.lowlevel.checkpoint()
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no")

    monkeypatch.setattr("kafkalite.meta.runner.MetadataRunner.register", register)
    assert isinstance(await start_and_fail(), KafkaError)
    socket.create_server(("127.0.0.1", ports[0])).close()


@pytest.mark.pure  # a method is put in the place of another
async def test_assertion_of_a_handler_ends_the_broker_as_a_crash_would(tmp_path):
    """Nobody knows what its memory is worth, so nothing of it is written down as final."""
    broker = Broker(config(tmp_path))

    async def break_it(broker):
        await create(broker, "t")
        write(broker, "t", b"one")

        def handle(frame, context):
            raise AssertionError("state is wrong")

        broker.dispatcher.handle = handle
        stream = await trio.open_tcp_stream("127.0.0.1", int(broker.bootstrap.split(":")[1]))
        await stream.send_all((4).to_bytes(4, "big") + b"ping")
        await stream.receive_some()
        await stream.aclose()

    async def run_and_break():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(break_it, await nursery.start(broker.run))

    with pytest.raises(ExceptionGroup) as failure:
        await run_and_break()
    assert failure.group_contains(AssertionError, match="state is wrong")
    assert not (tmp_path / CLEAN_STOP).exists()
    async with running(tmp_path) as again:
        assert again.services.replicas.partition("t", 0).log_end_offset == 1


async def test_directories_of_deleted_topics_are_no_topics_at_the_next_start(tmp_path):
    """A stop may come between the deletion of a topic and that of its files."""
    async with running(tmp_path, log_segment_delete_delay_ms=60_000) as broker:
        await create(broker, "gone")
        await create(broker, "kept")
        await broker.services.metadata.submit(DeleteTopic(name="gone"))
        left = [path.name for path in tmp_path.iterdir() if path.name.startswith("gone-0")]
        assert len(left) == 1
        assert left[0].endswith("-delete")
    # And one whose renaming the disk forgot.
    (tmp_path / "half-0.0123456789abcdef0123456789abcdef-delete").mkdir()
    async with running(tmp_path) as broker:
        assert [*broker.services.metadata.image.topics] == ["kept"]
        await create(broker, "gone")
        assert broker.services.replicas.partition("gone", 0).log_end_offset == 0


async def test_topic_recreated_under_an_old_directory_starts_empty(tmp_path):
    """A crash can leave the directory of a deleted topic under the name of the new one."""
    async with running(tmp_path) as broker:
        await create(broker, "t")
        write(broker, "t", b"old")
        old_id = broker.services.metadata.image.topics["t"].topic_id
    metadata_file = tmp_path / "kafkalite-metadata.log"
    async with running(tmp_path) as broker:
        await broker.services.metadata.submit(DeleteTopic(name="t"))
        await create(broker, "t")
        assert broker.services.metadata.image.topics["t"].topic_id != old_id
        metadata = metadata_file.read_bytes()
    partition_metadata = tmp_path / "t-0" / "partition.metadata"
    new_text = partition_metadata.read_text()
    # As if the disk had kept the old directory and the new metadata.
    write_partition_metadata(OsDisk(), str(partition_metadata), old_id, sync=False)
    metadata_file.write_bytes(metadata)
    async with running(tmp_path) as broker:
        assert broker.services.replicas.partition("t", 0).log_end_offset == 0
        assert partition_metadata.read_text() == new_text


async def test_coordinator_follows_its_topic(tmp_path):
    async with running(tmp_path) as broker:
        groups = broker.services.coordinators
        await broker.services.topic_creation.ensure_topic(CONSUMER_OFFSETS_TOPIC)
        assert groups.coordinates(CONSUMER_OFFSETS_TOPIC)
        await broker.services.metadata.submit(DeleteTopic(name=CONSUMER_OFFSETS_TOPIC))
        await broker.services.topic_creation.ensure_topic(CONSUMER_OFFSETS_TOPIC)


def test_progress_is_reported_on_long_starts(caplog):
    with caplog.at_level(logging.INFO):
        for count in range(1, 2_501):
            broker_module._report_progress(count, 2_500, "t-0")
    assert [record.args[0] for record in caplog.records] == [1_000, 2_000, 2_500]


class CancelAfter(trio.abc.Instrument):
    """Cancels a scope after so many steps of tasks."""

    def __init__(self, scope, steps):
        self.scope = scope
        self.left = steps

    def after_task_step(self, task):
        self.left -= 1
        if self.left == 0:
            self.scope.cancel()


async def test_cancelled_at_any_step_of_its_start_it_leaves_nothing_half_done(tmp_path):
    """Goal: the directory and the port are free again, and what was stored is there."""
    async with running(tmp_path) as broker:
        await create(broker, "t")
        write(broker, "t", b"one")
    steps, started = 0, []
    while not started:
        steps += 1
        with trio.CancelScope() as scope:
            instrument = CancelAfter(scope, steps)
            trio.lowlevel.add_instrument(instrument)
            try:
                async with trio.open_nursery() as nursery:
                    started.append(await nursery.start(Broker(config(tmp_path)).run))
                    nursery.cancel_scope.cancel()
            finally:
                trio.lowlevel.remove_instrument(instrument)
        assert (tmp_path / CLEAN_STOP).exists()
    assert steps > 5
    async with running(tmp_path) as broker:
        assert broker.services.replicas.partition("t", 0).log_end_offset == 1


class Refusing(OsDisk):
    """Makes no directories for the time being."""

    refuses = False

    def make_directory(self, path):
        if self.refuses:
            raise OSError(28, "No space left on device")
        super().make_directory(path)


async def test_group_is_coordinated_once_the_log_of_its_offsets_can_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr(broker_module, "OFFLINE_RETRY_S", 0.01)
    disk = Refusing(syncs=False)
    async with trio.open_nursery() as nursery:
        broker = await nursery.start(Broker(config(tmp_path), disk=disk).run)
        await create(broker, "t")
        disk.refuses = True
        await broker.services.topic_creation.ensure_topic(CONSUMER_OFFSETS_TOPIC)
        assert await commit_offset(broker, "g", "t", 5) == ErrorCode.NOT_COORDINATOR
        disk.refuses = False
        with trio.fail_after(10):
            while not broker.services.replicas.partitions_of(CONSUMER_OFFSETS_TOPIC):  # noqa: ASYNC110
                await trio.sleep(0.01)
        assert await commit_offset(broker, "g", "t", 5) == ErrorCode.NONE
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("name", ["1", ""])
async def test_housekeeping_follows_settings_that_are_altered(name):
    async with running() as broker:
        changes = {"producer.id.expiration.ms": "1234", "log.cleaner.backoff.ms": "77"}
        event = IncrementalAlterConfigs(
            resource_type=BROKER_RESOURCE,
            resource_name=name,
            operations=[(key, Operation.SET, value) for key, value in changes.items()],
        )
        await broker.services.metadata.submit(event)
        settings = broker.services.logs.settings
        assert (settings.producer_id_expiration_ms, settings.cleaner_backoff_ms) == (1234, 77)
