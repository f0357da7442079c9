"""What is asked of a broker at a time has a bound."""

from dataclasses import replace

from kafkalite import Broker
from kafkalite.observe.cluster import PARTITIONS_AT_ONCE
from kafkalite.wire.api import ApiKey
from tests.observe.observe_kit import Http

PARTITIONS = 2 * PARTITIONS_AT_ONCE + 1


def test_offsets_of_many_partitions_are_asked_for_piece_by_piece():
    """No request of the console holds the loop for all partitions of a topic."""
    asked = []
    with Broker(http=True) as broker:
        broker.create_topic("wide", partitions=PARTITIONS)
        broker.produce("wide", b"x", partition=PARTITIONS - 1)
        dispatcher = broker.server.dispatcher
        handler = dispatcher.handler(ApiKey.LIST_OFFSETS)

        def noted(request, context):
            asked.append(sum(len(topic.partitions) for topic in request.topics))
            return handler.handle(request, context)

        dispatcher._handlers[ApiKey.LIST_OFFSETS] = replace(handler, handle=noted)
        answer = Http(f"{broker.http_url}/api/v1").get("/topics/wide")
    assert answer["records"] == 1
    assert asked
    assert max(asked) <= PARTITIONS_AT_ONCE
