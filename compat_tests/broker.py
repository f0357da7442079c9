"""The broker that the suite runs against, as a process of its own.

``KAFKALITE_COMPAT_BOOTSTRAP=HOST:PORT`` names a running broker instead;
``KAFKALITE_COMPAT_BROKER=apache`` (or ``apache-3.9.2``) starts Apache Kafka, the oracle, and
``KAFKALITE_COMPAT_BROKER=cluster`` three brokers of this project, where everything is replicated.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

from compat_tests.apache_kafka import KAFKA_4, ApacheBroker
from kafkalite.testing import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

CLUSTER = "cluster"

_READY = re.compile(r"kafkalite ready: bootstrap=(\S+) ")


def is_kafkalite() -> bool:
    """Tell whether the broker under test is this project's own."""
    kind = os.environ.get("KAFKALITE_COMPAT_BROKER", "")
    return not os.environ.get("KAFKALITE_COMPAT_BOOTSTRAP") and kind in ("", "kafkalite", CLUSTER)


def is_default() -> bool:
    """Tell whether it is what the compatibility matrix is made from: one broker of this project."""
    names = ("KAFKALITE_COMPAT_BOOTSTRAP", "KAFKALITE_COMPAT_BROKER")
    return not any(os.environ.get(name) for name in names)


@contextlib.contextmanager
def compat_broker() -> Iterator[str]:
    """Yield ``host:port`` of the broker under test; stops what it started."""
    named = os.environ.get("KAFKALITE_COMPAT_BOOTSTRAP")
    kind = os.environ.get("KAFKALITE_COMPAT_BROKER", "kafkalite")
    if named:
        yield named
    elif kind.startswith("apache"):
        version = kind.removeprefix("apache").removeprefix("-") or KAFKA_4
        with ApacheBroker(version) as broker:
            yield broker.bootstrap
    elif kind == CLUSTER:
        # Its defaults are those of the broker below.
        with Cluster(3, config={"kafkalite.profile": "dev"}, links=False) as cluster:
            yield cluster.bootstrap
    else:
        with KafkaliteBroker() as broker:
            yield broker.bootstrap


class KafkaliteBroker:
    """``python -m kafkalite serve`` on a free port of loopback, with a data directory of its own.

    Args:
        arguments: further words of the command line, such as ``--set name=value``.
        data_dir: where to keep data; a temporary folder if None.
    """

    def __init__(self, *arguments: str, data_dir: Path | str | None = None) -> None:
        self.arguments = arguments
        self._clean_up = contextlib.ExitStack()
        if data_dir is None:
            scratch = tempfile.TemporaryDirectory(prefix="kafkalite-", ignore_cleanup_errors=True)
            data_dir = self._clean_up.enter_context(scratch)
        self.data_dir = Path(data_dir)
        self.bootstrap = ""
        self.process: subprocess.Popen[str] | None = None

    def start(self, timeout: float = 30.0) -> Self:
        """Return once the broker says that it is ready; raises with its log if it does not."""
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed at the end)
        self._clean_up.callback(self.log.close)
        command = [sys.executable, "-m", "kafkalite", "serve", "--listen", "127.0.0.1:0"]
        command += ["--data-dir", str(self.data_dir), *self.arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.log, text=True, stdin=subprocess.DEVNULL
        )
        # A broker that never gets ready is ended, which ends the reading below.
        watchdog = threading.Timer(timeout, self.process.kill)
        watchdog.start()
        assert self.process.stdout is not None
        try:
            for line in self.process.stdout:
                found = _READY.match(line)
                if found:
                    self.bootstrap = found[1]
                    return self
        finally:
            watchdog.cancel()
        self.process.wait()
        raise RuntimeError(f"kafkalite did not start:\n{self.log_text()}")

    def stop(self) -> int:
        """Stop it by SIGTERM and return its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()

    def log_text(self) -> str:
        """Return what it wrote to stderr."""
        self.log.seek(0)
        return self.log.read()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self._clean_up.close()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self._clean_up.close()
