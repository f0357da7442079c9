"""Leader election when brokers come, go or announce it, and when replicas are exchanged.

`live` are brokers that live; those of them that are shutting down keep what they lead, and get
nothing. Each function returns the partition as it is to be, the very same if nothing changes.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from kafkalite.meta.image import NO_LEADER, PartitionImage


def elect_offline(
    partition: PartitionImage,
    live: Collection[int],
    *,
    unclean: bool,
    shutting_down: Collection[int] = (),
) -> PartitionImage:
    """Return the partition as it is to be with these brokers alive (rules 178-180).

    The leader stays if it lives. Else the first live in-sync replica, in the order of the
    assignment, leads; if there is none, nobody, or with `unclean` the first live replica at the
    price of records that it lacks. Dead brokers leave the in-sync replicas, unless none would be
    left: those who were in sync last are the ones to wait for.
    """
    isr = tuple(broker for broker in partition.isr if broker in live)
    leader = partition.leader
    if leader not in isr:
        eligible = [broker for broker in live if broker not in shutting_down]
        leader = _first(partition.replicas, isr, eligible)
        if leader == NO_LEADER and unclean:
            leader = _first(partition.replicas, eligible)
            isr = (leader,) if leader != NO_LEADER else isr
    return written(partition, leader=leader, isr=isr or partition.isr)


def elect_preferred(partition: PartitionImage, eligible: Collection[int]) -> PartitionImage:
    """Return the partition led by its first replica, if that is in sync and eligible (rule 181)."""
    leader = _first(partition.replicas[:1], partition.isr, eligible)
    return partition if leader == NO_LEADER else written(partition, leader=leader)


def elect_for_shutdown(
    partition: PartitionImage, broker_id: int, eligible: Collection[int]
) -> PartitionImage:
    """Return the partition without a broker that is about to stop (rule 182).

    It stays as it is if nobody else could lead it, or (rule 183) has a replica of it.
    """
    if broker_id not in partition.isr or len(partition.replicas) == 1:
        return partition
    isr = tuple(broker for broker in partition.isr if broker != broker_id)
    leader = partition.leader
    if leader == broker_id:
        leader = _first(partition.replicas, isr, eligible)
        if leader == NO_LEADER:
            return partition
    return written(partition, leader=leader, isr=isr or partition.isr)


def elect_for_reassignment(partition: PartitionImage, eligible: Collection[int]) -> int:
    """Return who leads once only the target replicas are left; NO_LEADER if none of them can."""
    target = partition.target
    if partition.leader in target:
        return partition.leader
    return _first(target, partition.isr, eligible)


def written(
    partition: PartitionImage, *, leader: int, isr: tuple[int, ...] | None = None
) -> PartitionImage:
    """Return the partition as the controller writes it: in a new epoch (rule 180)."""
    isr = partition.isr if isr is None else isr
    assert isr
    assert leader == NO_LEADER or leader in isr
    if leader == partition.leader and isr == partition.isr:
        return partition
    return replace(
        partition,
        leader=leader,
        isr=isr,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
    )


def _first(replicas: Iterable[int], *among: Collection[int]) -> int:
    """Return the first replica that is in all of these, NO_LEADER if there is none."""
    return next((broker for broker in replicas if all(broker in each for each in among)), NO_LEADER)
