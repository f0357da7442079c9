"""`KafkaContainer` of testcontainers-python, without Docker: a broker in the test's process.

from kafkalite.testing import KafkaContainer  # testcontainers.community.kafka had one, too

with KafkaContainer() as kafka:
producer = confluent_kafka.Producer({"bootstrap.servers": kafka.get_bootstrap_server()})
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, NoReturn, Self

from kafkalite.config import settings_of_environment
from kafkalite.testing.broker import Broker

DEFAULT_IMAGE: Final = "confluentinc/cp-kafka:7.6.0"
DEFAULT_PORT: Final = 9093

_HOST: Final = "127.0.0.1"
_OF_A_CONTAINER: Final = frozenset(
    {
        *("listeners", "advertised.listeners", "listener.security.protocol.map"),
        *("inter.broker.listener.name", "log.dirs", "log.dir", "zookeeper.connect"),
        *("node.id", "broker.id", "process.roles"),
    }
)
"""Settings by which a container fits its network and its quorum; a broker alone needs none.
Those whose names begin with `controller.` belong to them."""


class KafkaContainer:
    """A broker with the methods of testcontainers-python's `KafkaContainer`; ready in milliseconds.

    `with_env` sets broker settings as in Kafka's images (`KAFKA_NUM_PARTITIONS`). What only a
    container has, such as `exec` or volumes, raises an error that says so.

    Args:
        image: not looked at: there is no image.
        port: what `get_exposed_port` is asked for; the broker has a free port of this machine.
        wait_strategy_check_string: not looked at: `start` returns when clients can connect.
        listener_name: not looked at.
        security_protocol: PLAINTEXT; `kafkalite.Broker(tls=True, users=...)` has the others.
        kwargs: what else DockerContainer takes; `env` alone has an effect.

    Attributes:
        broker: the `kafkalite.testing.Broker` once it was started.
    """

    def __init__(
        self,
        image: str = DEFAULT_IMAGE,
        port: int = DEFAULT_PORT,
        wait_strategy_check_string: str = "",
        listener_name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        **kwargs: Any,
    ) -> None:
        del wait_strategy_check_string
        if security_protocol != "PLAINTEXT":
            raise ValueError(
                f"security_protocol={security_protocol!r}: only PLAINTEXT is known here; "
                "kafkalite.Broker(tls=True, users={...}) has TLS and logins"
            )
        self.image = image
        self.port = port
        self.listener_name = listener_name
        self.security_protocol = security_protocol
        self.env: dict[str, str] = dict(kwargs.get("env") or {})
        self._port_of_host = 0
        self._broker: Broker | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a KafkaContainer of kafkalite is no container: it has no {name!r}")

    # --- Before the start ------------------------------------------------------------------------

    def with_env(self, key: str, value: str) -> Self:
        """Set a broker setting by the name that Kafka's images give it."""
        self.env[key] = str(value)
        return self

    def with_envs(self, **variables: str) -> Self:
        """Set several."""
        self.env |= {key: str(value) for key, value in variables.items()}
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """Set the cluster's id."""
        return self.with_env("CLUSTER_ID", cluster_id)

    def with_kraft(self) -> Self:
        """Do nothing: a broker alone has neither a quorum nor a ZooKeeper."""
        return self

    def with_exposed_ports(self, *ports: int | str) -> Self:
        """Do nothing: the broker's port is one of this machine."""
        del ports
        return self

    def with_bind_ports(self, container: int | str, host: int | str | None = None) -> Self:
        """Listen on this port of the machine, if `container` is that of Kafka."""
        if _number(container) == self.port and host is not None:
            self._port_of_host = _number(host)
        return self

    def with_name(self, name: str) -> Self:
        """Do nothing: only containers have names."""
        del name
        return self

    def with_kwargs(self, **kwargs: Any) -> Self:
        """Do nothing: these are arguments of Docker."""
        del kwargs
        return self

    # --- Life ------------------------------------------------------------------------------------

    def start(self, timeout: int = 30) -> Self:
        """Start the broker, and return when clients can connect.

        Raises:
            KafkaliteConfigError: a setting is wrong.
        """
        del timeout
        settings = _of_a_broker(settings_of_environment(self.env))
        self._broker = Broker(config=settings, host=_HOST, port=self._port_of_host, http=True)
        self._broker.start()
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop the broker and remove its data; nothing if it does not run."""
        del force, delete_volume
        if self._broker is not None:
            self._broker.stop()

    # --- While it runs ---------------------------------------------------------------------------

    @property
    def broker(self) -> Broker:
        """The kafkalite broker, for `faults`, `clock`, `reset`, `wait_assigned` and the like."""
        if self._broker is None:
            raise RuntimeError("this KafkaContainer was not started")
        return self._broker

    def get_bootstrap_server(self) -> str:
        """Return `HOST:PORT`, for a client's `bootstrap.servers`."""
        return self.broker.bootstrap

    def get_container_host_ip(self) -> str:
        """Return the address that the broker listens on."""
        return self.broker.bootstrap.rpartition(":")[0]

    def get_exposed_port(self, port: int) -> int:
        """Return the port of this machine for that of a container.

        Raises:
            ConnectionError: a container with this `port` would not have it.
        """
        if port != self.port:
            raise ConnectionError(f"port {port} is not exposed; that of Kafka is {self.port}")
        return self.broker.port

    def get_logs(self) -> tuple[bytes, bytes]:
        """Return nothing: the broker logs by the `logging` of this process."""
        return b"", b""


def _of_a_broker(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that are not about a container's surroundings."""
    return {
        name: value
        for name, value in settings.items()
        if name not in _OF_A_CONTAINER and not name.startswith("controller.")
    }


def _number(port: int | str) -> int:
    """Return the number of `9093` or `9093/tcp`."""
    return int(str(port).partition("/")[0])
