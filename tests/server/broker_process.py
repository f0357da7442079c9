"""A broker in a process of its own, for tests that kill it or take things away from it."""

import os
import resource
import signal
import socket
import subprocess
import sys

READY = "kafkalite ready: bootstrap="
START_TIMEOUT_S = 20


def free_port():
    """Return a port that was free a moment ago: a restarted broker must come back at the same."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class BrokerProcess:
    """`kafkalite serve`, which may be killed and started again on the same port and data."""

    def __init__(
        self, data_dir, *, port=None, file_size_max=None, open_files_max=None, log=None, **settings
    ):
        self.port = port or free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.file_size_max = file_size_max
        self.open_files_max = open_files_max
        self.log = log
        self._data_dir = data_dir
        self._settings = settings
        self._process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        """Start, and return when clients can connect."""
        limits = {
            resource.RLIMIT_FSIZE: self.file_size_max,
            resource.RLIMIT_NOFILE: self.open_files_max,
        }

        def limit_files():
            for what, limit in limits.items():
                if limit is not None:
                    resource.setrlimit(what, (limit, limit))

        command = [sys.executable, "-m", "kafkalite", "serve", "--listen", self.bootstrap]
        command += ["--data-dir", str(self._data_dir)]
        for name, value in self._settings.items():
            command += ["--set", f"{name.replace('_', '.')}={value}"]
        with open(self.log or os.devnull, "ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                preexec_fn=limit_files,
                env={**os.environ, "PYTHONFAULTHANDLER": "1"},
            )
        line = self._process.stdout.readline()
        assert line.startswith(READY), f"the broker said {line!r}"

    def kill(self):
        """End the process as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self):
        """Ask it to stop; return its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how):
        if self._process is None:
            return None
        self._process.send_signal(how)
        code = self._process.wait(START_TIMEOUT_S)
        self._process.stdout.close()
        self._process = None
        return code
