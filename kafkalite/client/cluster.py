"""Which broker to ask: the cluster's metadata, and a connection to each broker as it is needed."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Self, TypeVar

from kafkalite.client.connection import Connection
from kafkalite.client.errors import RETRIABLE, ClientError, check, error_of
from kafkalite.types import TopicPartition
from kafkalite.wire.api import Api
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafkalite.wire.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kafkalite.wire.schema import Structure

if TYPE_CHECKING:
    import ssl

    from kafkalite.client.login import Credentials

Request = TypeVar("Request", bound=Structure)
Response = TypeVar("Response", bound=Structure)
Answer = TypeVar("Answer")

DEFAULT_PORT: Final = 9092
PAUSE_MS: Final = 50
"""Between two tries while a cluster settles; Kafka's own `retry.backoff.ms` is 100."""


class Client:
    """A cluster, reached through any of its brokers.

    Args:
        bootstrap: `HOST:PORT[,HOST:PORT...]`; the port may be left out (9092).
        client_id: what the brokers see as `client.id`.
        timeout_ms: the most that an answer, or waiting for the cluster to settle, may take.
        credentials: for TLS and a login, where that is wanted.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "kafkalite",
        timeout_ms: int = 30_000,
        credentials: "Credentials | None" = None,
    ) -> None:
        self._credentials = credentials
        self.bootstrap = parse_addresses(bootstrap)
        self.timeout_ms = timeout_ms
        self._client_id = client_id
        self._first: Connection | None = None
        self._connections: dict[int, Connection] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self._metadata: MetadataResponse | None = None
        self._leaders: dict[TopicPartition, int] = {}

    @property
    def tls_context(self) -> "ssl.SSLContext | None":
        """By which brokers are trusted; None where no TLS is wanted."""
        return None if self._credentials is None else self._credentials.tls_context

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        if self._first is not None:
            self._first.close()

    def any_broker(self) -> Connection:
        """Return a connection to the first bootstrap server that answers.

        Raises:
            ClientError: none does; it names the last one tried.
        """
        if self._first is None or self._first.closed:
            self._first = self._connect_first()
        return self._first

    def broker(self, node_id: int) -> Connection:
        """Return a connection to a broker of the cluster, opening it at first use."""
        connection = self._connections.get(node_id)
        if connection is None or connection.closed:
            if node_id not in self._addresses:
                self.fetch_metadata([])
            if node_id not in self._addresses:
                raise ClientError(f"broker {node_id} is not in the cluster")
            connection = self._connect(*self._addresses[node_id])
            self._connections[node_id] = connection
        return connection

    def all_brokers(self) -> list[Connection]:
        """Return a connection to every broker that is up, by ascending id."""
        node_ids = sorted(broker.node_id for broker in self.metadata().brokers)
        return [self.broker(node_id) for node_id in node_ids]

    def controller(self) -> Connection:
        """Return a connection to the broker that takes administrative requests."""
        controller_id = self.metadata().controller_id
        return self.any_broker() if controller_id < 0 else self.broker(controller_id)

    def metadata(self) -> MetadataResponse:
        """Return brokers and controller as last heard, asking if never heard."""
        if self._metadata is None:
            self._metadata = self.fetch_metadata([])
        return self._metadata

    def fetch_metadata(
        self, topics: Sequence[str] | None, *, auto_create: bool = False
    ) -> MetadataResponse:
        """Ask for the metadata of some topics, of all if None; an error in a topic stays there."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=auto_create)
        answer = self.any_broker().request(METADATA, request)
        check(answer.error_code)
        self._metadata = answer
        for broker in answer.brokers:
            self._addresses[broker.node_id] = (broker.host, broker.port)
        for topic in answer.topics:
            for partition in topic.partitions:
                place = TopicPartition(topic.name or "", partition.partition_index)
                if partition.leader_id >= 0:
                    self._leaders[place] = partition.leader_id
                else:
                    self._leaders.pop(place, None)
        return answer

    def topic(self, name: str, *, auto_create: bool = False) -> MetadataResponseTopic:
        """Return a topic all of whose partitions have a leader, waiting for them if need be.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, or what else the broker says about it.
        """
        retriable = {*RETRIABLE}
        if auto_create:
            # Kafka creates the topic after it has answered that there is none.
            retriable.add(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

        def ask() -> MetadataResponseTopic:
            (topic,) = self.fetch_metadata([name], auto_create=auto_create).topics
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist"
                )
            check(topic.error_code, f"topic {name!r}")
            for partition in topic.partitions:
                check(partition.error_code, f"{name}-{partition.partition_index}")
            return topic

        return self.retry(ask, retriable=retriable)

    def partitions(self, name: str) -> list[TopicPartition]:
        """Return a topic's partitions in ascending order."""
        indexes = sorted(p.partition_index for p in self.topic(name).partitions)
        return [TopicPartition(name, index) for index in indexes]

    def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Sort partitions by the broker that leads them, asking about those not known yet."""
        places = list(partitions)
        for name in {place.topic: None for place in places if place not in self._leaders}:
            self.topic(name)
        led: dict[int, list[TopicPartition]] = {}
        for place in places:
            leader = self._leaders.get(place)
            if leader is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {place} does not exist"
                )
            led.setdefault(leader, []).append(place)
        return led

    def forget_leaders(self, topics: Iterable[str]) -> None:
        """Ask again who leads these topics' partitions when it is next needed."""
        names = set(topics)
        for place in [place for place in self._leaders if place.topic in names]:
            del self._leaders[place]

    def ask_controller(
        self,
        api: Api[Request, Response],
        message: Request,
        errors: Callable[[Response], Iterable[int]],
    ) -> Response:
        """Send an administrative request to the controller, following it when it moves.

        Args:
            api: what to ask.
            message: the request.
            errors: gives the codes in a response; NOT_CONTROLLER among them means nothing was done.
        """

        def ask() -> Response:
            answer = self.controller().request(api, message, wait_ms=self.timeout_ms)
            if ErrorCode.NOT_CONTROLLER in errors(answer):
                self._metadata = None
                raise KafkaError(ErrorCode.NOT_CONTROLLER, api.key.name)
            return answer

        return self.retry(ask)

    def ask_coordinator(
        self,
        group_id: str,
        api: Api[Request, Response],
        message: Request,
        errors: Callable[[Response], Iterable[int]],
    ) -> Response:
        """Send a request to a group's coordinator, following it when it moves.

        Arguments as for `ask_controller`.
        """

        def ask() -> Response:
            answer = self._coordinator(group_id).request(api, message)
            for code in errors(answer):
                error = error_of(code, f"group {group_id!r}")
                if error is not None and error.code in RETRIABLE:
                    raise error
            return answer

        return self.retry(ask)

    def retry(
        self, ask: Callable[[], Answer], *, retriable: Iterable[ErrorCode] = RETRIABLE
    ) -> Answer:
        """Return what `ask` returns, repeating it while it raises a retriable KafkaError.

        That is while leaders, coordinators or the controller move, up to the client's timeout;
        nothing else is ever tried twice.
        """
        deadline = time.monotonic() + self.timeout_ms / 1000
        codes = frozenset(retriable)
        while True:
            try:
                return ask()
            except KafkaError as error:
                if error.code not in codes or time.monotonic() > deadline:
                    raise
            self.pause()

    def pause(self) -> None:
        """Give the cluster a moment before the next try."""
        time.sleep(PAUSE_MS / 1000)

    def _coordinator(self, group_id: str) -> Connection:
        found = self.any_broker().request(FIND_COORDINATOR, FindCoordinatorRequest(key=group_id))
        check(found.error_code, found.error_message)
        self._addresses[found.node_id] = (found.host, found.port)
        return self.broker(found.node_id)

    def _connect(self, host: str, port: int) -> Connection:
        return Connection(
            host,
            port,
            client_id=self._client_id,
            timeout_ms=self.timeout_ms,
            credentials=self._credentials,
        )

    def _connect_first(self) -> Connection:
        failure: ClientError | None = None
        for host, port in self.bootstrap:
            try:
                return self._connect(host, port)
            except ClientError as error:
                failure = error
        assert failure is not None
        raise failure


def parse_addresses(bootstrap: str) -> list[tuple[str, int]]:
    """Return (host, port) of each address in a list as `bootstrap.servers` has it.

    Raises:
        ClientError: it holds none, or something that is none.
    """
    addresses = [parse_address(part.strip()) for part in bootstrap.split(",") if part.strip()]
    if not addresses:
        raise ClientError("no bootstrap server given")
    return addresses


def parse_address(address: str) -> tuple[str, int]:
    """Return (host, port) of `HOST:PORT`, `HOST` or `[IPV6]:PORT`.

    Raises:
        ClientError: it is none of these.
    """
    if address.startswith("["):
        host, bracket, rest = address[1:].partition("]")
        port = rest.removeprefix(":") if bracket and (not rest or rest[0] == ":") else "?"
    else:
        host, _, port = address.partition(":")
    number = int(port) if port.isascii() and port.isdigit() else DEFAULT_PORT if not port else 0
    if not host or not 0 < number < 65536:
        raise ClientError(f"{address!r} is no address of a server; write HOST:PORT")
    return host, number
