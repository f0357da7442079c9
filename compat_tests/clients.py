"""The clients of the suite: how each is installed and started, and what it has no means for.

A client's folder has a ``client.py`` with ``CLIENTS``, the versions of it that are run. What a
client cannot do is named by a feature and a reason; a scenario names the features that it needs.
A feature with a colon belongs to the one before the colon: a client that cannot ``admin`` cannot
``admin:delete_group`` either.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compat_tests.cache import cached_dir, digest_of
from compat_tests.driver import REPOSITORY, Driver
from compat_tests.security import VARIABLE
from compat_tests.toolchains import find_program, run_build

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

#: The folders, in the order of the matrix.
FOLDERS = (
    "java",
    "confluent_kafka",
    "kafka_python",
    "aiokafka",
    "franz_go",
    "sarama",
    "kafka_go",
    "kafkajs",
    "kcat",
)

#: What `Client.prepare` gives: the command line without the bootstrap address, the environment.
Prepared = tuple[list[str], dict[str, str]]


@dataclass(frozen=True, kw_only=True)
class Client:
    """One column of the matrix."""

    name: str
    version: str
    prepare: Callable[[], Prepared]
    cannot: Mapping[str, str] = field(default_factory=dict)
    #: False for older versions, which are run by CI and not by everybody.
    is_current: bool = True

    @property
    def id(self) -> str:
        """The part of a test's id that names the client."""
        return f"{self.name}-{self.version}".replace(" ", "-")

    def reason_against(self, needs: Sequence[str]) -> str | None:
        """Return why it cannot do something with these needs, None if it can."""
        for need in needs:
            for feature in (need, need.split(":")[0]):
                if feature in self.cannot:
                    return self.cannot[feature]
        return None

    def start(self, bootstrap: str, security: Mapping[str, Any] | None = None) -> Driver:
        """Install what is missing and start the driver against a broker.

        Args:
            bootstrap: its address.
            security: how to come in, as DRIVERS.md has it; None where everybody may.
        """
        command, environment = self.prepare()
        if security is not None:
            environment = {**environment, VARIABLE: json.dumps(security)}
        return Driver(self.id, [*command, bootstrap], environment)


def all_clients() -> list[Client]:
    """Return every client of the matrix, in its order."""
    clients: list[Client] = []
    for folder in FOLDERS:
        clients.extend(importlib.import_module(f"compat_tests.{folder}.client").CLIENTS)
    return clients


def trusted_client() -> Client:
    """Return the client that sets scenes for the others: Apache's own."""
    return all_clients()[0]


def python_client(folder: str, *requirements: str) -> Prepared:
    """Prepare a driver of a Python client: its pinned packages come first on the path."""

    def build(target: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run_build([*pip, "--target", str(target), *requirements])

    python = f"{sys.implementation.name}{sys.version_info.major}.{sys.version_info.minor}"
    packages = cached_dir(f"python/{folder}-{digest_of(python, *requirements)}", build)
    command = [sys.executable, "-m", f"compat_tests.{folder}.driver"]
    path = os.pathsep.join([str(packages), str(REPOSITORY)])
    return command, {"PYTHONPATH": path}


def go_client(folder: str) -> Prepared:
    """Prepare a driver in Go: built from the client's folder and what the Go drivers share."""
    own = REPOSITORY / "compat_tests" / folder
    shared = sorted((REPOSITORY / "compat_tests" / "go_driver").glob("*.go"))
    sources = [*sorted(own.glob("*.go")), own / "go.mod", own / "go.sum", *shared]

    def build(target: Path) -> None:
        for source in sources:
            (target / source.name).write_bytes(source.read_bytes())
        run_build([find_program("go"), "build", "-o", "driver", "."], cwd=target)

    built = cached_dir(f"go/{folder}-{digest_of(*sources)}", build, lock="go")
    return [str(built / "driver")], {}


def node_client(folder: str) -> Prepared:
    """Prepare a driver in JavaScript: the packages of its package.json, and the driver as it is."""
    own = REPOSITORY / "compat_tests" / folder

    def build(target: Path) -> None:
        (target / "package.json").write_bytes((own / "package.json").read_bytes())
        quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        run_build([find_program("npm"), "install", *quiet], cwd=target)

    packages = cached_dir(f"node/{folder}-{digest_of(own / 'package.json')}", build, lock="npm")
    command = [find_program("node"), str(own / "driver.js")]
    return command, {"NODE_PATH": str(packages / "node_modules")}


def output_of(*command: str) -> str:
    """Return what a program prints, on either stream."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
