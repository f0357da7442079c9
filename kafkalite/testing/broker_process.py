"""One broker of a local cluster: a `kafkalite serve` as a process, with files of its own."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kafkalite.testing.processes import Child, ProcessError, wait_until_true

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 60.0
"""Recovery of a large log, and handing over many leaderships, take their time."""

JOURNAL_BYTES: Final = 8 * 1024 * 1024
"""Of the latest requests, for the report of a test that fails."""

BROKER_LISTENER: Final = "REPLICATION"

_READY: Final = re.compile(r"^kafkalite ready: bootstrap=(\S+)", re.MULTILINE)


class BrokerProcess:
    """A broker that may be killed, paused and started again with the same identity.

    Args:
        broker_id: its node.id.
        directory: where its data (`broker-<id>`), settings and log file are put.
        host: address to listen on, for clients; other brokers come in by loopback.
        port: for clients.
        peer_port: for other brokers; None where `settings` name the listeners.
        http_port: for HTTP, on loopback unless `http_host` is set; None for none.
        settings: by Kafka's names; listeners and the like are added to them.
        protocol: of both listeners; that for clients is called so.
    """

    def __init__(
        self,
        broker_id: int,
        *,
        directory: Path,
        host: str,
        port: int,
        peer_port: int | None,
        http_port: int | None = None,
        settings: Mapping[str, str],
        protocol: str = "PLAINTEXT",
    ) -> None:
        self._protocol = protocol
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.peer_port = peer_port
        self.http_port = http_port
        self.http_host = "127.0.0.1"
        self.peer_host = "127.0.0.1"
        self.advertised_peer_port = peer_port
        """The port that other brokers are told: that of a proxy, where there is one."""
        self.prefix: Sequence[str] = ()
        """Words before its command."""
        self.settings = dict(settings)
        self.is_paused = False
        self._was_ready = False
        self._directory = directory
        self._child: Child | None = None

    def __repr__(self) -> str:
        state = "paused" if self.is_paused else "running" if self.is_running else "not running"
        return f"<broker {self.broker_id} at {self.bootstrap}, {state}>"

    @property
    def bootstrap(self) -> str:
        """`HOST:PORT` of this broker, for clients on this machine."""
        host = "127.0.0.1" if self.host in ("", "0.0.0.0", "::") else self.host
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def http_url(self) -> str | None:
        """Address of its HTTP port, with the token that it asks for; None if it has none."""
        if self.http_port is None:
            return None
        token = self.settings.get("kafkalite.http.token")
        return f"http://{self.http_host}:{self.http_port}" + (f"/?token={token}" if token else "")

    @property
    def data_dir(self) -> Path:
        """Directory of its logs, if `log.dirs` is not set to something else."""
        return self._directory / f"broker-{self.broker_id}"

    @property
    def log_file(self) -> Path:
        """File that it logs to, over all its runs."""
        return self._directory / f"broker-{self.broker_id}.log"

    @property
    def is_running(self) -> bool:
        """Whether the process lives; a paused one does."""
        return self._child is not None and self._child.is_running

    @property
    def process(self) -> Child:
        """The process of its latest run."""
        if self._child is None:
            raise RuntimeError(f"broker {self.broker_id} was not started")
        return self._child

    @property
    def pid(self) -> int:
        """The process ID of its latest run."""
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended, negative for a signal; None while it runs."""
        return self.process.poll()

    def launch(self, *extra: str) -> None:
        """Start the process without waiting for it.

        Args:
            extra: further words of the command line.
        """
        if self.is_running:
            raise RuntimeError(f"broker {self.broker_id} runs already")
        self.is_paused = self._was_ready = False
        file = self._directory / f"broker-{self.broker_id}.properties"
        lines = [f"{name}={value}\n" for name, value in self._all_settings().items()]
        file.touch(mode=0o600)
        file.chmod(0o600)  # passwords may be among them
        file.write_text("".join(lines).replace("\\", "\\\\"))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KAFKA_")}
        self._child = self._start(["serve", str(file), "--force", "-v", *extra], environment)

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Return when a launched broker accepts clients.

        Raises:
            ProcessError: it ended, or does not get ready; with the end of its log.
        """
        child = self.process
        wait_until_true(lambda: self.is_ready or not child.is_running, timeout_s)
        if self.is_ready and child.is_running:
            return
        problem = "did not get ready" if child.is_running else f"ended with code {child.poll()}"
        raise ProcessError(f"broker {self.broker_id} {problem}", child.tail())

    @property
    def is_ready(self) -> bool:
        """Whether it has told since it was launched that clients are served."""
        if not self._was_ready:
            self._was_ready = _READY.search(self.process.output()) is not None
        return self._was_ready

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Stop it by SIGTERM (a controlled shutdown); return the exit code."""
        self.is_paused = False
        return self.process.stop(timeout_s)

    def kill(self) -> None:
        """End it by SIGKILL."""
        self.is_paused = False
        self.process.kill()

    def pause(self) -> None:
        """Stop it by SIGSTOP: connections stay, nothing is answered."""
        self.process.pause()
        self.is_paused = True

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self.process.resume()
        self.is_paused = False

    def _start(self, words: Sequence[str], environment: Mapping[str, str]) -> Child:
        command = [*self.prefix, sys.executable, "-m", "kafkalite", *words]
        return Child(command, log_file=self.log_file, environment=environment)

    def _all_settings(self) -> dict[str, str]:
        http = (
            {}
            if self.http_port is None
            else {
                "kafkalite.http.listener": f"{self.http_host}:{self.http_port}",
                "kafkalite.control": "true",
                "kafkalite.journal.max.bytes": str(JOURNAL_BYTES),
            }
        )
        return {
            **http,
            "node.id": str(self.broker_id),
            **({} if self.peer_port is None else self._listener_settings()),
            "log.dirs": str(self.data_dir),
            **self.settings,
        }

    def _listener_settings(self) -> dict[str, str]:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return {
            "listeners": f"{self._protocol}://{host}:{self.port},"
            f"{BROKER_LISTENER}://{self.peer_host}:{self.peer_port}",
            "advertised.listeners": f"{BROKER_LISTENER}://"
            f"{self.peer_host}:{self.advertised_peer_port}",
            "listener.security.protocol.map": f"{self._protocol}:{self._protocol},"
            f"{BROKER_LISTENER}:{self._protocol}",
            "inter.broker.listener.name": BROKER_LISTENER,
        }
