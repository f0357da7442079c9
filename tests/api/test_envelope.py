"""Requests that another broker hands on (KIP-590)."""

from types import SimpleNamespace

import pytest
import trio

from kafkalite.api import HANDLERS
from kafkalite.api.context import RequestContext
from kafkalite.api.envelope import envelope_of, handling, holds_error
from kafkalite.api.handler import Handler
from kafkalite.deferred import Deferred
from kafkalite.meta.image import Image
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.header import decode_response_header
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkalite.wire.messages.envelope import ENVELOPE, EnvelopeRequest
from kafkalite.wire.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from tests.raw_client import encoded

VERSION = 7


class Controller:
    """Answers CreateTopics with what `answer` says; keeps the contexts that it saw."""

    def __init__(self, answer=None, *, is_controller=True):
        self.answer = answer
        self.is_controller = is_controller
        self.seen = []
        refuse = lambda request, error, context: self.made(request, error.code)  # noqa: E731
        one = Handler(CREATE_TOPICS, self.handle, refuse, forward_to_controller=True)
        self.handler = handling({int(CREATE_TOPICS.key): one}.get)

    def made(self, request, code=ErrorCode.NONE):
        topics = [CreatableTopicResult(name=t.name, error_code=code) for t in request.topics]
        return CreateTopicsResponse(topics=topics)

    def handle(self, request, context):
        self.seen.append(context)
        return self.answer(self, request) if self.answer else self.made(request)

    def context(self, **values):
        services = SimpleNamespace(
            authorizer=None,
            quotas=None,
            metadata=SimpleNamespace(is_controller=self.is_controller, image=Image()),
        )
        values = {"peer_address": ("127.0.0.1", 7), "principal": "User:broker", **values}
        return RequestContext(
            services=services,
            connection_id=1,
            listener="PLAINTEXT",
            local_address=("127.0.0.1", 9092),
            **values,
        )

    def ask(self, request):
        """Return the response to an envelope, as the dispatcher would have it."""
        try:
            result = self.handler.handle(request, self.context())
            return trio.run(result.wait) if isinstance(result, Deferred) else result
        except KafkaError as error:
            return self.handler.refuse(request, error, None)

    def forward(self, *topics, client=("10.1.2.3", 99), version=VERSION):
        """Hand on a CreateTopics of a client; return (envelope error, answer inside)."""
        request = CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in topics])
        frame = encoded(CREATE_TOPICS, version, request, correlation_id=4711, client_id="me")
        theirs = self.context(peer_address=client, principal="User:Ada: Lovelace")
        response = self.ask(envelope_of(memoryview(frame), theirs))
        if response.error_code:
            return response.error_code, None
        data = memoryview(response.response_data)
        correlation_id, position = decode_response_header(CREATE_TOPICS, version, data)
        assert correlation_id == 4711
        return 0, CREATE_TOPICS.decode_response(version, data, position)


@pytest.mark.parametrize("version", range(2, 8))
def test_answer_inside_is_the_one_that_the_client_expects(version):
    _, answer = Controller().forward("a", "b", version=version)
    assert [topic.name for topic in answer.topics] == ["a", "b"]


@pytest.mark.parametrize("client", ["10.1.2.3", "2001:db8::1"])
def test_handler_sees_the_client_that_asked_the_other_broker(client):
    controller = Controller()
    controller.forward("a", client=(client, 99))
    (seen,) = controller.seen
    assert seen.client_id == "me"
    assert seen.api_version == VERSION
    assert seen.principal == "User:Ada: Lovelace"
    assert seen.peer_address == (client, 0)
    assert not seen.is_inter_broker


def test_client_without_an_ip_address_is_handed_on_too():
    """In a simulation, hosts have names only; fe80 addresses name an interface."""
    controller = Controller()
    for host in ("host1", "fe80::1%eth0"):
        controller.forward("a", client=(host, 99))
    assert [seen.peer_address[0] for seen in controller.seen] == ["0.0.0.0", "fe80::1"]


def test_who_is_not_the_controller_says_so():
    assert Controller(is_controller=False).forward("a") == (ErrorCode.NOT_CONTROLLER, None)


def raising(code):
    def answer(controller, request):
        raise KafkaError(code)

    return answer


def raising_later(code):
    async def wait():
        raise KafkaError(code)

    return lambda controller, request: Deferred(wait)


def for_each_topic(code):
    return lambda controller, request: controller.made(request, code)


@pytest.mark.parametrize("how", [raising, raising_later, for_each_topic])
def test_refusal_is_inside_unless_it_says_who_is_no_controller(how):
    """The broker that hands on asks the next controller then; the client shall not know."""
    refused = ErrorCode.NOT_CONTROLLER
    assert Controller(how(refused)).forward("a") == (refused, None)
    refused = ErrorCode.POLICY_VIOLATION
    _, answer = Controller(how(refused)).forward("a")
    assert answer.topics[0].error_code == refused


def test_answer_that_is_waited_for_comes_too():
    def answer(controller, request):
        async def wait():
            await trio.lowlevel.checkpoint()
            return controller.made(request)

        return Deferred(wait)

    _, response = Controller(answer).forward("a")
    assert response.topics[0].name == "a"


def envelope(frame, **values):
    made = envelope_of(memoryview(frame), Controller().context())
    for name, value in values.items():
        setattr(made, name, value)
    return made


GOOD = encoded(CREATE_TOPICS, VERSION, CreateTopicsRequest())


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (envelope(encoded(HEARTBEAT, 4, HeartbeatRequest())), ErrorCode.INVALID_REQUEST),
        (envelope(GOOD[:9]), ErrorCode.INVALID_REQUEST),
        (envelope(GOOD[:-3]), ErrorCode.INVALID_REQUEST),
        (envelope(b"\0\x13\0\x63" + GOOD[4:]), ErrorCode.UNSUPPORTED_VERSION),
        (envelope(GOOD, request_principal=None), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (envelope(GOOD, request_principal=b"\0\1"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (EnvelopeRequest(), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_no_broker_hands_on_is_refused(request_, code):
    controller = Controller()
    assert controller.ask(request_).error_code == code
    assert controller.seen == []


def test_address_of_no_known_length_is_no_reason_to_refuse():
    controller = Controller()
    assert controller.ask(envelope(GOOD, client_host_address=b"xyz")).error_code == 0
    assert controller.seen[0].peer_address == ("0.0.0.0", 0)


def test_error_is_found_at_any_depth():
    failed = CreateTopicsResponse(topics=[CreatableTopicResult(error_code=41)])
    assert holds_error(failed, ErrorCode.NOT_CONTROLLER)
    assert not holds_error(failed, ErrorCode.INVALID_REQUEST)


def test_envelopes_are_advertised_to_brokers_alone():
    def keys(*, is_inter_broker):
        context = Controller().context(is_inter_broker=is_inter_broker)
        context.api_version = 0
        versions = HANDLERS.get(ApiKey.API_VERSIONS)
        response = versions.handle(ApiVersionsRequest(), context)
        return {entry.api_key for entry in response.api_keys}

    assert ApiKey.ENVELOPE in keys(is_inter_broker=True)
    assert ApiKey.ENVELOPE not in keys(is_inter_broker=False)
    assert API_VERSIONS.key == 18
    assert ENVELOPE.versions == (0, 0)
