"""The suite's own parts: cache, toolchains, partitioning, the matrix. They need no client."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from compat_tests import matrix, toolchains
from compat_tests.cache import cached_dir, locked
from compat_tests.clients import Client
from compat_tests.driver import REPOSITORY
from compat_tests.partitioning import java_partition, murmur2

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that nothing is in."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kafkalite"


def test_entry_is_built_once_by_those_who_ask_at_once(own_cache: Path) -> None:
    built: list[Path] = []
    start = threading.Barrier(4)

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "file").write_text("whole")

    def ask() -> None:
        start.wait()
        assert (cached_dir("some/entry", build) / "file").read_text() == "whole"

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert [path.name for path in (own_cache / "some").iterdir()] == ["entry"]


def test_failed_build_leaves_nothing(own_cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "file").write_text("half")
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        cached_dir("entry", fail)
    assert not (own_cache / "entry").exists()
    assert [path.name for path in own_cache.iterdir()] == ["locks"]


def test_lock_excludes_a_second_holder(own_cache: Path) -> None:
    entered = threading.Event()

    def enter() -> None:
        with locked("name"):
            entered.set()

    with locked("name"):
        other = threading.Thread(target=enter)
        other.start()
        assert not entered.wait(0.05)
    other.join(5)
    assert entered.is_set()


def test_missing_program_of_an_ordinary_user_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    toolchains.find_program.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(toolchains.MissingToolchain, match=r"go is not on PATH \(.* golang-go\)"):
        toolchains.find_program("go")
    toolchains.find_program.cache_clear()


def test_keys_hash_as_in_kafkas_own_tests() -> None:
    # Vectors of org.apache.kafka.common.utils.UtilsTest, signed there.
    vectors = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    for key, expected in vectors.items():
        assert murmur2(key) == expected % 2**32
    assert java_partition(b"", 1) == 0


def test_feature_is_lost_with_the_one_that_it_belongs_to() -> None:
    client = Client(
        name="c",
        version="1",
        prepare=lambda: ([], {}),
        cannot={"admin": "none", "codec:lz4": "no package"},
    )
    assert client.reason_against(["admin:delete_group"]) == "none"
    assert client.reason_against(["codec:lz4"]) == "no package"
    assert client.reason_against(["codec:gzip", "group"]) is None


def test_matrix_is_written_only_after_a_whole_run_against_kafkalite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = tmp_path / "compatibility.md"
    monkeypatch.setattr(matrix, "DOCUMENT", document)
    monkeypatch.delenv("KAFKALITE_COMPAT_BOOTSTRAP", raising=False)
    monkeypatch.delenv("KAFKALITE_COMPAT_BROKER", raising=False)
    outcomes = dict.fromkeys(matrix.expected(), True)
    some = next(iter(sorted(outcomes)))

    monkeypatch.setattr(
        matrix, "outcomes", {key: ok for key, ok in outcomes.items() if key != some}
    )
    matrix.write_if_complete()
    assert not document.exists()

    monkeypatch.setattr(matrix, "outcomes", outcomes | {some: False})
    monkeypatch.setenv("KAFKALITE_COMPAT_BROKER", "apache")
    matrix.write_if_complete()
    assert not document.exists()

    monkeypatch.delenv("KAFKALITE_COMPAT_BROKER")
    matrix.write_if_complete()
    assert document.read_text().count("| ✗ |") == 1


_STANDS_STILL = """
import time
from compat_tests.chain import worker
worker.STANDS_STILL_S = 0.05
worker.Worker.watched(time.monotonic)
worker.Worker.watched(time.sleep, 60)
"""


def test_a_worker_whose_library_stands_still_says_so_and_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STANDS_STILL],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == "stands still: librdkafka did not return from sleep\n"
