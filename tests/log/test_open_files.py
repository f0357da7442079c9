"""Logs hold so many files open and no more (rule 253)."""

import errno
import os
import resource

import pytest

from kafkalite.log.disk import OpenFiles, OsDisk, files_for_logs, reserved_files
from tests.log.log_kit import append, contents, make_log
from tests.log.sim_disk import SimDisk


class Holder:
    def __init__(self, files):
        self.files = files
        self.is_open = False

    def open(self):
        self.is_open = True
        self.files.opened(self)

    def close(self):
        self.is_open = False
        self.files.closed(self)


def test_the_oldest_lets_go_for_the_newest():
    files = OpenFiles(3)
    holders = [Holder(files) for _ in range(5)]
    for holder in holders:
        holder.open()
    assert [holder.is_open for holder in holders] == [False, False, True, True, True]
    holders[0].open()
    assert [holder.is_open for holder in holders] == [True, False, False, True, True]
    assert len(files) == 3


def test_the_newest_keeps_its_file_whatever_the_limit():
    files = OpenFiles(0)
    holder = Holder(files)
    holder.open()
    assert holder.is_open


def test_half_are_given_back_until_there_are_none():
    files = OpenFiles()
    holders = [Holder(files) for _ in range(3)]
    for holder in holders:
        holder.open()
    counts = []
    while files.give_back():
        counts.append(len(files))
    assert counts == [1, 0]
    assert not files.give_back()


@pytest.mark.parametrize("limit", [20, 256, 1_024, 1_048_576])
def test_clients_and_logs_share(limit):
    kept = reserved_files(limit)
    assert 0 < kept <= 128
    assert 0 < files_for_logs(limit) <= (limit - kept) / 2


def test_logs_work_on_with_fewer_files_than_logs():
    disk = SimDisk()
    disk.open_files.limit = 2
    logs = [make_log(disk, directory=f"/data/t-{index}") for index in range(6)]
    for turn in range(3):
        for log in logs:
            append(log, "a", str(turn))
            assert len(disk.open_files) <= 2
    for log in logs:
        assert log.log_end_offset == 6
        assert len(contents(log)) == 6
        log.roll()
        log.close()
    assert len(disk.open_files) == 0


def test_a_disk_without_descriptors_has_logs_give_theirs_back(tmp_path, monkeypatch):
    disk = OsDisk()
    holders = [Holder(disk.open_files) for _ in range(2)]
    for holder in holders:
        holder.open()
    path = str(tmp_path / "f")
    really_open = os.open

    def open_if_there_is_room(*arguments):
        if all(holder.is_open for holder in holders):
            raise OSError(errno.EMFILE, "Too many open files")
        return really_open(*arguments)

    monkeypatch.setattr(os, "open", open_if_there_is_room)
    disk.open(path, create=True).close()
    assert [holder.is_open for holder in holders] == [False, True]


def test_a_disk_without_descriptors_and_without_logs_says_so(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OSError, match="Too many"):
        OsDisk().open(str(tmp_path / "f"), create=True)


def test_limit_is_that_of_the_process():
    from kafkalite.log.disk import open_files_limit

    assert open_files_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
