"""TLS, users and rules for a whole cluster in a test: clients, brokers and ZooKeeper.

There is no listener without: each asks for what the cluster was made with, as do the brokers among
themselves. With users its ZooKeeper wants a login, too, and with TLS it takes nothing unencrypted.
"""

import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kafkalite.client.login import Credentials
from kafkalite.security.acls import Rule
from kafkalite.testing.broker_process import BROKER_LISTENER
from kafkalite.testing.security import SUPER_USER, BrokerSecurity
from kafkalite.testing.zookeeper import login_module

if TYPE_CHECKING:
    from kafkalite.testing.zookeeper import ZooKeeper

BROKER: Final = "broker"
"""Whom brokers log in as, and whom their certificate is for."""

ZOOKEEPER_USER: Final = "kafka"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


class ClusterSecurity(BrokerSecurity):
    """Security of the processes of a cluster, besides settings; arguments as for `Broker`.

    Attributes:
        zookeeper_users: who may log in at ZooKeeper; nobody has to if there are none.
        credentials: by which the test's own questions are asked, as a super user.
    """

    def __init__(
        self,
        *,
        tls: bool,
        users: Mapping[str, str] | None,
        acls: Iterable[Rule | Iterable[Rule]] | None,
        hosts: Iterable[str],
    ) -> None:
        admin = {SUPER_USER: secrets.token_urlsafe(12)} if users is not None else {}
        # The first user is whom settings are for that name nobody.
        everybody = {**(users or {}), **admin, **(users or {})}
        super().__init__(tls=tls, users=everybody, acls=acls, hosts=hosts)
        self.zookeeper_users: dict[str, str] = {}
        self._broker_password = secrets.token_urlsafe(12)
        if self.users:
            self.zookeeper_users[ZOOKEEPER_USER] = secrets.token_urlsafe(12)
        self.credentials = Credentials(self.client_settings("", SUPER_USER, "PLAIN"))

    def cluster_settings(self, zookeeper: "ZooKeeper | None") -> dict[str, str]:
        """Return the settings of every broker.

        Args:
            zookeeper: the cluster's own, None if it is somebody else's.
        """
        found = self.settings("")
        found.pop("listeners", None)
        found["kafkalite.http.token"] = secrets.token_urlsafe(16)
        if self.users:
            secret = self._broker_password
            own = {"username": BROKER, "password": secret, f"user_{BROKER}": secret}
            admin = {f"user_{SUPER_USER}": self.users[SUPER_USER]}
            found["sasl.mechanism.inter.broker.protocol"] = "PLAIN"
            for name, options in ((self.listener, admin), (BROKER_LISTENER, own)):
                line = login_module(_PLAIN, **options)
                found[f"listener.name.{name.lower()}.plain.sasl.jaas.config"] = line
        if self.rules is not None:
            prefix = "User:" if self.users else "User:CN="
            found["super.users"] = f"{prefix}{SUPER_USER};{prefix}{BROKER}"
        if zookeeper is not None:
            found |= zookeeper.client_settings()
            if self.certificates is not None and not self.users:
                found["zookeeper.ssl.keystore.location"] = str(self.certificates.broker_file)
                found["zookeeper.set.acl"] = "true"
        return found
