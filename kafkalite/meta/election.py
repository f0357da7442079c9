"""Who leads a partition when brokers come and go."""

from collections.abc import Collection
from dataclasses import replace

from kafkalite.meta.image import NO_LEADER, PartitionImage


def elect(partition: PartitionImage, live: Collection[int], *, unclean: bool) -> PartitionImage:
    """Return the partition as it is to be with these brokers alive (rules I178-I180).

    The leader stays if it lives. Else the first live in-sync replica, in the order of the
    assignment, leads; if there is none, nobody, or with `unclean` the first live replica at the
    price of records that it lacks. Dead brokers leave the in-sync replicas, unless none would be
    left: those who were in sync last are the ones to wait for.
    """
    isr = tuple(broker for broker in partition.isr if broker in live)
    leader = partition.leader
    if leader not in isr:
        leader = next((broker for broker in partition.replicas if broker in isr), NO_LEADER)
    if leader == NO_LEADER and unclean:
        leader = next((broker for broker in partition.replicas if broker in live), NO_LEADER)
        isr = (leader,) if leader != NO_LEADER else ()
    isr = isr or partition.isr
    if leader == partition.leader and isr == partition.isr:
        return partition
    return replace(
        partition,
        leader=leader,
        isr=isr,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
    )
