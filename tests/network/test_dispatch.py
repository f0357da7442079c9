"""From a frame to an answer: the checks that every API shares."""

from types import SimpleNamespace

import pytest

from kafkalite.api.handler import NO_RESPONSE, CloseConnection, Handler, RelayedAnswer
from kafkalite.deferred import Deferred
from kafkalite.network.dispatch import Dispatcher
from kafkalite.wire.errors import ErrorCode, KafkaError, MalformedMessage
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersionsResponse
from kafkalite.wire.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from tests.raw_client import encoded


@pytest.fixture
def context():
    return SimpleNamespace(
        api_version=-1, client_id=None, peer_address=("127.0.0.1", 7), login=None
    )


def dispatcher(handle):
    def refuse(request, error, context):
        return HeartbeatResponse(error_code=error.code)

    def refuse_versions(request, error, context):
        assert request is None
        assert context.api_version == 0
        return ApiVersionsResponse(error_code=error.code)

    return Dispatcher(
        [Handler(HEARTBEAT, handle, refuse), Handler(API_VERSIONS, None, refuse_versions)]
    )


def heartbeat(group="g", version=4, **header):
    return memoryview(encoded(HEARTBEAT, version, HeartbeatRequest(group_id=group), **header))


def raising(error):
    def handle(request, context):
        raise error

    return handle


def test_handler_sees_the_request_its_version_and_its_client(context):
    seen = []

    def handle(request, context):
        seen.append((request.group_id, context.api_version, context.client_id))
        return HeartbeatResponse()

    for version in range(5):
        dispatcher(handle).handle(heartbeat(version=version, client_id="né"), context)
    assert seen == [("g", version, "né") for version in range(5)]


def test_null_client_id_is_the_empty_one(context):
    """Rule 2."""
    dispatcher(lambda *_: NO_RESPONSE).handle(heartbeat(client_id=None), context)
    assert context.client_id == ""


@pytest.mark.parametrize("correlation_id", [0, -1, -(2**31), 2**31 - 1])
def test_correlation_id_comes_back(context, correlation_id):
    """Rule 3: any int32."""
    one = dispatcher(lambda *_: HeartbeatResponse(error_code=3))
    exchange = one.handle(heartbeat(correlation_id=correlation_id), context)
    answer = b"".join(one.encode(exchange))
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    assert int.from_bytes(answer[4:8], "big", signed=True) == correlation_id


def test_no_response_is_no_bytes(context):
    """Rule 12."""
    one = dispatcher(lambda *_: NO_RESPONSE)
    assert one.encode(one.handle(heartbeat(), context)) == []


def test_wait_that_is_not_over_cannot_be_encoded(context):
    one = dispatcher(lambda *_: Deferred(None))
    with pytest.raises(AssertionError):
        one.encode(one.handle(heartbeat(), context))


def test_refusals_become_answers_and_bugs_unknown_server_error(context, caplog):
    refused = KafkaError(ErrorCode.INVALID_GROUP_ID)
    exchange = dispatcher(raising(refused)).handle(heartbeat(), context)
    assert exchange.result.error_code == ErrorCode.INVALID_GROUP_ID
    assert caplog.records == []
    exchange = dispatcher(raising(ZeroDivisionError("bug"))).handle(heartbeat(), context)
    assert exchange.result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "HEARTBEAT v4 from ('127.0.0.1', 7)" in caplog.text
    assert "ZeroDivisionError: bug" in caplog.text


@pytest.mark.parametrize("error", [CloseConnection("so"), AssertionError("so")])
def test_what_is_no_refusal_gets_out(context, error):
    with pytest.raises(type(error), match="so"):
        dispatcher(raising(error)).handle(heartbeat(), context)


def test_api_that_is_not_served_is_named(context):
    """Rule 4."""
    frame = memoryview(encoded(METADATA, 4, MetadataRequest()))
    with pytest.raises(MalformedMessage, match="METADATA v4 is not served here"):
        dispatcher(None).handle(frame, context)


@pytest.mark.parametrize("version", [5, 99])
def test_version_that_is_not_served_is_named_with_those_that_are(context, version):
    """Rule 4."""
    frame = bytearray(heartbeat())
    frame[2:4] = version.to_bytes(2, "big")
    with pytest.raises(MalformedMessage, match=rf"HEARTBEAT v{version} .*, v0 to v4 are"):
        dispatcher(None).handle(memoryview(frame), context)


def test_body_that_is_cut_short_is_named(context):
    """Rule 4."""
    with pytest.raises(MalformedMessage, match=r"^HEARTBEAT v4: "):
        dispatcher(None).handle(heartbeat()[:-3], context)


def test_bytes_after_the_body_are_ignored(context):
    """As Kafka does."""
    one = dispatcher(lambda *_: HeartbeatResponse())
    frame = memoryview(bytes(heartbeat()) + b"more")
    assert one.handle(frame, context).result == HeartbeatResponse()


def test_too_new_api_versions_is_answered_in_v0(context):
    """Rule 5."""
    frame = bytearray(encoded(API_VERSIONS, 4, API_VERSIONS.request.record()))
    frame[2:4] = b"\x7f\xff"
    one = dispatcher(None)
    answer = b"".join(one.encode(one.handle(memoryview(frame + b"junk"), context)))
    assert int.from_bytes(answer[4:8], "big") == 7
    assert int.from_bytes(answer[8:10], "big") == ErrorCode.UNSUPPORTED_VERSION


def test_observer_sees_each_request_with_its_size(context):
    seen = []
    one = dispatcher(lambda *_: HeartbeatResponse())
    one.observer = lambda exchange, size, context: seen.append((exchange.request.group_id, size))
    frame = heartbeat("observed")
    one.handle(frame, context)
    assert seen == [("observed", len(frame))]


def test_two_handlers_of_one_api_are_a_bug():
    with pytest.raises(AssertionError):
        Dispatcher([Handler(HEARTBEAT, None, None)] * 2)


class TestRequestsOfBrokers:
    """What only brokers may ask, and what only the controller may answer (KIP-590)."""

    @staticmethod
    def dispatcher(*, forward=None, **flags):
        def refuse(request, error, context):
            return HeartbeatResponse(error_code=error.code)

        handler = Handler(HEARTBEAT, lambda *_: HeartbeatResponse(), refuse, **flags)
        return Dispatcher([handler], forward=forward)

    @pytest.mark.parametrize("is_inter_broker", [True, False])
    def test_brokers_are_answered_on_the_listener_of_brokers(self, context, is_inter_broker):
        context.is_inter_broker, context.listener = is_inter_broker, "CLIENTS"
        exchange = self.dispatcher(inter_broker_only=True).handle(heartbeat(), context)
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert exchange.result.error_code == (0 if is_inter_broker else refused)

    @pytest.mark.parametrize("is_controller", [True, False])
    def test_controller_answers_itself_and_others_hand_on(self, context, is_controller):
        context.services = SimpleNamespace(metadata=SimpleNamespace(is_controller=is_controller))
        pending, seen = Deferred(None), []

        def forward(request, frame, context):
            seen.append((request.group_id, bytes(frame)))
            return pending

        one = self.dispatcher(forward=forward, forward_to_controller=True)
        exchange = one.handle(heartbeat("mine"), context)
        assert (exchange.result is pending) == (not is_controller)
        assert seen == ([] if is_controller else [("mine", bytes(heartbeat("mine")))])

    def test_what_is_for_the_broker_that_was_asked_is_not_handed_on(self, context):
        context.services = SimpleNamespace(metadata=SimpleNamespace(is_controller=False))
        one = self.dispatcher(
            forward=lambda *_: Deferred(None),
            forward_to_controller=True,
            is_local_request=lambda request: request.group_id == "own",
        )
        assert one.handle(heartbeat("own"), context).result == HeartbeatResponse()

    def test_lone_broker_has_nobody_to_hand_on_to(self, context):
        exchange = self.dispatcher(forward_to_controller=True).handle(heartbeat(), context)
        assert exchange.result == HeartbeatResponse()

    def test_answer_of_the_controller_goes_out_as_it_came(self, context):
        one = self.dispatcher()
        exchange = one.handle(heartbeat(), context)
        exchange.result = RelayedAnswer(memoryview(b"anything"))
        assert b"".join(one.encode(exchange)) == b"\0\0\0\x08anything"
