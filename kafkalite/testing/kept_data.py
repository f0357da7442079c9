"""Copies of the data of brokers under test, kept beside the report of a test that failed.

Each can be looked at with `kafkalite serve --read-only`.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkalite.testing.cluster import Cluster
from kafkalite.testing.snapshots import copy_data

if TYPE_CHECKING:
    from kafkalite.testing.broker import Broker

DATA_MAX_BYTES: Final = 64 * 1024 * 1024
"""Of one test; larger data are only named."""


def keep_data(fixture: "Broker | Cluster", target: Path) -> str:
    """Copy the data of a broker, or of each of a cluster; return where they are in words.

    A cluster's are those of processes that go on: as after a crash.

    Raises:
        RuntimeError: the broker is not running.
    """
    if isinstance(fixture, Cluster):
        places = {target / each.data_dir.name: each.data_dir for each in fixture.brokers.values()}
    else:
        places = {target: Path(fixture.server.data_dirs[0])}
    size_bytes = sum(map(_size_of, places.values()))
    if size_bytes > DATA_MAX_BYTES:
        return f"not copied: {size_bytes / 1e6:.0f} MB in {', '.join(map(str, places.values()))}"
    try:
        if isinstance(fixture, Cluster):
            for copy, source in places.items():
                copy_data(source, copy)
        else:
            fixture.copy_data(target)
    except OSError as error:  # a segment that was deleted meanwhile, a full disk
        return f"copied in part: {error}"
    return "\n".join(f"kafkalite serve --read-only {copy}" for copy in places)


def _size_of(directory: Path) -> int:
    return sum(
        os.stat(os.path.join(folder, name)).st_blocks * 512
        for folder, _, names in os.walk(directory)
        for name in names
        if os.path.exists(os.path.join(folder, name))
    )
