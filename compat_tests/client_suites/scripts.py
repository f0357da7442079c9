"""Programs that suites call by name, written into a folder of their own."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from compat_tests.apache_kafka import KAFKA_4, TOOLS, java_command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def write_script(file: Path, command: Sequence[str]) -> None:
    """Make a file a program that runs this command with what follows."""
    file.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    file.chmod(0o755)


def write_kafka_scripts(folder: Path) -> None:
    """Write the scripts of Apache Kafka's bin folder, each with and without `.sh`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in TOOLS:
        for file in (f"{name}.sh", name):
            write_script(folder / file, java_command(KAFKA_4, name))
