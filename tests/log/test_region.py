"""A region is a promise of bytes."""

import errno
import os

import pytest

from kafkalite.log.disk import OsDisk
from kafkalite.log.region import EMPTY_REGION, FileRegion
from tests.log.sim_disk import SimDisk


@pytest.fixture
def file(tmp_path):
    file = OsDisk().open(f"{tmp_path}/a", create=True)
    file.append(b"0123456789")
    return file


def test_a_region_reads_its_bytes(file):
    region = FileRegion(file, 2, 5)
    assert len(region) == 5
    assert region.read() == b"23456"
    assert region.fileno() == file.fileno()
    assert "position=2" in repr(region)


def test_a_region_of_a_removed_file_can_still_be_read(file, tmp_path):
    region = FileRegion(file, 0, 10)
    os.unlink(tmp_path / "a")
    del file
    assert region.read() == b"0123456789"


def test_a_region_that_came_up_short_raises(file):
    region = FileRegion(file, 2, 5)
    file.truncate(4)
    with pytest.raises(OSError, match="2 are left"):
        region.read()


@pytest.mark.parametrize(("code", "is_told"), [(errno.EIO, True), (errno.EINTR, False)])
def test_log_is_told_of_what_its_disk_cannot_read(code, is_told):
    told = []
    disk = SimDisk()
    file = disk.open("/a", create=True)
    file.append(b"0123456789")
    region = FileRegion(file, 2, 5, on_error=told.append)
    disk.fail("pread", error=code)
    with pytest.raises(OSError) as raised:
        region.read()
    assert raised.value.errno == code
    assert told == [raised.value] * is_told


def test_log_is_not_told_of_what_a_truncation_took(file):
    told = []
    region = FileRegion(file, 2, 5, on_error=told.append)
    file.truncate(4)
    with pytest.raises(OSError, match="2 are left"):
        region.read()
    assert told == []


def test_the_empty_region_has_no_bytes_and_no_file():
    assert len(EMPTY_REGION) == 0
    assert EMPTY_REGION.read() == b""
    with pytest.raises(OSError, match="an empty region has no file"):
        EMPTY_REGION.fileno()
