"""Requests from a simulated client: connections to brokers by id, metadata, coordinators."""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import trio

from kafkalite.network.transport import Transport
from kafkalite.sim.network import HostNetwork
from kafkalite.types import TopicPartition
from kafkalite.wire.api import Api
from kafkalite.wire.errors import ErrorCode, MalformedMessage
from kafkalite.wire.framing import SIZE_PREFIX
from kafkalite.wire.header import decode_response_header, encode_request_header
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from kafkalite.wire.schema import Structure

Request = TypeVar("Request", bound=Structure)
Response = TypeVar("Response", bound=Structure)
Answer = TypeVar("Answer")

TIMEOUT_S: Final = 3.0
METADATA_VERSION: Final = 9
FIND_COORDINATOR_VERSION: Final = 3


class Unanswered(Exception):
    """No answer came; the request may have been carried out."""


class Link:
    """One connection to one broker."""

    def __init__(self, transport: Transport, client_id: str) -> None:
        self._transport = transport
        self._client_id = client_id
        self._ids = itertools.count(1)

    async def ask(self, api: Api[Request, Response], version: int, message: Request) -> Response:
        """Return the answer. Raises OSError or MalformedMessage."""
        correlation_id = await self._send(api, version, message)
        answered, answer = await self._receive(api, version)
        assert answered == correlation_id, f"answer {answered} to request {correlation_id}"
        return answer

    async def _send(self, api: Api[Request, Response], version: int, message: Request) -> int:
        correlation_id = next(self._ids)
        header = encode_request_header(
            api, version, correlation_id=correlation_id, client_id=self._client_id
        )
        body = b"".join(bytes(chunk) for chunk in api.encode_request(version, message))  # type: ignore[arg-type]
        await self._transport.send([SIZE_PREFIX.pack(len(header) + len(body)), header, body])
        return correlation_id

    async def _receive(self, api: Api[Request, Response], version: int) -> tuple[int, Response]:
        (size,) = SIZE_PREFIX.unpack(await self._exactly(SIZE_PREFIX.size))
        frame = await self._exactly(size)
        answered, position = decode_response_header(api, version, frame)
        return answered, api.decode_response(version, frame, position)

    async def ask_all(
        self, api: Api[Request, Response], version: int, messages: Sequence[Request], pause_s: float
    ) -> list[Response]:
        """Send requests one after another without waiting, then return their answers."""
        answers = []
        for message in messages:
            await self._send(api, version, message)
            await trio.sleep(pause_s)
        for _ in messages:
            _, answer = await self._receive(api, version)
            answers.append(answer)
        return answers

    async def _exactly(self, count: int) -> memoryview:
        data = memoryview(bytearray(count))
        if not await self._transport.receive_all(data):
            raise ConnectionResetError("closed by the broker (simulated)")
        return data

    def close(self) -> None:
        """Close."""
        self._transport.close()


class Client:
    """Base of simulated producers and consumers.

    Args:
        network: of the client's host.
        name: its client id.
        bootstrap: addresses of brokers.
    """

    def __init__(
        self, network: HostNetwork, name: str, bootstrap: Sequence[tuple[str, int]]
    ) -> None:
        self.name = name
        self._network = network
        self._bootstrap = bootstrap
        self._next_bootstrap = 0
        self._links: dict[tuple[str, int], Link] = {}
        self._brokers: dict[int, tuple[str, int]] = {}
        self._leaders: dict[TopicPartition, tuple[int, int]] = {}

    async def ask(
        self,
        address: tuple[str, int],
        api: Api[Request, Response],
        version: int,
        message: Request,
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> Response:
        """Return a broker's answer.

        Raises:
            Unanswered: there is none.
        """
        return await self._over(address, timeout_s, lambda link: link.ask(api, version, message))

    async def ask_all(
        self,
        address: tuple[str, int],
        api: Api[Request, Response],
        version: int,
        messages: Sequence[Request],
        *,
        pause_s: float,
    ) -> list[Response]:
        """Return a broker's answers to requests that are under way at a time.

        Raises:
            Unanswered: some are missing.
        """
        return await self._over(
            address, TIMEOUT_S, lambda link: link.ask_all(api, version, messages, pause_s)
        )

    async def _over(
        self,
        address: tuple[str, int],
        timeout_s: float,
        ask: Callable[[Link], Awaitable[Answer]],
    ) -> Answer:
        try:
            with trio.fail_after(timeout_s):
                link = self._links.get(address)
                if link is None:
                    transport = await self._network.connect(*address)
                    link = self._links[address] = Link(transport, self.name)
                return await ask(link)
        except (
            OSError,
            MalformedMessage,
            trio.TooSlowError,
            trio.BrokenResourceError,
            trio.ClosedResourceError,
        ) as error:
            self._drop(address)
            raise Unanswered(f"{address}: {error!r}") from None
        except trio.Cancelled:
            self._drop(address)
            raise

    def _drop(self, address: tuple[str, int]) -> None:
        link = self._links.pop(address, None)
        if link is not None:
            link.close()

    async def ask_anyone(
        self, api: Api[Request, Response], version: int, message: Request
    ) -> Response:
        """Ask the next of the bootstrap addresses. Raises Unanswered."""
        address = self._bootstrap[self._next_bootstrap % len(self._bootstrap)]
        try:
            return await self.ask(address, api, version, message)
        except Unanswered:
            self._next_bootstrap += 1
            raise

    async def refresh(self, topics: Sequence[str]) -> None:
        """Learn who leads. Raises Unanswered."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=False,
        )
        self._next_bootstrap += 1
        response = await self.ask_anyone(METADATA, METADATA_VERSION, request)
        self._brokers = {each.node_id: (each.host, each.port) for each in response.brokers}
        for topic in response.topics:
            for partition in topic.partitions:
                place = TopicPartition(topic.name or "", partition.partition_index)
                known = self._leaders.get(place, (-1, -1))
                if partition.leader_epoch >= known[1]:
                    self._leaders[place] = (partition.leader_id, partition.leader_epoch)

    def leader(self, place: TopicPartition) -> tuple[tuple[str, int], int] | None:
        """Return address and epoch of a partition's leader, None if it is not known."""
        leader_id, epoch = self._leaders.get(place, (-1, -1))
        address = self._brokers.get(leader_id)
        return None if address is None else (address, epoch)

    def anyone(self) -> tuple[str, int]:
        """Return the next of the bootstrap addresses."""
        self._next_bootstrap += 1
        return self._bootstrap[self._next_bootstrap % len(self._bootstrap)]

    async def coordinator(self, key: str, key_type: int) -> tuple[str, int] | None:
        """Return the address of a coordinator, None if there is none now. Raises Unanswered."""
        response: Any = await self.ask_anyone(
            FIND_COORDINATOR,
            FIND_COORDINATOR_VERSION,
            FindCoordinatorRequest(key=key, key_type=key_type),
        )
        if response.error_code != ErrorCode.NONE:
            self._next_bootstrap += 1
            return None
        return response.host, response.port
