"""Requests of very many elements, in steps (decision 0062)."""

from types import SimpleNamespace

import pytest
import trio

from kafkalite.api import metadata, offset_commit
from kafkalite.api.handler import NO_RESPONSE, CloseConnection, EncodedAnswer, Handler
from kafkalite.api.parts import PART_MAX, by_partition, by_topic, joined
from kafkalite.deferred import Deferred
from kafkalite.network.dispatch import Dispatcher, InFlightRequest
from kafkalite.network.large import LARGE_MIN_BYTES
from kafkalite.network.large import encoded as encoded_in_steps
from kafkalite.wire.decoding import STEP_ELEMENTS
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.header import RequestHeader, decode_response_header
from kafkalite.wire.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kafkalite.wire.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from tests.raw_client import encoded

VERSION = 9
COUNT = 20_000
NAMES = [f"topic-{index}" for index in range(COUNT)]


@pytest.fixture
def context():
    return SimpleNamespace(
        api_version=-1, client_id=None, peer_address=("127.0.0.1", 7), login=None
    )


def asked(names=NAMES, **options):
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, **options)


def frame_of(request):
    return memoryview(encoded(METADATA, VERSION, request))


def echo(request, context):
    return MetadataResponse(
        cluster_id=None, topics=[MetadataResponseTopic(name=each.name) for each in request.topics]
    )


def dispatcher(handle, **options):
    return Dispatcher([Handler(METADATA, handle, metadata.refuse, **options)])


async def answer(served, frame, context):
    """The response as its client reads it, and how often others had a turn meanwhile."""
    exchange = served.handle(frame, context)
    assert isinstance(exchange.result, Deferred)
    turns = 0

    async def take_turns():
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take_turns)
        exchange.result = await exchange.result.wait()
        nursery.cancel_scope.cancel()
    assert isinstance(exchange.result, EncodedAnswer)
    data = b"".join(map(bytes, served.encode(exchange)))
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    _, position = decode_response_header(METADATA, VERSION, memoryview(data)[4:])
    return METADATA.decode_response(VERSION, memoryview(data)[4:], position), turns


async def test_others_have_their_turn_while_it_is_decoded_served_and_answered(context):
    parts = []

    def handle(request, context):
        parts.append(len(request.topics))
        return echo(request, context)

    served = dispatcher(handle, parts=by_topic, join=joined)
    response, turns = await answer(served, frame_of(asked()), context)
    assert [topic.name for topic in response.topics] == NAMES
    assert parts == [PART_MAX] * (COUNT // PART_MAX)
    assert turns >= 2 * COUNT // STEP_ELEMENTS


async def test_a_part_may_wait_and_another_be_refused(context):
    async def later(request):
        await trio.lowlevel.checkpoint()
        return echo(request, None)

    def handle(request, context):
        if request.topics[0].name == NAMES[PART_MAX]:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return Deferred(lambda: later(request))

    served = dispatcher(handle, parts=by_topic, join=joined)
    response, _ = await answer(served, frame_of(asked()), context)
    codes = [topic.error_code for topic in response.topics]
    assert codes == [0] * PART_MAX + [42] * PART_MAX + [0] * (COUNT - 2 * PART_MAX)


async def test_a_handler_that_takes_all_of_it_gets_all_of_it(context):
    response, _ = await answer(dispatcher(echo), frame_of(asked()), context)
    assert [topic.name for topic in response.topics] == NAMES


async def test_what_is_to_have_no_answer_has_none(context):
    exchange = dispatcher(lambda *_: NO_RESPONSE).handle(frame_of(asked()), context)
    assert await exchange.result.wait() is NO_RESPONSE


async def test_a_body_that_is_none_closes_the_connection(context):
    exchange = dispatcher(echo).handle(frame_of(asked())[:-5], context)
    with pytest.raises(CloseConnection, match=r"^METADATA v9: "):
        await exchange.result.wait()


@pytest.mark.parametrize("error", [CloseConnection("so"), AssertionError("so")])
async def test_what_is_no_refusal_gets_out(context, error):
    def handle(request, context):
        raise error

    exchange = dispatcher(handle).handle(frame_of(asked()), context)
    with pytest.raises(type(error), match="so"):
        await exchange.result.wait()


async def test_an_answer_that_does_not_fit_its_version_closes_the_connection(context):
    def handle(request, context):
        return MetadataResponse(cluster_id=None, controller_id=2**40, topics=[])

    exchange = dispatcher(handle).handle(frame_of(asked()), context)
    with pytest.raises(CloseConnection, match="does not fit"):
        await exchange.result.wait()


async def test_an_observer_sees_what_is_served(context):
    seen = []
    served = dispatcher(echo, parts=by_topic, join=joined)
    served.observer = lambda exchange, size, context: seen.append(len(exchange.request.topics))
    await answer(served, frame_of(asked()), context)
    assert seen == [PART_MAX] * (COUNT // PART_MAX)


def test_a_request_of_ordinary_size_is_answered_at_once(context):
    frame = frame_of(asked(NAMES[:3_000]))
    assert len(frame) < LARGE_MIN_BYTES
    exchange = dispatcher(echo, parts=by_topic, join=joined).handle(frame, context)
    assert len(exchange.result.topics) == 3_000


async def test_what_was_made_in_steps_is_encoded_in_steps():
    """Metadata of all topics is a small request."""
    turns = 0

    class Turns(trio.abc.Instrument):
        def before_task_step(self, task):
            nonlocal turns
            turns += 1

    exchange = InFlightRequest(
        Handler(METADATA, echo, metadata.refuse),
        RequestHeader(METADATA.key, VERSION, 1, "c"),
        None,
        None,
    )
    trio.lowlevel.add_instrument(Turns())
    answer = await encoded_in_steps(exchange, echo(asked(), None))
    assert isinstance(answer, EncodedAnswer)
    assert turns >= COUNT // STEP_ELEMENTS
    assert await encoded_in_steps(exchange, NO_RESPONSE) is NO_RESPONSE


class TestParts:
    def test_all_topics_are_one_part(self):
        request = MetadataRequest(topics=None)
        assert list(by_topic(request)) == [request]

    def test_topics_are_created_only_if_they_are_not_too_many(self):
        (handler,) = metadata.HANDLERS
        few = list(handler.parts(asked(NAMES[:5_000])))
        assert [len(part.topics) for part in few] == [1_000] * 5
        assert all(part.allow_auto_topic_creation for part in few)
        assert not any(part.allow_auto_topic_creation for part in handler.parts(asked()))

    def test_partitions_of_a_commit(self):
        topics = [
            OffsetCommitRequestTopic(
                name=name,
                partitions=[OffsetCommitRequestPartition(partition_index=i) for i in range(count)],
            )
            for name, count in [("a", 2_500), ("b", 0), ("c", 300), ("d", 700)]
        ]
        request = OffsetCommitRequest(group_id="g", member_id="m", topics=topics)
        parts = list(by_partition(request))
        assert all((part.group_id, part.member_id) == ("g", "m") for part in parts)
        sizes = [sum(len(topic.partitions) for topic in part.topics) for part in parts]
        assert max(sizes) <= PART_MAX
        assert len(parts) == 4
        found = {}
        for part in parts:
            for topic in part.topics:
                indexes = [partition.partition_index for partition in topic.partitions]
                found.setdefault(topic.name, []).extend(indexes)
        assert found == {
            "a": list(range(2_500)),
            "b": [],
            "c": list(range(300)),
            "d": list(range(700)),
        }
        assert [topic.name for topic in request.topics] == ["a", "b", "c", "d"]
        assert len(request.topics[0].partitions) == 2_500

    def test_answers_of_a_commit_are_one(self):
        responses = [
            OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name=name)]) for name in "ab"
        ]
        handler = next(each for each in offset_commit.HANDLERS if each.api is OFFSET_COMMIT)
        assert [topic.name for topic in handler.join(responses).topics] == ["a", "b"]
