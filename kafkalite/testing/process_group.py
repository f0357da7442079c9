"""Several broker processes of one machine, without ZooKeeper: the first keeps the metadata."""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Self

from kafkalite.client.cluster import Client
from kafkalite.client.errors import ClientError
from kafkalite.config import load_config
from kafkalite.testing.broker_process import START_TIMEOUT_S, BrokerProcess
from kafkalite.testing.process_listeners import LISTENER_SETTINGS, ProcessListeners
from kafkalite.testing.processes import wait_until_true

ONE_REPLICA: Final[Mapping[str, str]] = {
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
}
"""Processes of one machine share its fate: what one of them has need not be copied."""

SOCKET: Final = "metadata"


class ProcessGroup:
    """Broker processes 1 to N, each with a data directory of its own in one folder.

    Args:
        listeners: addresses of all of them.
        data_dir: the folder.
        settings: of all of them, by Kafka's names.
        first: what only the first has, besides.
        followers_of: socket of a first process that is somebody else's; brokers then begin with 2.
    """

    zookeeper: Final = None

    def __init__(
        self,
        listeners: ProcessListeners,
        *,
        data_dir: Path,
        settings: Mapping[str, str] | None = None,
        first: Mapping[str, str] | None = None,
        followers_of: str | None = None,
    ) -> None:
        self.data_dir = data_dir.absolute()
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._clean_up = contextlib.ExitStack()
        self._socket = followers_of or self._clean_up.enter_context(socket_path())
        self._others = 0 if followers_of is None else 1
        self._is_plain = listeners.plain == listeners.first
        common = {**ONE_REPLICA, **(settings or {})}
        self.brokers: dict[int, BrokerProcess] = {}
        for number in listeners.numbers:
            is_first = followers_of is None and number == listeners.numbers[0]
            host, port = listeners.address(number)
            role = "kafkalite.metadata.serve" if is_first else "kafkalite.metadata.follow"
            more = {} if first is None or not is_first else first
            self.brokers[number] = BrokerProcess(
                number,
                directory=self.data_dir,
                host=host,
                port=port,
                peer_port=None,
                settings={
                    **common,
                    **listeners.settings(number),
                    "kafkalite.http.listener": "",
                    role: self._socket,
                    **more,
                },
            )

    @property
    def bootstrap(self) -> str:
        """`HOST:PORT,HOST:PORT,...` of all processes, for a client's `bootstrap.servers`."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def start(self, timeout_s: float = START_TIMEOUT_S) -> Self:
        """Start all at once; return when each of them serves, and knows the others.

        Those whose first listener wants TLS or a login are not asked whom they know.

        Raises:
            ProcessError, TimeoutError: with what the logs say.
        """
        try:
            for broker in self.brokers.values():
                broker.launch()
            for broker in self.brokers.values():
                broker.wait_ready(timeout_s)
            if self._is_plain and not wait_until_true(self._are_all_known, timeout_s):
                raise TimeoutError("the processes do not know each other")
        except BaseException:
            self.close(at_once=True)
            raise
        return self

    def stop(self, number: int) -> int:
        """Stop a process by SIGTERM; return its exit code."""
        return self.brokers[number].stop()

    def controller(self) -> int:
        """Return the number of the process that keeps the metadata."""
        return min(self.brokers)

    def close(self, *, at_once: bool = False) -> None:
        """End all that still run, the first one last."""
        for number in sorted(self.brokers, reverse=True):
            broker = self.brokers[number]
            if broker.is_running and not at_once:
                broker.stop()
            elif broker.is_running:
                broker.kill()
        self._clean_up.close()

    def _are_all_known(self) -> bool:
        wanted = len(self.brokers) + self._others
        return all(_known(broker.bootstrap) == wanted for broker in self.brokers.values())


class Followers:
    """Processes that follow a broker in the test process.

    Args:
        count: how many.
        settings: of the broker, which gets those of a first process.
    """

    def __init__(self, count: int, settings: dict[str, str]) -> None:
        self._clean_up = contextlib.ExitStack()
        self._socket = self._clean_up.enter_context(socket_path())
        self._listeners = ProcessListeners(load_config(overrides=settings), range(2, count + 2))
        self._settings = {
            name: text for name, text in settings.items() if name not in LISTENER_SETTINGS
        }
        self._group: ProcessGroup | None = None
        settings |= self._listeners.settings_of_first()
        settings["kafkalite.metadata.serve"] = self._socket
        for name, text in ONE_REPLICA.items():
            settings.setdefault(name, text)

    @property
    def bootstrap(self) -> str:
        """`HOST:PORT,HOST:PORT,...` of all of them."""
        assert self._group is not None
        return self._group.bootstrap

    def start(self, data_dir: str | Path | None) -> None:
        """Start them beside the broker's data, or in a temporary directory."""
        if data_dir is None:
            scratch = tempfile.TemporaryDirectory(prefix="kafkalite-", ignore_cleanup_errors=True)
            data_dir = self._clean_up.enter_context(scratch)
        self._group = ProcessGroup(
            self._listeners,
            data_dir=Path(data_dir),
            settings=self._settings,
            followers_of=self._socket,
        ).start()

    def stop(self) -> None:
        """End them."""
        if self._group is not None:
            self._group.close()
        self._clean_up.close()


@contextlib.contextmanager
def socket_path() -> Iterator[str]:
    """Give a path for a socket, short enough, in a folder that only this user can enter."""
    with tempfile.TemporaryDirectory(prefix="kafkalite-", ignore_cleanup_errors=True) as folder:
        yield f"{folder}/{SOCKET}"


def _known(bootstrap: str) -> int:
    try:
        with Client(bootstrap) as client:
            return len(client.metadata().brokers)
    except ClientError:
        return 0
