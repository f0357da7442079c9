"""Which brokers and leaders a client can reach by the listener that it came in by."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkalite.api.context import RequestContext
from kafkalite.meta.image import NO_LEADER
from kafkalite.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkalite.meta.image import Image, PartitionImage

Endpoints = Mapping[int, tuple[str, int]]
"""Host and port of each live broker that has the client's listener, by id (rule 17)."""


def endpoints_for(context: RequestContext) -> dict[int, tuple[str, int]]:
    """Return the brokers that a client can reach, in the order of their ids."""
    brokers = context.services.metadata.image.brokers
    found = {broker_id: context.endpoint(brokers[broker_id]) for broker_id in sorted(brokers)}
    return {broker_id: endpoint for broker_id, endpoint in found.items() if endpoint is not None}


def leader_for(
    state: "PartitionImage",
    endpoints: Endpoints,
    image: "Image",
    *,
    unreachable: ErrorCode = ErrorCode.LISTENER_NOT_FOUND,
) -> tuple[int, ErrorCode]:
    """Return the leader as a client is told it, and what to say about it (rule 18).

    One that is not there, or not for this client, is none.
    """
    if state.leader in endpoints:
        return state.leader, ErrorCode.NONE
    is_alive = state.leader in image.brokers
    return NO_LEADER, unreachable if is_alive else ErrorCode.LEADER_NOT_AVAILABLE


def offline_replicas(state: "PartitionImage", endpoints: Endpoints) -> list[int]:
    """Return the replicas on brokers that the client cannot reach, as Kafka's metadata cache."""
    return [broker for broker in state.replicas if broker not in endpoints]
