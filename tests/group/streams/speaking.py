"""Streams threads that speak to a broker over a socket."""

import time

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafkalite.wire.messages.streams_group_heartbeat import (
    STREAMS_GROUP_HEARTBEAT,
    StreamsGroupHeartbeatRequest,
)
from tests.group.streams.harness import joining

PATIENCE_S = 30


def heartbeat(client, group_id, thread, **fields):
    """A heartbeat; the thread learns its epoch, and what it has, from the answer."""
    request = StreamsGroupHeartbeatRequest(
        group_id=group_id, member_id=thread.member_id, member_epoch=thread.epoch
    )
    for name, value in fields.items():
        setattr(request, name, value)
    response = client.ask(STREAMS_GROUP_HEARTBEAT, 0, request)
    if not response.error_code:
        thread.epoch = response.member_epoch
    return response


def join(client, group_id, thread, **fields):
    """Join; until the coordinator has loaded its log it refuses."""
    find_coordinator(client, group_id)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        response = heartbeat(client, group_id, thread, **(joining(thread) | fields))
        unready = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
        if response.error_code not in unready or time.monotonic() > deadline:
            return response
        time.sleep(0.01)


def find_coordinator(client, group_id):
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id])
    return client.ask(FIND_COORDINATOR, 4, request)
