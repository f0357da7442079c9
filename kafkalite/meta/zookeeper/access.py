"""How a broker comes in at ZooKeeper: encryption, login, and who may see the nodes that it makes.

Settings are those of Apache Kafka 3.9. Its brokers log in by SASL with DIGEST-MD5, or show a client
certificate; both make a name that the access control of nodes knows (rules 586 to 588, decision
0115). kazoo would need an unkept library for the first, and gives up for good when a server goes
away in the midst of a login.
"""

import secrets
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionDropped,
    NoAuthError,
    SessionClosedRequireSaslError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import SASL
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from kafkalite.config.security import ZookeeperSettings
from kafkalite.security.digest_md5 import DigestError, DigestExchange, user_of
from kafkalite.settings.config_def import SettingError

if TYPE_CHECKING:
    import logging

    from kafkalite.config import BrokerConfig

RECONNECT_DELAY_S: Final = 0.1
RECONNECT_DELAY_MAX_S: Final = 1.0

JAAS: Final = "kafkalite.zookeeper.jaas.config"
TLS_SOCKET: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"

SENSITIVE: Final = (
    "/config/users",
    "/config/brokers",
    "/delegation_token",
    "/changes",
)
"""Where passwords may stand, so that only brokers may read it: as in Apache Kafka (rule 588), and
the list of commits, which has all of that once more."""


REFUSALS: Final = (NoAuthError, SessionClosedRequireSaslError)
"""What ZooKeeper says to somebody who may not do something."""


def why_refused(refusal: Exception) -> str:
    """Return what is to be told of a refusal, behind the word ZooKeeper."""
    if isinstance(refusal, NoAuthError):
        return (
            "has nodes that are somebody else's: they were made with zookeeper.set.acl "
            "by another user"
        )
    return f"serves nobody who does not log in: {JAAS}"


class ZookeeperAccess:
    """Credentials of a broker at ZooKeeper; none, if its settings name none.

    Args:
        context: makes what OpenSSL needs for a new connection; None without encryption.
        user: name and password for DIGEST-MD5.
        sets_acl: whether nodes are the brokers' own, as with `zookeeper.set.acl`.

    Attributes:
        failure: why the latest connection was not made, for the operator.
    """

    def __init__(
        self,
        *,
        context: Callable[[], ssl.SSLContext] | None = None,
        user: tuple[str, str] | None = None,
        sets_acl: bool = False,
    ) -> None:
        self.context = context
        self.user = user
        self.failure = ""
        self._sets_acl = sets_acl

    @classmethod
    def of(cls, config: "BrokerConfig") -> "ZookeeperAccess":
        """Return what a broker's settings name.

        Raises:
            SettingError: a file cannot be read, or there is nobody to own the nodes.
        """
        context, shows_certificate = None, False
        if config.bool("zookeeper.ssl.client.enable"):
            # Most clusters do without.
            from kafkalite.security.tls import client_context

            chosen = config.optional_str("zookeeper.clientCnxnSocket") or TLS_SOCKET
            if chosen != TLS_SOCKET:
                raise SettingError(
                    f"zookeeper.clientCnxnSocket: has to be {TLS_SOCKET} where "
                    "zookeeper.ssl.client.enable is set"
                )
            settings = ZookeeperSettings(config)
            shows_certificate = settings.text("ssl.keystore.location") is not None

            def context() -> ssl.SSLContext:
                try:
                    return client_context(settings)
                except SettingError as error:
                    raise SettingError(f"zookeeper.{error}") from None

            context()
        user = None
        line = config.optional_str(JAAS)
        if line:
            try:
                user = user_of(line)
            except DigestError as error:
                raise SettingError(f"{JAAS}: {error}") from None
        sets_acl = config.bool("zookeeper.set.acl")
        if sets_acl and user is None and not shows_certificate:
            raise SettingError(
                f"zookeeper.set.acl: needs somebody to own the nodes: {JAAS}, or "
                "zookeeper.ssl.client.enable with zookeeper.ssl.keystore.location"
            )
        return cls(context=context, user=user, sets_acl=sets_acl)

    def acl_of(self, path: str) -> list[Any]:
        """Return who may do what with a new node (rule 588)."""
        if not self._sets_acl:
            return list(OPEN_ACL_UNSAFE)
        if any(path == folder or path.startswith(f"{folder}/") for folder in SENSITIVE):
            return list(CREATOR_ALL_ACL)
        return [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]

    def client(self, connect: str, session_timeout_s: float, logger: "logging.Logger") -> Any:
        """Return a client of ZooKeeper that is not started yet.

        Raises:
            ValueError, TypeError: `connect` is no list of addresses.
        """
        retry = KazooRetry(
            max_tries=-1, delay=RECONNECT_DELAY_S, backoff=2, max_delay=RECONNECT_DELAY_MAX_S
        )
        client = KazooClient(
            hosts=connect,
            timeout=session_timeout_s,
            connection_retry=retry,
            logger=logger,
            handler=_Handler(self) if self.context is not None else None,
            use_ssl=self.context is not None,
        )
        if self.user is not None:
            client._connection = _Connection(client, self, logger)  # noqa: SLF001 - no other way in
        return client


class _Handler(SequentialThreadingHandler):  # type: ignore[misc] # kazoo has no types
    """Connects with the settings' certificates; kazoo's own way takes files of one form only."""

    def __init__(self, access: ZookeeperAccess) -> None:
        super().__init__()
        self._access = access

    def create_connection(self, *_: object, **options: Any) -> ssl.SSLSocket:
        """Connect, and shake hands; with the host's name as it stands in zookeeper.connect."""
        access = self._access
        assert access.context is not None
        try:
            plain = socket.create_connection(options["address"], options["timeout"])
            try:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return access.context().wrap_socket(plain, server_hostname=options["hostname"])
            except BaseException:
                plain.close()
                raise
        except (OSError, SettingError) as error:
            access.failure = getattr(error, "verify_message", "") or str(error)
            raise ConnectionDropped(access.failure) from error

    def select(self, *lists: Any, **options: Any) -> Any:
        """Wait for sockets; what OpenSSL has decrypted already, the kernel knows nothing of."""
        readers = lists[0]
        ready = [one for one in readers if isinstance(one, ssl.SSLSocket) and one.pending()]
        if not ready:
            return super().select(*lists, **options)
        found, writable, failed = super().select(*lists[:3], 0)
        return [*ready, *(one for one in found if one not in ready)], writable, failed


class _Connection(ConnectionHandler):  # type: ignore[misc] # kazoo has no types
    """A connection that logs in by DIGEST-MD5 before anything else is asked for."""

    def __init__(self, client: Any, access: ZookeeperAccess, logger: "logging.Logger") -> None:
        super().__init__(client, client._conn_retry.copy(), logger=logger, sasl_options={})  # noqa: SLF001
        self._access = access

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        """Log in; what is refused is tried again with the next connection, as Kafka does."""
        access = self._access
        assert access.user is not None
        exchange = DigestExchange(*access.user, secrets.token_urlsafe(24))
        try:
            exchange.check(self._send(exchange.answer(self._send(b"", 1, timeout)), 2, timeout))
        except (AuthFailedError, DigestError) as error:
            access.failure = f"user {access.user[0]} is refused"
            if isinstance(error, DigestError):
                access.failure = str(error)
            raise ConnectionDropped(access.failure) from error
        access.failure = ""

    def _send(self, token: bytes, number: int, timeout: float) -> bytes:
        self._submit(SASL(token), timeout, number)
        header, data, offset = self._read_header(timeout)
        if header.xid != number:
            raise ConnectionDropped("an answer to something else than the login")
        if header.zxid > 0:
            self.client.last_zxid = header.zxid
        if header.err:
            raise AuthFailedError
        answer, _ = SASL.deserialize(data, offset)
        return bytes(answer or b"")
