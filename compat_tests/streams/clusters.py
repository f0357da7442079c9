"""A cluster in the place of the one broker: its brokers are killed by what they do."""

from __future__ import annotations

import contextlib
import random
from enum import Enum
from typing import TYPE_CHECKING

from compat_tests.chain.proxy import CuttingProxy, ProxyGroup
from compat_tests.streams.brokers import BROKER_SETTINGS
from kafkalite.client.errors import check
from kafkalite.testing import Cluster
from kafkalite.testing.broker_process import BROKER_LISTENER
from kafkalite.testing.processes import unused_port
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafkalite.wire.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

#: Everything on all three brokers, and acknowledged by two of them.
CLUSTER_SETTINGS = {**BROKER_SETTINGS, "min.insync.replicas": "2"}
BROKERS = 3
GROUP_KEY, TRANSACTION_KEY = 0, 1
"""FindCoordinator's key types."""

FAILOVER_S = 60


class Role(Enum):
    """What a broker is for an application."""

    LEADER = "leader of a partition"
    GROUP_COORDINATOR = "group coordinator"
    TRANSACTION_COORDINATOR = "transaction coordinator"


class RestartableCluster:
    """A `Cluster` that serves where a `RestartableBroker` does: one broker at a time is away.

    Args:
        cluster: it runs.
    """

    may_be_killed = True
    #: Back before it is missed, or only when its session is over.
    away_s_max = 3.0

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.bootstrap = cluster.bootstrap
        #: Of the first broker, which has no meaning of its own.
        self.port = cluster.brokers[1].port

    def start(self) -> None:
        """Start who is away, and return when all replicas are in sync: one more may then go."""
        for number, broker in self.cluster.brokers.items():
            if not broker.is_running:
                self.cluster.restart(number)
        self.cluster.wait_in_sync(timeout_s=FAILOVER_S)

    def kill(self) -> None:
        """End any one broker as a crash would."""
        self.cluster.kill(random.choice(self._running()))

    def kill_all(self) -> None:
        """End all brokers as a power cut would."""
        for number in self._running():
            self.cluster.kill(number)

    def stop(self) -> None:
        """Let any one broker hand over what it leads, and end."""
        number = random.choice(self._running())
        code = self.cluster.stop(number)
        assert code == 0, f"broker {number} stopped with {code}\n{self.cluster.log_tails()}"

    def kill_holder(self, role: Role, application_id: str, topic: str) -> int:
        """Kill the broker that has a role for an application, and wait until another one has it.

        Args:
            role: the role.
            application_id: its group, and the beginning of its transactional ids.
            topic: of which the first partition's leader is meant.

        Returns:
            The id of the broker that was killed.
        """
        find = self._finder(role, application_id, topic)
        number = -1

        def found() -> bool:
            nonlocal number
            number = find()
            return number in self._running()

        self.cluster.wait_until(found, f"nobody is {role.value}", FAILOVER_S)
        self.cluster.kill(number)
        self.cluster.wait_until(
            lambda: find() in self._running(), f"nobody became {role.value}", FAILOVER_S
        )
        return number

    def _finder(self, role: Role, application_id: str, topic: str) -> Callable[[], int]:
        if role is Role.LEADER:
            return lambda: self.cluster.leader_of(topic, 0)
        if role is Role.GROUP_COORDINATOR:
            return lambda: self._coordinator(application_id, GROUP_KEY)
        # Always the same one: they may have different coordinators.
        transactional_id = min(self._transactional_ids(application_id))
        return lambda: self._coordinator(transactional_id, TRANSACTION_KEY)

    def _coordinator(self, key: str, key_type: int) -> int:
        request = FindCoordinatorRequest(key=key, key_type=key_type)
        with self.cluster.client() as client:
            found = client.any_broker().request(FIND_COORDINATOR, request)
        check(found.error_code, found.error_message)
        return int(found.node_id)

    def _transactional_ids(self, application_id: str) -> list[str]:
        with self.cluster.client() as client:
            return [
                state.transactional_id
                for broker in client.all_brokers()
                for state in broker.request(
                    LIST_TRANSACTIONS, ListTransactionsRequest()
                ).transaction_states
                if state.transactional_id.startswith(application_id)
            ]

    def _running(self) -> list[int]:
        return [number for number, broker in self.cluster.brokers.items() if broker.is_running]


@contextlib.contextmanager
def restartable_cluster(
    folder: Path, *, proxies: Sequence[CuttingProxy] = ()
) -> Iterator[RestartableCluster]:
    """Run three brokers of kafkalite and their ZooKeeper; the data stay in the folder.

    Args:
        folder: where the data are put.
        proxies: one for each broker; clients are told their ports if there are any.
    """
    ports = {number: (unused_port(), unused_port()) for number in range(1, BROKERS + 1)}
    advertised: dict[int, dict[str, str]] = {}
    for proxy, (number, (port, peer_port)) in zip(proxies, ports.items(), strict=bool(proxies)):
        proxy.upstream_port = port
        clients = f"PLAINTEXT://127.0.0.1:{proxy.port}"
        peers = f"{BROKER_LISTENER}://127.0.0.1:{peer_port}"
        advertised[number] = {"advertised.listeners": f"{clients},{peers}"}
    cluster = Cluster(
        BROKERS,
        config=CLUSTER_SETTINGS,
        broker_config=advertised,
        data_dir=folder / "cluster",
        ports=ports if proxies else None,
        links=False,
    )
    with contextlib.ExitStack() as stack:
        stack.callback(cluster.close, at_once=True)
        cluster.start()
        try:
            yield RestartableCluster(cluster)
        except BaseException as error:
            error.add_note(cluster.log_tails())
            raise


@contextlib.contextmanager
def proxied_cluster(folder: Path) -> Iterator[tuple[RestartableCluster, ProxyGroup]]:
    """Run a `restartable_cluster` whose clients' connections can be cut."""
    with contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(CuttingProxy()) for _ in range(BROKERS)]
        cluster = stack.enter_context(restartable_cluster(folder, proxies=proxies))
        yield cluster, ProxyGroup(proxies)
