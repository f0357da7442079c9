"""Brokers as forks of a process that has imported them: importing is most of a start."""

from __future__ import annotations

import gc
import os
import pkgutil
import subprocess
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, cast

from kafkalite.testing.broker_process import BrokerProcess
from kafkalite.testing.processes import Child, wait_until_true

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FILES_MAX = 1024


def import_broker() -> None:
    """Import what a broker may use, for the forks."""
    import_module("kafkalite.cli.serve")
    for folder in ("api", "meta", "wire"):
        package = import_module(f"kafkalite.{folder}")
        for module in pkgutil.walk_packages(package.__path__, f"kafkalite.{folder}."):
            import_module(module.name)
    gc.collect()
    gc.freeze()


class ForkedBroker(BrokerProcess):
    """A broker process that has to import nothing."""

    def _start(self, words: Sequence[str], environment: Mapping[str, str]) -> Child:
        return _ForkedChild(words, log_file=self.log_file, environment=environment)


class _ForkedChild(Child):
    def _start(
        self, command: Sequence[str], log: BinaryIO, environment: Mapping[str, str] | None
    ) -> subprocess.Popen[bytes]:
        pid = os.fork()
        if pid == 0:
            try:
                _become(command, log, environment or {})
            except BaseException:  # nothing of the fork goes back into the program above it
                traceback.print_exc()
            os._exit(1)
        return cast("subprocess.Popen[bytes]", _Fork(pid))


def _become(words: Sequence[str], log: BinaryIO, environment: Mapping[str, str]) -> None:
    """Be the broker, in a session of its own and with no file of this program but the log."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log.fileno(), 1), (log.fileno(), 2)):
        os.dup2(source, target)
    os.closerange(3, _FILES_MAX)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["kafkalite", *words]
    sys.stdin = open(0)  # noqa: SIM115 (for the life of the process)
    sys.stdout = open(1, "w", buffering=1)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1)  # noqa: SIM115
    from kafkalite.cli.main import run

    os._exit(run(list(words)))


class _Fork:
    """What `Child` uses of a `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float) -> int:
        if not wait_until_true(lambda: self.poll() is not None, timeout):
            raise subprocess.TimeoutExpired("kafkalite", timeout)
        assert self.returncode is not None
        return self.returncode
