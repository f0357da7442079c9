"""`kafkalite cluster`: a ZooKeeper and several brokers, each a process, until told to stop."""

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn

import click

from kafkalite.cli.output import examples
from kafkalite.cli.parameters import LOOPBACK, listen_address, make_data_folder, pairs
from kafkalite.client.errors import ClientError
from kafkalite.http.port import DEFAULT_PORT as HTTP_PORT
from kafkalite.testing.broker_process import BrokerProcess
from kafkalite.testing.cluster import Cluster
from kafkalite.testing.processes import ProcessError, unused_port
from kafkalite.testing.zookeeper import ZooKeeper

if TYPE_CHECKING:
    from kafkalite.testing.process_group import ProcessGroup

DEFAULT_DATA_DIR: Final = "kafkalite-cluster"
DEFAULT_PORT: Final = 9092
DEFAULT_BROKERS: Final = 3

HTTP_PORTS: Final = 100
"""So many ports are tried for HTTP before any free one is taken."""

LAYOUT_FILE: Final = "cluster.json"
"""In the data directory: which brokers there are, and their ports."""

LOOK_S: Final = 0.1
RESTART_PAUSE_S: Final = 1.0
"""A broker that ends again and again is started at most this often."""

SETTINGS: Final[Mapping[str, str]] = {
    "kafkalite.profile": "dev",
    "zookeeper.session.timeout.ms": "6000",
    "replica.lag.time.max.ms": "10000",
}
"""A dead broker is missed after six seconds, in place of Kafka's 18: nothing here is far away."""


class StopAsked(BaseException):
    """Ctrl-C or SIGTERM came."""


@dataclass(slots=True, kw_only=True)
class Layout:
    """State that a cluster keeps between two runs.

    Attributes:
        host: where clients connect.
        ports: of each broker, 1 to n: for clients, and for other brokers.
        zookeeper_port: of its own ZooKeeper; 0 if it has none.
        http_ports: of each broker at the latest start, for faults and the clock; 0 for none.
    """

    host: str = LOOPBACK
    ports: list[tuple[int, int]] = field(default_factory=list)
    zookeeper_port: int = 0
    http_ports: list[int] = field(default_factory=list)

    @classmethod
    def load(cls, data_dir: Path) -> "Layout":
        """Read it from a data directory; an empty one if that is new.

        Raises:
            ClickException: the file is damaged.
        """
        file = data_dir / LAYOUT_FILE
        try:
            stored = json.loads(file.read_text())
            return cls(
                host=str(stored["host"]),
                ports=[(int(client), int(peer)) for client, peer in stored["ports"]],
                zookeeper_port=int(stored["zookeeper_port"]),
            )
        except FileNotFoundError:
            return cls()
        except (ValueError, KeyError, TypeError):
            raise click.ClickException(
                f"{file} is damaged; remove it to choose new ports"
            ) from None

    def save(self, data_dir: Path) -> None:
        """Write it, in one step."""
        scratch = data_dir / f"{LAYOUT_FILE}.new"
        scratch.write_text(json.dumps(asdict(self)) + "\n")
        os.replace(scratch, data_dir / LAYOUT_FILE)

    def place(self, brokers: int | None, listen: tuple[str, int] | None) -> None:
        """Choose ports for brokers that have none yet, and for all where `listen` says so.

        Raises:
            ClickException: fewer brokers are wanted than there are.
        """
        count = len(self.ports) or DEFAULT_BROKERS if brokers is None else brokers
        if count < len(self.ports):
            raise click.ClickException(
                f"there are {len(self.ports)} brokers in this data directory; "
                "move their partitions away first, or use another --data-dir"
            )
        if listen is not None:
            self.host, first = listen
        elif self.ports:
            first = self.ports[0][0]
        else:
            first = DEFAULT_PORT
        moved = listen is not None or not self.ports
        for index in range(count):
            known = index < len(self.ports)
            port = self.ports[index][0] if known else 0
            if moved or not known:
                port = first + index if first else unused_port(self.host or "0.0.0.0")
            peer_port = self.ports[index][1] if known else unused_port()
            self.ports[index : index + 1] = [(port, peer_port)]
        if max(port for port, _ in self.ports) > 65_535:
            raise click.ClickException(f"there are not {count} ports from {first} on")


@click.command(
    epilog=examples(
        "kafkalite cluster",
        "kafkalite cluster --brokers 5 --data-dir /var/tmp/cluster --restart",
        "kafkalite cluster --listen 127.0.0.1:19092 --set num.partitions=3",
        "kafkalite cluster --zookeeper zk1:2181,zk2:2181,zk3:2181/kafka",
    )
)
@click.option(
    "--brokers",
    type=click.IntRange(1, 50),
    metavar="N",
    help="How many.  [default: 3, or as many as the data directory has]",
)
@click.option(
    "--data-dir",
    metavar="DIR",
    default=DEFAULT_DATA_DIR,
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where topics, logs and ports are kept; the next start goes on with them.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    callback=listen_address,
    help="Where the first broker accepts clients; the others take the ports that follow. Port 0 "
    "takes any free ones.  [default: 127.0.0.1:9092, or as before]",
)
@click.option(
    "--zookeeper",
    metavar="ADDRESS",
    help="Use this one, HOST:PORT[,HOST:PORT...][/PATH], and start none.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=pairs,
    help="A setting of all brokers by Kafka's name; may be repeated.",
)
@click.option("--restart", is_flag=True, help="Start what dies again.")
def cluster(
    brokers: int | None,
    data_dir: Path,
    listen: tuple[str, int] | None,
    zookeeper: str | None,
    settings: dict[str, str],
    restart: bool,
) -> None:
    """Run a replicated cluster on this machine until Ctrl-C or SIGTERM.

    A ZooKeeper and brokers 1 to N are started, each as a process of its own; everything is
    replicated three times, and min.insync.replicas is 2. When all brokers serve, one line is
    printed on standard output:

    kafkalite ready: bootstrap=127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094 zookeeper=... data=...

    Each broker has HTTP on loopback, at ports from 9080 on (`cluster.json` in the data directory
    names others): `kafkalite clock` and `kafkalite faults` take `--broker all` there.

    A process that dies is told on standard error, and the others go on. The ZooKeeper is the one
    among PySpark's jars: pip install '.[cluster]' in the checkout, or python3 start.py cluster.
    """
    ask_to_stop_by_signals()
    make_data_folder(data_dir)
    layout = Layout.load(data_dir)
    layout.place(brokers, listen)
    try:
        run(_made(layout, data_dir, zookeeper, settings), layout, restart=restart)
    except ProcessError as error:
        last = error.tail.splitlines()[-1:] if error.tail else []
        raise click.ClickException(": ".join([error.summary, *last])) from None
    except TimeoutError as error:
        raise click.ClickException(str(error).splitlines()[0]) from None
    except StopAsked:  # before anything was started
        return


def run(cluster: Cluster, layout: Layout, *, restart: bool) -> None:
    """Start a cluster, watch it until a signal asks to stop, and stop it in order."""
    try:
        try:
            cluster.start()
            _keep_ports(cluster, layout)
            print(_ready_line(cluster), flush=True)
            Watch(cluster, restart=restart).run()
        except StopAsked:
            stop_in_order(cluster)
    except StopAsked:
        _tell("asked twice to stop: ending everything at once")
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        cluster.close(at_once=True)


class Watch:
    """Tells of processes that die, and starts them again if asked to."""

    def __init__(
        self,
        cluster: "Cluster | ProcessGroup",
        *,
        restart: bool,
        tell: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parts: dict[str, BrokerProcess | ZooKeeper] = {
            f"broker {number}": broker for number, broker in cluster.brokers.items()
        }
        if cluster.zookeeper is not None:
            self._parts["ZooKeeper"] = cluster.zookeeper
        self._brokers = cluster.brokers
        self._restart = restart
        self._tell = tell or _tell
        self._clock = clock
        self._dead: set[str] = set()
        self._starting: set[str] = set()
        self._next_start: dict[str, float] = {}

    def run(self) -> NoReturn:
        """Look until something is raised.

        Raises:
            StopAsked: by a signal.
            ClickException: no broker is left.
        """
        while True:
            self.look()
            time.sleep(LOOK_S)

    def look(self) -> None:
        """Look at each process once."""
        for name, part in self._parts.items():
            if not part.is_running:
                self._on_dead(name, part)
            elif name in self._starting and _serves(part):
                self._starting.discard(name)
                self._tell(f"{name} serves again")
        if not self._restart and not any(one.is_running for one in self._brokers.values()):
            raise click.ClickException("no broker is left")

    def _on_dead(self, name: str, part: BrokerProcess | ZooKeeper) -> None:
        if name not in self._dead:
            self._dead.add(name)
            self._starting.discard(name)
            how = _ending(part.process.poll() or 0)
            self._tell(f"{name} {how}; the others go on; its log: {part.log_file}")
        now = self._clock()
        if self._restart and now >= self._next_start.get(name, 0):
            self._next_start[name] = now + RESTART_PAUSE_S
            part.launch()
            self._dead.discard(name)
            self._starting.add(name)


def _made(
    layout: Layout, data_dir: Path, zookeeper: str | None, settings: Mapping[str, str]
) -> Cluster:
    made = Cluster(
        len(layout.ports),
        config={**SETTINGS, **_kept_by_two(len(layout.ports)), **settings},
        data_dir=data_dir,
        zookeeper=zookeeper,
        links=False,
        host=layout.host,
        ports=dict(enumerate(layout.ports, start=1)),
        durable=True,
        control=not {"kafkalite.http.listener", "kafkalite.profile"} & set(settings),
    )
    _choose_http_ports(made, layout)
    if made.zookeeper is not None:
        made.zookeeper.port = layout.zookeeper_port
    return made


def _choose_http_ports(made: Cluster, layout: Layout) -> None:
    """Have HTTP where a lone broker has it, if clients come in where they do at a lone broker."""
    if layout.ports[0][0] == DEFAULT_PORT:
        free = iter(port for port in range(HTTP_PORT, HTTP_PORT + HTTP_PORTS) if _is_free(port))
        for broker in made.brokers.values():
            if broker.http_port is not None:
                broker.http_port = next(free, broker.http_port)
    layout.http_ports = [broker.http_port or 0 for broker in made.brokers.values()]


def _is_free(port: int) -> bool:
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True


def _kept_by_two(brokers: int) -> dict[str, str]:
    """Return the setting by which what `acks=all` acknowledged outlives any one broker."""
    return {"min.insync.replicas": str(min(2, brokers))}


def _keep_ports(cluster: Cluster, layout: Layout) -> None:
    if cluster.zookeeper is not None:
        layout.zookeeper_port = cluster.zookeeper.port
    layout.save(cluster.data_dir)


def _ready_line(cluster: Cluster) -> str:
    where = f"bootstrap={cluster.bootstrap} zookeeper={cluster.zookeeper_address}"
    return f"kafkalite ready: {where} data={cluster.data_dir}"


def stop_in_order(cluster: "Cluster | ProcessGroup") -> None:
    """Stop brokers one after another, the controller last: it moves what the others led."""
    running = [number for number, broker in cluster.brokers.items() if broker.is_running]
    try:
        controller = cluster.controller()
    except ClientError:
        controller = -1
    for number in sorted(running, key=lambda number: number == controller):
        code = cluster.stop(number)
        if code:
            _tell(f"broker {number} {_ending(code)} when it was stopped")
    if cluster.zookeeper is not None:
        cluster.zookeeper.stop()


def _serves(part: BrokerProcess | ZooKeeper) -> bool:
    return part.is_ready if isinstance(part, BrokerProcess) else part.is_serving()


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def ask_to_stop_by_signals() -> None:
    """Have SIGTERM and Ctrl-C raise `StopAsked`."""
    signal.signal(signal.SIGTERM, _ask_to_stop)
    signal.signal(signal.SIGINT, _ask_to_stop)


@contextlib.contextmanager
def told_to_stop() -> Iterator[None]:
    """End what is inside without a word when a signal asks to."""
    with contextlib.suppress(StopAsked):
        yield


def _ask_to_stop(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise StopAsked


def _tell(text: str) -> None:
    click.echo(f"kafkalite: {text}", err=True)
