import errno
import logging
import random

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.meta import local
from kafkalite.meta.changes import BrokerUnregistered, ProducerIdsAllocated, TopicCreated
from kafkalite.meta.image import Image, PartitionImage
from kafkalite.meta.local import LocalStore
from kafkalite.meta.store import MetadataStoreError, Stored
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.log.sim_disk import SimDisk
from tests.meta.meta_kit import topic_id

PATH = "/data/kafkalite-metadata.log"


def disk():
    made = SimDisk()
    made.make_directory("/data")
    return made


def change(number):
    return ProducerIdsAllocated(broker_id=1, next_producer_id=number)


def store_on(some_disk, **options):
    made = LocalStore(some_disk, PATH, **options)
    return made, trio.run(made.load)


def commit(store, version, *changes):
    trio.run(store.commit, Image(version=version - 1), Image(version=version), changes)


def test_a_new_file_is_empty():
    assert store_on(disk())[1] == Stored(0, [])


def test_commits_are_there_after_a_restart():
    where = disk()
    store, _ = store_on(where)
    commit(store, 1, change(1), change(2))
    commit(store, 2, change(3))
    store.close()
    assert store_on(where)[1] == Stored(2, [change(1), change(2), change(3)])


def test_a_commit_is_forced_to_disk_before_it_is_acknowledged():
    where = disk()
    store, _ = store_on(where)
    commit(store, 1, change(1))
    assert where.files[PATH].synced == bytes(where.files[PATH].data)


def test_profile_test_forces_nothing_to_disk():
    where = disk()
    store, _ = store_on(where, flush=False)
    commit(store, 1, change(1))
    assert where.syncs == 0
    assert store_on(where)[1] == Stored(1, [change(1)])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.data())
def test_a_torn_commit_is_cut_off_at_any_byte_and_the_rest_is_whole(count, data):
    """Issue: a crash at any byte."""
    where = disk()
    store, _ = store_on(where)
    for version in range(1, count + 1):
        commit(store, version, change(version))
    whole = bytes(where.files[PATH].data)
    cut = data.draw(st.integers(0, len(whole)))
    torn = disk()
    torn.file(PATH).data = bytearray(whole[:cut])
    kept = whole[:cut].count(b"\n")
    again, stored = store_on(torn)
    assert stored == Stored(kept, [change(version) for version in range(1, kept + 1)])
    commit(again, kept + 1, change(100))
    assert store_on(torn)[1] == Stored(kept + 1, [*stored.changes, change(100)])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_what_was_acknowledged_survives_a_power_failure(seed):
    where = disk()
    store, _ = store_on(where)
    for version in (1, 2, 3):
        commit(store, version, change(version))
    where.fail("sync", PATH, times=1)
    with pytest.raises(KafkaError):
        commit(store, 4, change(4))
    survivor = where.after_power_failure(random.Random(seed))
    assert store_on(survivor)[1] == Stored(3, [change(1), change(2), change(3)])


def test_zeros_at_the_end_are_cut_off(caplog):
    """A file system may have grown the file without writing the page."""
    where = disk()
    store, _ = store_on(where)
    commit(store, 1, change(1))
    where.files[PATH].data += bytes(100) + b"\n" + bytes(50)
    assert store_on(where)[1] == Stored(1, [change(1)])
    assert "the last 151 bytes" in caplog.text


def test_damage_before_good_commits_stops_the_start_with_one_line():
    where = disk()
    store, _ = store_on(where)
    for version in (1, 2, 3):
        commit(store, version, change(version))
    data = where.files[PATH].data
    data[data.index(b"\n") + 20] ^= 1
    with pytest.raises(MetadataStoreError, match=f"^{PATH}: line 2 is damaged.*move it away") as e:
        store_on(where)
    assert "\n" not in str(e.value)


def test_a_change_of_another_version_of_kafkalite_stops_the_start(monkeypatch):
    where = disk()
    store, _ = store_on(where)
    monkeypatch.setattr(local, "to_text", lambda _: '{"change":"FromTheFuture"}')
    commit(store, 1, change(1))
    monkeypatch.undo()
    with pytest.raises(MetadataStoreError, match="FromTheFuture"):
        store_on(where)


def test_a_file_that_cannot_be_opened_stops_the_start():
    with pytest.raises(MetadataStoreError, match="no such directory"):
        store_on(SimDisk())


def test_a_full_disk_refuses_the_commit_and_keeps_the_others():
    where = disk()
    store, _ = store_on(where)
    commit(store, 1, change(1))
    where.capacity = len(where.files[PATH].data) + 10
    with pytest.raises(KafkaError) as caught:
        commit(store, 2, change(2))
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "no space left" in caught.value.message
    where.capacity = None
    commit(store, 2, change(3))
    assert store_on(where)[1] == Stored(2, [change(1), change(3)])


def test_a_commit_that_cannot_be_forced_to_disk_is_taken_back():
    where = disk()
    store, _ = store_on(where)
    commit(store, 1, change(1))
    where.fail("sync", PATH, times=1)
    with pytest.raises(KafkaError):
        commit(store, 2, change(2))
    commit(store, 2, change(3))
    assert store_on(where)[1] == Stored(2, [change(1), change(3)])


@pytest.mark.parametrize("first", ["torn append", "failed sync"])
def test_after_a_write_that_cannot_be_taken_back_nothing_more_is_committed(first, caplog):
    where = disk()
    store, _ = store_on(where)
    commit(store, 1, change(1))
    if first == "torn append":
        where.capacity = len(where.files[PATH].data) + 10
        where.fail("cut_off")
    else:
        where.fail("sync", times=1)
        where.fail("truncate")
    for _ in range(2):
        with pytest.raises(KafkaError):
            commit(store, 2, change(2))
    where.capacity = None
    where.faults.clear()
    with pytest.raises(KafkaError, match="could not be taken back"):
        commit(store, 2, change(3))
    assert store_on(where)[1].changes[0] == change(1)
    assert "could not be taken back" in caplog.text


def grown(where, monkeypatch, size=2_000):
    monkeypatch.setattr(local, "SUM_UP_FROM_BYTES", size)
    store, _ = store_on(where)
    image = Image()
    for number in range(1, 40):
        replica = PartitionImage((1,), (1,), 1)
        created = TopicCreated(name=f"t{number}", topic_id=topic_id(number), partitions=(replica,))
        image = image.apply([created])
        commit(store, image.version, created)
    return store, image


def test_a_long_history_is_replaced_by_its_sum(monkeypatch):
    where = disk()
    store, image = grown(where, monkeypatch)
    commits = where.files[PATH].data.count(b"\n")
    trio.run(store.compact, image)
    assert (commits, where.files[PATH].data.count(b"\n")) == (39, 1)
    assert where.files[PATH].synced
    commit(store, 40, BrokerUnregistered(broker_id=1))
    version, changes = store_on(where)[1]
    assert version == 40
    assert Image().apply(changes).topics == image.topics


def test_a_short_history_and_one_that_hardly_grew_stay(monkeypatch):
    where = disk()
    store, image = grown(where, monkeypatch, size=1 << 20)
    trio.run(store.compact, image)
    assert where.files[PATH].data.count(b"\n") == 39
    monkeypatch.setattr(local, "SUM_UP_FROM_BYTES", 10)
    trio.run(store.compact, image)
    trio.run(store.compact, image)
    commit(store, 40, BrokerUnregistered(broker_id=1))
    trio.run(store.compact, image)
    assert where.files[PATH].data.count(b"\n") == 2


def test_a_history_that_cannot_be_replaced_stays(monkeypatch, caplog):
    where = disk()
    store, image = grown(where, monkeypatch)
    where.fail("replace", error=errno.ENOSPC)
    with caplog.at_level(logging.WARNING):
        trio.run(store.compact, image)
    assert "could not be summed up" in caplog.text
    commit(store, 40, change(1))
    assert store_on(where)[1].version == 40


def test_summing_up_without_forcing_to_disk(monkeypatch):
    where = disk()
    store, image = grown(where, monkeypatch)
    quick = LocalStore(where, PATH, flush=False)
    trio.run(quick.load)
    store.close()
    trio.run(quick.compact, image)
    assert Image().apply(store_on(where)[1].changes).topics == image.topics


def test_a_store_that_was_never_loaded_can_be_closed():
    LocalStore(disk(), PATH).close()


def test_file_that_vanished_takes_no_commit():
    where = disk()
    store, _ = store_on(where)
    commit(store, 1, change(1))
    where.remove(PATH)
    with pytest.raises(KafkaError, match="not there any more") as error:
        commit(store, 2, change(2))
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
