"""Users, encryption and rules of a cluster in a test."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kafkalite.client.cluster import Client
from kafkalite.testing.secured import Secured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafkalite.client.login import Credentials
    from kafkalite.security.acls import Rule
    from kafkalite.testing.broker_process import BrokerProcess
    from kafkalite.testing.cluster_security import ClusterSecurity
    from kafkalite.testing.zookeeper import ZooKeeper

LOOK_TIMEOUT_MS: Final = 2_000
"""For one question out of many: a broker that hangs is asked again, or another one is."""


class SecuredCluster(Secured):
    """The part of `kafkalite.testing.Cluster` that is about who may come in and do what."""

    security: "ClusterSecurity | None" = None
    if TYPE_CHECKING:  # what the rest of a cluster has

        def client(self, timeout_ms: int = ...) -> Client: ...  # noqa: D102
        def wait_until(self, condition: Callable[[], bool], missing: str) -> None: ...  # noqa: D102
        def _addresses(self) -> list[str]: ...

        brokers: dict[int, BrokerProcess]
        zookeeper: ZooKeeper | None

    def add_user(self, name: str, password: str) -> None:
        """Let a user log in, or give it another password; return when it gets in everywhere."""
        self._secured().users[name] = password
        self._let_in([name])

    def revoke(self, name: str) -> None:
        """Take a user's password away; connections that it has stay, as with any broker."""
        from kafkalite.client.users import list_users, remove_user

        with self.client() as client:
            remove_user(client, name)
        self._wait_everywhere(lambda one: name not in list_users(one), f"user {name} is left")

    def allow(self, rules: "Iterable[Rule | Iterable[Rule]]") -> None:
        """Have more rules, on all brokers when this returns; `remove_rules` takes them back."""
        from kafkalite.client.acls import create_rules, list_rules
        from kafkalite.testing.security import flat

        wanted = set(flat(rules))
        with self.client() as client:
            create_rules(client, wanted)
        self._wait_everywhere(lambda one: wanted <= set(list_rules(one)), "rules are missing")

    def remove_rules(self, rules: "Iterable[Rule | Iterable[Rule]]") -> None:
        """Have these rules no more."""
        from kafkalite.client.acls import delete_rules, list_rules
        from kafkalite.testing.security import flat

        unwanted = set(flat(rules))
        with self.client() as client:
            delete_rules(client, unwanted)
        self._wait_everywhere(lambda one: not unwanted & set(list_rules(one)), "rules are left")

    def _set_up(self) -> None:
        """Make the users and rules that were asked for, once the brokers run."""
        if self.security is not None:
            self._let_in([*self.security.users])
            if self.security.rules:
                self.allow(self.security.rules)

    def _let_in(self, names: "Iterable[str]") -> None:
        from kafkalite.client.login import Credentials
        from kafkalite.client.users import set_password

        security, shown = self._secured(), None
        with self.client() as client:
            for name in names:
                set_password(client, name, security.users[name])
                shown = Credentials(security.client_settings("", name, "SCRAM-SHA-512"))
        # Who got the last one knows all before it, too.
        if shown is not None:
            self._wait_everywhere(
                lambda one: bool(one.fetch_metadata([]).brokers), "users are missing", shown
            )

    def _secured(self) -> "ClusterSecurity":
        if self.security is None:
            raise RuntimeError("this cluster was made without users")
        return self.security

    def _secure(self, host: str, **wishes: Any) -> "ClusterSecurity":
        from kafkalite.testing.cluster_security import ClusterSecurity

        security = ClusterSecurity(hosts=[host], **wishes)
        if self.zookeeper is not None:
            self.zookeeper.tls = security.certificates
            self.zookeeper.users = security.zookeeper_users
        return security

    def _name_of_owner(self, port: int) -> str | None:
        """Return the broker that has a connection from a port: a link cannot read what is in it."""
        pids = {number: each.pid for number, each in self.brokers.items() if each.is_running}
        number = owner_of(port, pids)
        return None if number is None else str(number)

    def _client(
        self, bootstrap: str, timeout_ms: int, credentials: "Credentials | None" = None
    ) -> Client:
        if credentials is None and self.security is not None:
            credentials = self.security.credentials
        name = "kafkalite-cluster"
        return Client(bootstrap, client_id=name, timeout_ms=timeout_ms, credentials=credentials)

    def _wait_everywhere(
        self,
        condition: "Callable[[Client], bool]",
        missing: str,
        credentials: "Credentials | None" = None,
    ) -> None:
        """Return when a condition holds for each broker that can be reached."""

        def holds() -> bool:
            for address in self._addresses():
                with self._client(address, LOOK_TIMEOUT_MS, credentials) as client:
                    if not condition(client):
                        return False
            return True

        self.wait_until(holds, missing)


def owner_of(port: int, pids: Mapping[int, int]) -> int | None:
    """Return whose process has a connection from this port of loopback; None if none has.

    For Linux, whose kernel lists both; elsewhere it is never known.

    Args:
        port: of the connection's own end.
        pids: process IDs, by the number to return.
    """
    inode = _inode_of(port)
    for number, pid in pids.items():
        folder = Path(f"/proc/{pid}/fd")
        try:
            names = list(folder.iterdir()) if inode is not None else []
        except OSError:
            continue  # it has ended
        for name in names:
            try:
                if os.readlink(name) == f"socket:[{inode}]":
                    return number
            except OSError:
                continue
    return None


def _inode_of(port: int) -> str | None:
    try:
        lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return None
    for line in lines:
        values = line.split()
        if int(values[1].rpartition(":")[2], 16) == port and values[3] == "01":
            return values[9]
    return None
