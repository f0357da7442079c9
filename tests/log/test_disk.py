"""Rules about files: whole appends or none, atomic replacement, locks, lifetime."""

import errno
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import trio

from kafkalite.log import disk as disk_module
from kafkalite.log.disk import OsDisk, OsFile, TornFile, allow_many_open_files
from tests.log.sim_disk import SimDisk


@pytest.fixture
def disk():
    return OsDisk(syncs=False)


@pytest.fixture(params=["os", "sim"])
def either(request, tmp_path):
    """Give (disk, directory): both disks must behave alike."""
    if request.param == "os":
        return OsDisk(syncs=False), str(tmp_path)
    disk = SimDisk()
    disk.make_directory("/data")
    return disk, "/data"


def test_appends_follow_each_other_and_are_read_by_position(either):
    disk, directory = either
    file = disk.open(f"{directory}/a", create=True)
    file.append(b"hello ")
    file.append(memoryview(b"world"))
    assert file.size == 11
    assert file.pread(5, 6) == b"world"
    assert file.pread(50, 6) == b"world"
    assert file.pread(5, 50) == b""
    again = disk.open(f"{directory}/a")
    assert again.size == 11
    again.truncate(5)
    assert again.pread(50, 0) == b"hello"


def test_open_without_create_needs_the_file(either):
    disk, directory = either
    with pytest.raises(FileNotFoundError):
        disk.open(f"{directory}/none")
    with pytest.raises(FileNotFoundError):
        disk.read(f"{directory}/none")
    with pytest.raises(FileNotFoundError):
        disk.list(f"{directory}/none")


def test_map_and_read_give_the_whole_content(either):
    disk, directory = either
    file = disk.open(f"{directory}/a", create=True)
    assert disk.map(f"{directory}/a") == b""
    assert disk.read(f"{directory}/a") == b""
    file.append(b"0123456789")
    mapped = disk.map(f"{directory}/a")
    assert mapped[2:4] == b"23"
    assert len(mapped) == 10
    assert disk.read(f"{directory}/a") == b"0123456789"


def test_replace_leaves_only_the_new_content(either):
    disk, directory = either
    disk.replace(f"{directory}/a", b"one")
    disk.replace(f"{directory}/a", bytearray(b"two!"), sync=False)
    assert disk.read(f"{directory}/a") == b"two!"
    assert [entry.name for entry in disk.list(directory)] == ["a"]


def test_list_is_sorted_and_tells_sizes_and_directories(either):
    disk, directory = either
    disk.replace(f"{directory}/b", b"12")
    disk.make_directory(f"{directory}/c/d")
    disk.make_directory(f"{directory}/c")
    disk.replace(f"{directory}/a", b"")
    entries = disk.list(directory)
    assert [(e.name, e.is_directory) for e in entries] == [("a", False), ("b", False), ("c", True)]
    assert entries[1].size == 2


def test_rename_and_remove_take_whole_directories(either):
    disk, directory = either
    disk.make_directory(f"{directory}/t-0")
    disk.replace(f"{directory}/t-0/x", b"1")
    disk.rename(f"{directory}/t-0", f"{directory}/t-0.gone")
    assert disk.read(f"{directory}/t-0.gone/x") == b"1"
    disk.remove(f"{directory}/t-0.gone")
    disk.remove(f"{directory}/t-0.gone")
    disk.sync(f"{directory}/t-0.gone")
    assert disk.list(directory) == []


def test_an_open_file_outlives_its_name(either):
    disk, directory = either
    file = disk.open(f"{directory}/a", create=True)
    file.append(b"kept")
    disk.rename(f"{directory}/a", f"{directory}/b")
    assert file.pread(4, 0) == b"kept"
    disk.remove(f"{directory}/b")
    assert file.pread(4, 0) == b"kept"


def test_a_lock_keeps_the_next_broker_of_this_process_out(either):
    disk, directory = either
    lock = disk.lock(f"{directory}/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{directory}/.lock")
    lock.close()
    disk.lock(f"{directory}/.lock").close()


def test_a_lock_keeps_other_processes_out(disk, tmp_path):
    """Java's FileLock is the same POSIX lock."""
    lock = disk.lock(f"{tmp_path}/.lock")
    program = (
        "import fcntl, sys\n"
        f"file = open({str(tmp_path / '.lock')!r}, 'r+')\n"
        "try:\n    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except OSError:\n    sys.exit(3)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 3
    lock.close()
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_lock_of_another_process_is_respected(disk, tmp_path):
    program = (
        "import fcntl, sys\n"
        f"file = open({str(tmp_path / '.lock')!r}, 'w')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(BlockingIOError):
            disk.lock(f"{tmp_path}/.lock")
        other.stdin.close()
        other.wait()
    disk.lock(f"{tmp_path}/.lock").close()


def test_a_short_write_is_completed(disk, tmp_path, monkeypatch):
    file = disk.open(f"{tmp_path}/a", create=True)
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, data[:3], at))
    file.append(memoryview(b"0123456789"))
    assert file.pread(20, 0) == b"0123456789"


def test_a_torn_write_is_cut_off_again(disk, tmp_path, monkeypatch):
    file = disk.open(f"{tmp_path}/a", create=True)
    file.append(b"whole")
    real = os.pwrite
    calls = []

    def full(fd, data, at):
        if calls:
            raise OSError(errno.ENOSPC, "no space left on device")
        calls.append(at)
        return real(fd, data[:4], at)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="no space left"):
        file.append(b"0123456789")
    monkeypatch.undo()
    assert file.size == 5
    assert os.path.getsize(f"{tmp_path}/a") == 5
    file.append(b"!")
    assert file.pread(20, 0) == b"whole!"


def test_a_torn_write_that_stays_is_told_apart(disk, tmp_path, monkeypatch):
    file = disk.open(f"{tmp_path}/a", create=True)

    def fail(*_):
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "pwrite", fail)
    monkeypatch.setattr(os, "ftruncate", fail)
    with pytest.raises(TornFile):
        file.append(b"x")


def test_a_descriptor_is_closed_with_its_last_reference(disk, tmp_path):
    file = disk.open(f"{tmp_path}/a", create=True)
    descriptor = file.fileno()
    os.fstat(descriptor)
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_closed_file_has_no_descriptor(disk, tmp_path):
    file = disk.open(f"{tmp_path}/a", create=True)
    file.close()
    file.close()
    with pytest.raises(OSError, match="the file is closed"):
        file.fileno()


def test_reads_longer_than_one_call_gives_are_joined(disk, tmp_path, monkeypatch):
    """One pread returns at most 2 GiB - 4 KiB."""
    file = disk.open(f"{tmp_path}/a", create=True)
    file.append(b"0123456789")
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, at: real(fd, min(length, 3), at))
    assert file.pread(8, 1) == b"12345678"
    assert file.pread(20, 1) == b"123456789"


def test_syncs_reach_the_operating_system_unless_turned_off(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(os, "fsync", calls.append)
    for syncs, expected in ((True, 5), (False, 0)):
        calls.clear()
        disk = OsDisk(syncs=syncs)
        file = disk.open(f"{tmp_path}/a", create=True)
        file.sync()
        disk.sync(f"{tmp_path}/a")
        disk.sync(f"{tmp_path}/none")
        disk.sync(str(tmp_path))
        disk.replace(f"{tmp_path}/b", b"")  # the file, then the directory's names
        assert len(calls) == expected


def test_slow_appends_are_counted(disk, tmp_path, monkeypatch):
    file = disk.open(f"{tmp_path}/a", create=True)
    times_ms = iter([0, 1, 10, 80, 100, 130])
    clock = SimpleNamespace(perf_counter_ns=lambda: next(times_ms) * 1_000_000)
    monkeypatch.setattr(disk_module, "time", clock)
    for data in (b"fast", b"slow", b"less slow"):
        file.append(data)
    statistics = disk.statistics()
    assert (statistics["append_stalls"], statistics["append_stall_ms_max"]) == (2, 70)


def test_open_file_limit_is_raised_to_the_hard_limit(monkeypatch):
    limits = {"soft": 1024, "hard": 4096}
    monkeypatch.setattr(
        disk_module.resource, "getrlimit", lambda _: (limits["soft"], limits["hard"])
    )
    monkeypatch.setattr(
        disk_module.resource, "setrlimit", lambda _, pair: limits.update(soft=pair[0])
    )
    assert allow_many_open_files() == 4096
    assert limits["soft"] == 4096
    assert allow_many_open_files() == 4096


def test_open_file_limit_stays_where_the_system_refuses(monkeypatch):
    def refuse(*_):
        raise ValueError

    monkeypatch.setattr(disk_module.resource, "getrlimit", lambda _: (256, 2**63))
    monkeypatch.setattr(disk_module.resource, "setrlimit", refuse)
    assert allow_many_open_files() == 256


def test_remove_does_not_hide_a_refusal(disk, tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"")

    def refuse(_):
        raise PermissionError

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(PermissionError):
        disk.remove(f"{tmp_path}/a")


def test_links_to_nowhere_are_not_listed(disk, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "none")
    assert disk.list(str(tmp_path)) == []


def test_run_in_thread_returns_what_the_function_returns():
    async def main():
        return await OsDisk().run_in_thread(lambda a, b: a + b, 1, 2)

    assert trio.run(main) == 3


def test_files_are_compared_by_nothing_but_themselves(disk, tmp_path):
    assert isinstance(disk.open(f"{tmp_path}/a", create=True), OsFile)
