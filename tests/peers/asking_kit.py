"""Requests to a broker of the same process over connections of their own."""

import trio

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.header import decode_response_header
from kafkalite.wire.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkalite.wire.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.raw_client import encoded, framed


async def exchange(host, port, frame):
    """Send a request over a connection of its own; return the answer without its size."""
    async with await trio.open_tcp_stream(host, port) as stream:
        await stream.send_all(framed(frame))
        answer = bytearray()
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            received = await stream.receive_some()
            assert received
            answer += received
    return memoryview(answer)[4:]


async def ask(broker, api, version, request):
    """Send one request to a broker; return the response."""
    host, port = broker.bootstrap.split(":")
    body = await exchange(host, int(port), encoded(api, version, request))
    _, position = decode_response_header(api, version, body)
    return api.decode_response(version, body, position)


async def commit_offset(broker, group, topic, offset):
    partition = OffsetCommitRequestPartition(committed_offset=offset)
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=topics)
    response = await ask(broker, OFFSET_COMMIT, 8, request)
    return response.topics[0].partitions[0].error_code


async def committed_offset(broker, group, topic):
    topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    response = await ask(broker, OFFSET_FETCH, 7, OffsetFetchRequest(group_id=group, topics=topics))
    assert response.error_code == ErrorCode.NONE
    return response.topics[0].partitions[0].committed_offset
