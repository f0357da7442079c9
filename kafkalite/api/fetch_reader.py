"""The replica or client that a Fetch comes from, and what it may read."""

from dataclasses import dataclass

from kafkalite.api.context import RequestContext
from kafkalite.isr.partition_read import IsolationLevel
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.fetch import FetchRequest

FIRST_VERSION_WITH_RACKS = 11

CONSUMER = -1
"""Replica id of ordinary consumers; tools that compare replicas send less."""
NO_RACK = ""


@dataclass(slots=True, kw_only=True)
class FetchReader:
    """The replica or client that fetches, and up to where it may read.

    Attributes:
        replica_id: of a follower, which reads up to the log end; negative for others.
        broker_epoch: of the follower (KIP-903); -1 before v15.
        isolation: what a consumer may see.
        rack: of the consumer; NO_RACK if it did not tell.
        may_follow: it may read from a follower (rule 78).
        is_follower: it is a broker.
    """

    replica_id: int
    broker_epoch: int
    isolation: IsolationLevel
    rack: str
    may_follow: bool
    is_follower: bool = False


ORDINARY: dict[int, FetchReader] = {
    level.value: FetchReader(
        replica_id=CONSUMER, broker_epoch=-1, isolation=level, rack=NO_RACK, may_follow=True
    )
    for level in IsolationLevel
}
"""Consumers of today that do not say where they are: nearly all, so they are not made anew."""


def reader_of(request: FetchRequest, context: RequestContext) -> FetchReader:
    """Return who fetches.

    Raises:
        KafkaError: CLUSTER_AUTHORIZATION_FAILED for a follower on a listener of clients,
            INVALID_REQUEST for an isolation level that there is not.
    """
    state = request.replica_state
    if (
        state.replica_id == request.replica_id == CONSUMER
        and not request.rack_id
        and context.api_version >= FIRST_VERSION_WITH_RACKS
        and request.isolation_level in ORDINARY
    ):
        return ORDINARY[request.isolation_level]
    replica_id = request.replica_id if request.replica_id != CONSUMER else state.replica_id
    if replica_id >= 0 and not context.is_inter_broker:
        raise KafkaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"followers do not fetch by listener {context.listener}",
        )
    knows_replicas = context.api_version >= FIRST_VERSION_WITH_RACKS or replica_id < CONSUMER
    return FetchReader(
        replica_id=replica_id,
        broker_epoch=state.replica_epoch,
        isolation=_isolation(request.isolation_level),
        rack=request.rack_id or NO_RACK,
        may_follow=replica_id < 0 and knows_replicas,
        is_follower=replica_id >= 0,
    )


def _isolation(level: int) -> IsolationLevel:
    try:
        return IsolationLevel(level)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"isolation level {level}") from None
