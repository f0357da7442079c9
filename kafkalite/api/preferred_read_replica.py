"""The replica that a consumer should rather read from (KIP-392, rule 79)."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext
    from kafkalite.isr.partition import Partition

RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The one value of `replica.selector.class` that means something here."""


def preferred_replica(
    partition: "Partition", offset: int, rack: str, context: "RequestContext"
) -> int | None:
    """Return the broker in the consumer's rack that it should read from; None for this one.

    That is the in-sync replica furthest on, of those that have the offset and that the client can
    reach. A leader in the rack itself is as near as any.

    Args:
        partition: in any role; only its leader sends consumers elsewhere.
        offset: that the consumer fetches from.
        rack: of the consumer, not empty.
        context: of its request.
    """
    leader = partition.leader
    services = context.services
    if (
        leader is None
        or services.config.optional_str("replica.selector.class") != RACK_AWARE_SELECTOR
    ):
        return None
    brokers = services.metadata.image.brokers
    own = brokers.get(leader.broker_id)
    if own is not None and own.rack == rack:
        return None
    best = None
    for follower in leader.followers.values():
        broker = brokers.get(follower.replica_id)
        if (
            broker is None
            or broker.rack != rack
            or context.endpoint(broker) is None
            or follower.replica_id not in leader.state.isr
            or not 0 <= follower.log_start_offset <= offset <= follower.log_end_offset
        ):
            continue
        if best is None or follower.log_end_offset > best.log_end_offset:
            best = follower
    return None if best is None else best.replica_id
