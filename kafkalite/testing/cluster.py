"""A cluster of broker processes with a ZooKeeper, for tests that break it.

    with Cluster(3) as cluster:
        cluster.create_topic("orders", partitions=3)
        leader = cluster.leader_of("orders", 0)
        cluster.kill(leader)
        cluster.wait_leader("orders", 0, other_than=leader)

Everything is a process of its own on loopback, and ends with the test's process, however that ends.
"""

import contextlib
import secrets
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from kafkalite.client import admin
from kafkalite.client.cluster import Client
from kafkalite.client.errors import ClientError
from kafkalite.client.leadership import elect_leader, reassign
from kafkalite.testing.broker_process import START_TIMEOUT_S, BrokerProcess
from kafkalite.testing.cluster_control import cluster_control
from kafkalite.testing.cluster_http import REGISTRY_SETTINGS, ClusterHttp
from kafkalite.testing.cluster_settings import TEST_SETTINGS, replication_settings
from kafkalite.testing.namespaces import Namespaces
from kafkalite.testing.processes import ProcessError, unused_port, wait_until_true
from kafkalite.testing.proxy import Links
from kafkalite.testing.secured_cluster import LOOK_TIMEOUT_MS, SecuredCluster
from kafkalite.testing.setting_text import setting_text
from kafkalite.testing.zookeeper import ZooKeeper
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.metadata import MetadataResponse, MetadataResponsePartition

if TYPE_CHECKING:
    from kafkalite.security.acls import Rule
    from kafkalite.testing.report import Report

Result = TypeVar("Result")

DEFAULT_TIMEOUT_S: Final = 30.0
REQUEST_TIMEOUT_MS: Final = 10_000

BIND_ATTEMPTS: Final = 5
LOG_LINES: Final = 15
ZOOKEEPER: Final = "zookeeper"
"""Its name among the links; that of a broker is its id."""


class Cluster(SecuredCluster, ClusterHttp):
    """Brokers 1 to n with a ZooKeeper of their own; all methods may be called from any thread.

    Args:
        brokers: how many.
        config: settings of all brokers, by Kafka's names, such as {"min.insync.replicas": 2}.
        broker_config: settings of single brokers, by their ids.
        data_dir: where everything is kept; a temporary directory, removed at the end, if None.
        zookeeper: `HOST:PORT[,HOST:PORT...][/PATH]` of one that runs; one of its own if None.
        links: put proxies between the brokers, and before ZooKeeper, which `isolate` needs.
            Replication is faster without.
        namespaces: cut in the kernel instead (see `testing.namespaces`); Linux, as root. Nothing
            can be delayed then.
        host: address to listen on for clients.
        ports: of each broker, the one for clients and the one for brokers; any free ones if None.
        durable: let ZooKeeper force each write to disk.
        control: give each broker an HTTP port, by which its faults and its clock are set; with
            `namespaces` it asks for a token, which is in its URL.
        tls: encrypt everything: clients, brokers among themselves, ZooKeeper.
        users: passwords by name, for clients; brokers then log in at each other and at ZooKeeper.
        acls: rules, as `kafkalite.security.shorthand.allow` and `deny` make them.
        schema_registry: also serve one at each broker, at `schema_registry_urls`; with `control`.

    Attributes:
        faults: rules that make all brokers fail requests, or with ids of brokers these.
        clock: the time that all brokers go by.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        config: Mapping[str, Any] | None = None,
        broker_config: Mapping[int, Mapping[str, Any]] | None = None,
        data_dir: str | Path | None = None,
        zookeeper: str | None = None,
        links: bool = True,
        namespaces: bool = False,
        host: str = "127.0.0.1",
        ports: Mapping[int, tuple[int, int]] | None = None,
        durable: bool = False,
        control: bool = True,
        tls: bool = False,
        users: Mapping[str, str] | None = None,
        acls: "Iterable[Rule | Iterable[Rule]] | None" = None,
        schema_registry: bool = False,
    ) -> None:
        if brokers < 1:
            raise ValueError("a cluster has at least one broker")
        if namespaces and zookeeper is not None:
            raise ValueError("in namespaces, only a ZooKeeper of its own can be reached")
        self._clean_up = contextlib.ExitStack()
        self._keeps_data = data_dir is not None
        if data_dir is None:
            scratch = tempfile.TemporaryDirectory(
                prefix="kafkalite-cluster-", ignore_cleanup_errors=True
            )
            data_dir = self._clean_up.enter_context(scratch)
        self.data_dir = Path(data_dir).absolute()
        self.data_dir.mkdir(parents=True, exist_ok=True)
        numbers = range(1, brokers + 1)
        self.links = Links(self._name_of_owner) if links and not namespaces else None
        self.namespaces = Namespaces([*map(str, numbers), ZOOKEEPER]) if namespaces else None
        self.zookeeper: ZooKeeper | None = None
        if zookeeper is None:
            port = unused_port() if namespaces else 0
            self.zookeeper = ZooKeeper(self.data_dir / "zookeeper", port=port, durable=durable)
        if tls or users is not None or acls is not None:
            self.security = self._secure(host, tls=tls, users=users, acls=acls)
        self._zookeeper_address = zookeeper
        self._isolated: set[int] = set()
        settings = {**TEST_SETTINGS, **replication_settings(brokers)}
        if namespaces:
            settings["kafkalite.http.token"] = secrets.token_urlsafe(16)
        if self.security is not None:
            settings |= self.security.cluster_settings(self.zookeeper)
        settings |= _texts(config)
        settings |= REGISTRY_SETTINGS if schema_registry else {}
        self._chooses_ports = ports is None
        chosen = ports or {number: (unused_port(), unused_port()) for number in numbers}
        self.brokers: dict[int, BrokerProcess] = {
            number: BrokerProcess(
                number,
                directory=self.data_dir,
                host=host,
                port=chosen[number][0],
                peer_port=chosen[number][1],
                http_port=unused_port() if control else None,
                settings={**settings, **_texts((broker_config or {}).get(number))},
                protocol="PLAINTEXT" if self.security is None else self.security.listener,
            )
            for number in numbers
        }
        self.faults, self.clock = cluster_control(self.http_urls)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<kafkalite.testing.Cluster {list(self.brokers.values())}>"

    # --- Life ------------------------------------------------------------------------------------

    def start(self, timeout_s: float = START_TIMEOUT_S) -> Self:
        """Start everything at once; return when all brokers know each other and serve.

        Raises:
            ZooKeeperError, ProcessError, TimeoutError: with what the logs say.
            NamespaceError: the system gives none.
        """
        try:
            if self.namespaces is not None:
                self._enter(self.namespaces.start())
            if self.zookeeper is not None:
                self.zookeeper.start(timeout_s)
            if self.links is not None:
                self.links.start()
            for broker in self.brokers.values():
                self._connect_links(broker)
                broker.launch()
            for broker in self.brokers.values():
                self._wait_started(broker, timeout_s)
            self.wait_members(timeout_s=timeout_s)
            self._set_up()
        except BaseException:
            self.close()
            raise
        return self

    def close(self, *, at_once: bool = False) -> None:
        """End everything: cleanly where the data are kept, at once where nobody will see them."""
        if self._keeps_data and not at_once:
            for broker in self.brokers.values():
                if broker.is_running:
                    broker.stop()
            if self.zookeeper is not None:
                self.zookeeper.stop()
        for broker in self.brokers.values():
            if broker.is_running:
                broker.kill()
        if self.zookeeper is not None:
            self.zookeeper.close()
        if self.links is not None:
            self.links.stop()
        if self.namespaces is not None:
            self.namespaces.stop()
        if self.security is not None:
            self.security.close()
        self._clean_up.close()

    @property
    def session_timeout_s(self) -> float:
        """How long a broker is silent before ZooKeeper, and so the controller, gives it up."""
        broker = next(iter(self.brokers.values()))
        return int(broker.settings["zookeeper.session.timeout.ms"]) / 1000

    @property
    def bootstrap(self) -> str:
        """`HOST:PORT,HOST:PORT,...` of all brokers, for a client's `bootstrap.servers`."""
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    @property
    def zookeeper_address(self) -> str:
        """Address of its ZooKeeper, without any proxy."""
        if self.zookeeper is not None:
            return self.zookeeper.connect
        assert self._zookeeper_address is not None
        return self._zookeeper_address

    def kill(self, number: int) -> None:
        """End a broker by SIGKILL."""
        self.brokers[number].kill()

    def stop(self, number: int) -> int:
        """Stop a broker by SIGTERM: it hands over what it leads; return its exit code."""
        return self.brokers[number].stop()

    def pause(self, number: int) -> None:
        """Stop a broker by SIGSTOP: its connections stay, and nothing is answered."""
        self.brokers[number].pause()

    def resume(self, number: int) -> None:
        """Let a broker go on after `pause`."""
        self.brokers[number].resume()

    def restart(self, number: int, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start a broker that was killed or stopped; stop it first, cleanly, if it runs.

        Its address and data are what they were. When this returns, it serves clients.
        """
        broker = self.brokers[number]
        if broker.is_running:
            broker.stop()
        broker.launch()
        broker.wait_ready(timeout_s)
        self.faults.on_restart(number)

    # --- The network -----------------------------------------------------------------------------

    def isolate(
        self,
        number: int,
        *,
        peers: Iterable[int] | None = None,
        zookeeper: bool = True,
        inbound: bool = True,
        outbound: bool = True,
    ) -> None:
        """Cut a broker off from others: what they send is neither delivered nor refused.

        Clients still reach it, as they may in a partitioned network.

        Args:
            number: its id.
            peers: the brokers that it is cut off from; all others if None.
            zookeeper: whether it is cut off from ZooKeeper too.
            inbound: cut what comes to it.
            outbound: cut what it sends.
        """
        network = self._network()
        others = [str(n) for n in (self.brokers if peers is None else peers) if n != number]
        for other in [*others, ZOOKEEPER] if zookeeper else others:
            if outbound:
                network.cut(str(number), other, both_ways=False)
            if inbound:
                network.cut(other, str(number), both_ways=False)
        self._isolated.add(number)

    def cut(self, source: int, destination: int, *, both_ways: bool = True) -> None:
        """Cut one broker off from another one, or only its way there."""
        self._network().cut(str(source), str(destination), both_ways=both_ways)

    def delay(
        self, source: int, destination: int, delay_s: float, *, both_ways: bool = True
    ) -> None:
        """Hold back what one broker sends to another one, and its answers, for a time."""
        self._need_links().delay(str(source), str(destination), delay_s, both_ways=both_ways)

    def disconnect(self, one: int, other: int) -> int:
        """Close the connections between two brokers; return how many there were."""
        return self._network().disconnect(str(one), str(other))

    def heal(self, number: int | None = None) -> None:
        """End cuts and delays of a broker, or of all."""
        self._network().heal(None if number is None else str(number))
        self._isolated -= {number} if number is not None else set(self.brokers)

    def expire_session(self, number: int) -> bool:
        """Let a broker's ZooKeeper session expire; return whether it had one."""
        if self.zookeeper is None:
            raise RuntimeError("this cluster's ZooKeeper belongs to somebody else")
        path = f"/brokers/ids/{number}"
        return any(
            path in paths and bool(self.zookeeper.expire_sessions(path))
            for paths in self.zookeeper.sessions().values()
        )

    # --- Questions and orders --------------------------------------------------------------------

    def client(self, timeout_ms: int = REQUEST_TIMEOUT_MS) -> Client:
        """Return a client whose first choice are brokers that run and are not cut off."""
        return self._client(",".join(self._addresses()), timeout_ms)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replication_factor: int = admin.BROKER_DEFAULT,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Create a topic; return when all brokers know it and each partition has a leader.

        Raises:
            KafkaError: TOPIC_ALREADY_EXISTS, INVALID_REPLICATION_FACTOR...
        """
        with self.client() as client:
            admin.create_topic(
                client,
                name,
                partitions=partitions,
                replication_factor=replication_factor,
                configs=_texts(config),
            )
        self.wait_in_sync(name)

    def metadata(self, topics: Iterable[str] = (), *, of: int | None = None) -> MetadataResponse:
        """Return what a broker tells clients; any reachable one if `of` is None."""
        asked = self._reachable() if of is None else [self.brokers[of]]
        failure: Exception | None = None
        for broker in asked:
            try:
                with self._client(broker.bootstrap, LOOK_TIMEOUT_MS) as client:
                    return client.fetch_metadata(list(topics))
            except (ClientError, KafkaError) as error:
                failure = error
        raise failure or ClientError("no broker is running")

    def partition(self, topic: str, partition: int = 0) -> MetadataResponsePartition:
        """Return leader, replicas and ISR of a partition, as clients are told.

        Raises:
            LookupError: there is none.
        """
        for found in self.metadata([topic]).topics[0].partitions:
            if found.partition_index == partition:
                return found
        raise LookupError(f"there is no partition {topic}-{partition}")

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """Return the id of the leader, -1 if there is none."""
        return int(self.partition(topic, partition).leader_id)

    def controller(self) -> int:
        """Return the id of the controller, -1 if there is none."""
        return int(self.metadata().controller_id)

    def move_leader(
        self, topic: str, partition: int, to: int, *, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        """Make a replica the leader, and the preferred one; return when clients are told so.

        Raises:
            ValueError: it has no replica of this partition.
            TimeoutError: it does not get in sync.
        """
        replicas = list(self.partition(topic, partition).replica_nodes)
        if to not in replicas:
            raise ValueError(f"broker {to} has no replica of {topic}-{partition}: {replicas}")
        place = TopicPartition(topic, partition)
        wanted = [to, *(replica for replica in replicas if replica != to)]
        self.wait_until(
            lambda: to in self.partition(topic, partition).isr_nodes,
            f"broker {to} is not in sync for {place}",
            timeout_s=timeout_s,
        )
        with self.client() as client:
            if wanted != replicas:
                reassign(client, place, wanted)
                self.wait_until(
                    lambda: list(self.partition(topic, partition).replica_nodes) == wanted,
                    f"{place} did not get the replicas {wanted}",
                    timeout_s=timeout_s,
                )
            elect_leader(client, place)
        self.wait_leader(topic, partition, is_one_of=[to], timeout_s=timeout_s)

    # --- Waiting ---------------------------------------------------------------------------------

    def wait_members(self, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Return when each running broker knows all running ones, and a controller among them.

        Raises:
            TimeoutError: with the ends of the logs; so do all that follow.
        """
        running = {broker.broker_id: broker for broker in self._reachable()}

        def agree() -> bool:
            for number in running:
                seen = self.metadata(of=number)
                known = {broker.node_id for broker in seen.brokers}
                if known != set(running) or seen.controller_id not in running:
                    return False
            return True

        self.wait_until(agree, f"brokers {sorted(running)} do not all know each other", timeout_s)

    def wait_leader(
        self,
        topic: str,
        partition: int = 0,
        *,
        other_than: int = -1,
        is_one_of: Iterable[int] | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> int:
        """Return the leader once there is one, other than a certain broker, or out of some."""
        allowed = set(self.brokers if is_one_of is None else is_one_of) - {other_than, -1}
        found = -1

        def led() -> bool:
            nonlocal found
            found = self.leader_of(topic, partition)
            return found in allowed

        self.wait_until(led, f"{topic}-{partition} has no leader in {sorted(allowed)}", timeout_s)
        return found

    def wait_in_sync(self, *topics: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Return when all replicas of topics are in sync, and every running broker tells so.

        Args:
            topics: their names; all topics if there are none.
            timeout_s: the most that it may take.
        """

        def in_sync() -> bool:
            return all(
                found.leader_id >= 0 and set(found.isr_nodes) == set(found.replica_nodes)
                for broker in self._reachable()
                for found in self._partitions(topics, broker.broker_id)
            )

        self.wait_until(in_sync, f"{', '.join(topics) or 'replicas'} not all in sync", timeout_s)

    def wait_until(
        self, condition: Callable[[], bool], missing: str, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        """Return when a condition holds; that brokers do not answer meanwhile is no error.

        Raises:
            TimeoutError: with `missing`, the last error, and the ends of all logs.
        """
        failure = ""

        def holds() -> bool:
            nonlocal failure
            try:
                found = condition()
            except (ClientError, KafkaError, LookupError) as error:
                failure = f" ({error})"
                return False
            failure = ""
            return found

        if not wait_until_true(holds, timeout_s):
            raise TimeoutError(f"{missing} after {timeout_s:g} s{failure}\n{self.log_tails()}")

    def report(self, since_ms: int = 0) -> "Report":
        """Return what was asked, what there is, the logs, and in words what may be wrong.

        Args:
            since_ms: wall clock; requests before it are left out.
        """
        from kafkalite.testing.report_facts import cluster_report

        return cluster_report(self, since_ms)

    def log_tails(self, lines: int = LOG_LINES) -> str:
        """Return the last lines of each process's log."""
        tails = []
        for number, broker in self.brokers.items():
            with contextlib.suppress(RuntimeError):
                code = broker.exit_code
                state = "running" if code is None else f"ended with {code}"
                tails.append(f"--- broker {number}, {state}\n{broker.process.tail(lines)}")
        if self.zookeeper is not None:
            with contextlib.suppress(RuntimeError):
                tails.append(f"--- ZooKeeper\n{self.zookeeper.process.tail(lines)}")
        return "\n".join(tails)

    # --- Inside ----------------------------------------------------------------------------------

    def _addresses(self) -> list[str]:
        return [broker.bootstrap for broker in self._reachable()]

    def _reachable(self) -> list[BrokerProcess]:
        """Return brokers that can answer, in the order in which to ask them."""
        return [
            broker
            for number, broker in self.brokers.items()
            if broker.is_running and not broker.is_paused and number not in self._isolated
        ]

    def _partitions(self, topics: Iterable[str], number: int) -> list[MetadataResponsePartition]:
        broker = self.brokers[number]
        with self._client(broker.bootstrap, LOOK_TIMEOUT_MS) as client:
            answer = client.fetch_metadata(list(topics) or None)
        missing = [topic.name for topic in answer.topics if topic.error_code]
        if missing:
            raise LookupError(f"broker {number} does not know {missing}")
        return [found for topic in answer.topics for found in topic.partitions]

    def http_urls(self) -> dict[int, str]:
        """Return the HTTP addresses of brokers that can answer now."""
        return {
            number: broker.http_url
            for number, broker in self.brokers.items()
            if broker.http_url is not None and broker.is_running and not broker.is_paused
        }

    def _connect_links(self, broker: BrokerProcess) -> None:
        """Put proxies before a broker and before its ZooKeeper, and tell it their addresses."""
        urls = {number: each.http_url for number, each in self.brokers.items()}
        if broker.http_url is not None:
            broker.settings["kafkalite.control.peers"] = ",".join(
                f"{number}={url}" for number, url in urls.items()
            )
        address = self.zookeeper_address
        if self.links is not None and broker.peer_port is not None:
            name = str(broker.broker_id)
            port = self.links.listen(name, "127.0.0.1", broker.peer_port)
            broker.advertised_peer_port = port
            address = self._linked_zookeeper(self.links, address, name)
        broker.settings["zookeeper.connect"] = address

    def _linked_zookeeper(self, links: Links, address: str, source: str) -> str:
        servers, slash, path = address.partition("/")
        proxies = []
        for server in servers.split(","):
            host, _, port = server.strip().rpartition(":")
            number = links.listen(ZOOKEEPER, host, int(port), source=source)
            proxies.append(f"127.0.0.1:{number}")
        return ",".join(proxies) + slash + path

    def _wait_started(self, broker: BrokerProcess, timeout_s: float) -> None:
        """Wait for a broker's first start; give it other ports if somebody took its own."""
        for attempt in range(BIND_ATTEMPTS):
            try:
                broker.wait_ready(timeout_s)
            except ProcessError as error:
                taken = self._chooses_ports and "cannot listen on" in str(error)
                if not taken or attempt + 1 == BIND_ATTEMPTS:
                    raise
                broker.port, broker.peer_port = unused_port(), unused_port()
                broker.advertised_peer_port = broker.peer_port
                self._connect_links(broker)
                broker.launch()
            else:
                return

    def _enter(self, namespaces: Namespaces) -> None:
        """Have everything run in its namespace."""
        if self.zookeeper is not None:
            self.zookeeper.host = namespaces.address(ZOOKEEPER)
            self.zookeeper.prefix = namespaces.prefix(ZOOKEEPER)
        for number, broker in self.brokers.items():
            broker.host = broker.peer_host = namespaces.address(str(number))
            broker.http_host = broker.host
            broker.prefix = namespaces.prefix(str(number))
        if self.security is not None and self.security.certificates is not None:
            names = [*map(str, self.brokers), ZOOKEEPER]
            self.security.certificates.also_for(*map(namespaces.address, names))

    def _network(self) -> Links | Namespaces:
        return self.namespaces or self._need_links()

    def _need_links(self) -> Links:
        if self.links is None:
            raise RuntimeError("this cluster was made without links, or with namespaces")
        return self.links


def _texts(settings: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: setting_text(value) for name, value in (settings or {}).items()}
