"""Requests that a client sends to any broker and the controller answers (KIP-590)."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import trio

from kafkalite.api import envelope
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.meta.image import Image
from kafkalite.peers.clients import ControllerClient
from kafkalite.peers.forwarding import FORWARDING_CHANNEL, Forwarder
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.header import decode_response_header
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkalite.wire.messages.envelope import EnvelopeResponse
from tests.peers.asking_kit import exchange
from tests.peers.peer_kit import Cluster, broker, with_versions
from tests.raw_client import encoded

TIMEOUT_MS = 5_000


class Member:
    """A broker that notes who had topics made by it."""

    def __init__(self, broker_id, *, is_controller=False):
        self.authorizer = None
        self.metadata = SimpleNamespace(is_controller=is_controller, image=Image())
        self.seen = []
        self.broker_id = broker_id
        self.answer = self.made

    def made(self, request, code=ErrorCode.NONE):
        # The number of replicas tells who answered.
        topics = [
            CreatableTopicResult(
                name=topic.name, error_code=code, replication_factor=self.broker_id
            )
            for topic in request.topics
        ]
        return CreateTopicsResponse(topics=topics)

    def handlers(self):
        def handle(request, context):
            self.seen.append((context.client_id, context.principal, context.peer_address[0]))
            return self.answer(request)

        def refuse(request, error, context):
            return self.made(request, error.code)

        one = Handler(CREATE_TOPICS, handle, refuse, forward_to_controller=True)
        find = {int(CREATE_TOPICS.key): one}.get
        return with_versions([one, envelope.handling(find)])


@asynccontextmanager
async def two_brokers():
    """Give two brokers, of which the second knows the first, and the second's port."""
    cluster, first, second = Cluster(), Member(1, is_controller=True), Member(2)
    async with cluster.peers() as peers:
        client = ControllerClient(peers, lambda: cluster.image, channel=FORWARDING_CHANNEL)
        cluster.subscribers.append(client.on_changes)
        forwarder = Forwarder(client, timeout_ms=TIMEOUT_MS)
        async with (
            broker(first.handlers(), metadata=first.metadata) as port,
            broker(second.handlers(), metadata=second.metadata, forward=forwarder) as entrance,
        ):
            cluster.set(b1=port, b2=entrance, controller_id=1)
            yield cluster, first, second, entrance


async def create(port, name="t", *, version=7, correlation_id=4711, timeout_ms=2_000):
    """Ask a broker to create a topic; return (error, id of who answered)."""
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name)], timeout_ms=timeout_ms)
    frame = encoded(CREATE_TOPICS, version, request, correlation_id=correlation_id, client_id="me")
    body = await exchange("127.0.0.1", port, frame)
    found, position = decode_response_header(CREATE_TOPICS, version, body)
    assert found == correlation_id
    (topic,) = CREATE_TOPICS.decode_response(version, body, position).topics
    assert topic.name == name
    return topic.error_code, topic.replication_factor


@pytest.mark.parametrize("version", [2, 7])
async def test_client_is_answered_by_the_controller_through_any_broker(version):
    async with two_brokers() as (_, first, second, entrance):
        error, answered_by = await create(entrance, version=version, correlation_id=-5)
        assert error == 0
        assert answered_by == (1 if version >= 5 else -1)
        assert first.seen == [("me", "User:ANONYMOUS", "127.0.0.1")]
        assert second.seen == []


async def test_answer_may_take_its_time():
    async with two_brokers() as (_, first, _, entrance):

        def slowly(request):
            async def wait():
                await trio.sleep(0.01)
                return first.made(request)

            return Deferred(wait)

        first.answer = slowly
        assert await create(entrance) == (0, 1)


async def test_refusal_of_the_controller_reaches_the_client():
    async with two_brokers() as (_, first, _, entrance):
        first.answer = lambda request: first.made(request, ErrorCode.TOPIC_ALREADY_EXISTS)
        assert await create(entrance) == (ErrorCode.TOPIC_ALREADY_EXISTS, 1)


async def test_deposed_controller_sends_the_request_to_its_successor():
    """Here that is the broker that the client asked, which then asks itself."""
    async with two_brokers() as (cluster, first, second, entrance):
        first.metadata.is_controller = False
        results = []

        async def ask():
            results.append(await create(entrance))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(0.02)
            second.metadata.is_controller = True
            cluster.set(controller_id=2)
        assert results == [(0, 2)]


@pytest.mark.slow
async def test_without_a_controller_the_client_hears_so_in_time():
    async with two_brokers() as (cluster, first, _, entrance):
        first.metadata.is_controller = False
        # Time enough to be connected, so that this is the outcome and not that nobody was reached.
        assert (await create(entrance, timeout_ms=1_000))[0] == ErrorCode.NOT_CONTROLLER
        cluster.set(controller_id=-1)
        assert (await create(entrance, timeout_ms=60))[0] == ErrorCode.NOT_CONTROLLER
        cluster.set(controller_id=1, b1=None)
        assert (await create(entrance, timeout_ms=60))[0] == ErrorCode.REQUEST_TIMED_OUT


class FakeController:
    def __init__(self, outcome):
        self.outcome = outcome
        self.timeouts = []

    async def request(self, api, message, *, timeout_ms):
        self.timeouts.append(timeout_ms)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


CONTEXT = SimpleNamespace(principal="User:ANONYMOUS", is_token=False, peer_address=("127.0.0.1", 1))


def forward(outcome, request=None):
    controller = FakeController(outcome)
    forwarder = Forwarder(controller, timeout_ms=30_000)
    pending = forwarder(request or SimpleNamespace(), memoryview(b"frame"), CONTEXT)
    return controller, pending


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (KafkaError(ErrorCode.NETWORK_EXCEPTION), ErrorCode.REQUEST_TIMED_OUT),
        (KafkaError(ErrorCode.BROKER_NOT_AVAILABLE), ErrorCode.REQUEST_TIMED_OUT),
        (KafkaError(ErrorCode.NOT_CONTROLLER), ErrorCode.NOT_CONTROLLER),
        (KafkaError(ErrorCode.UNSUPPORTED_VERSION), ErrorCode.UNSUPPORTED_VERSION),
        (EnvelopeResponse(error_code=31), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
async def test_what_goes_wrong_on_the_way_is_told_as_clients_know_it(outcome, code):
    _, pending = forward(outcome)
    with pytest.raises(KafkaError) as caught:
        await pending.wait()
    assert caught.value.code is code


@pytest.mark.parametrize(("said", "taken"), [({"timeout_ms": 7}, 7), ({"timeout_ms": 0}, 30_000)])
async def test_request_says_how_long_to_try(said, taken):
    controller, pending = forward(EnvelopeResponse(response_data=b"x"), SimpleNamespace(**said))
    assert (await pending.wait()).data == b"x"
    assert controller.timeouts == [taken]
