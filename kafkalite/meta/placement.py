"""Which brokers get the replicas of new partitions."""

from collections.abc import Mapping


def place_replicas(
    racks: Mapping[int, str | None], *, first: int, count: int, replication_factor: int, start: int
) -> list[tuple[int, ...]]:
    """Return the replicas of `count` partitions of a topic, the preferred leader first.

    Leaders go around the brokers, beginning with number `start` of them; the replicas of a
    partition lie on as many racks as there are (KIP-36). With each round of the topic's partitions
    the others move on by one, so that all brokers take over from one that dies, and not just its
    neighbour; a whole round has as many replicas on each broker (rule 229).

    Args:
        racks: the live brokers and their racks; at least `replication_factor` of them.
        first: number of the first partition to place.
        count: partitions to place.
        replication_factor: replicas of each.
        start: any number, the same for all partitions of a topic; which broker comes first.
    """
    assert 1 <= replication_factor <= len(racks)
    circle = _alternate_racks(racks)
    brokers, shifts = len(circle), max(len(circle) - 1, 1)
    period = brokers * shifts
    chosen = [
        _choose(
            circle,
            racks,
            leader=(start + index) % brokers,
            shift=(start // brokers + index // brokers) % shifts,
            replication_factor=replication_factor,
        )
        for index in range(first, first + min(count, period))
    ]
    return [chosen[index % period] for index in range(count)]


def _alternate_racks(racks: Mapping[int, str | None]) -> list[int]:
    """Return the brokers in an order in which neighbours lie on different racks, if they can."""
    by_rack: dict[str, list[int]] = {}
    for broker_id in sorted(racks):
        by_rack.setdefault(racks[broker_id] or "", []).append(broker_id)
    rows = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(map(len, rows))
    return [row[turn] for turn in range(longest) for row in rows if turn < len(row)]


def _choose(
    circle: list[int],
    racks: Mapping[int, str | None],
    *,
    leader: int,
    shift: int,
    replication_factor: int,
) -> tuple[int, ...]:
    count = len(circle)
    chosen = [circle[leader]]
    used_racks = {racks[circle[leader]]}
    used_racks.discard(None)
    # Each round takes one broker of each rack that the round has not used, in circle order; the
    # others of the circle are gone through from `shift` on, as far as that is needed.
    while len(chosen) < replication_factor:
        for step in range(count - 1):
            broker_id = circle[(leader + 1 + (shift + step) % (count - 1)) % count]
            if broker_id in chosen or racks[broker_id] in used_racks:
                continue
            chosen.append(broker_id)
            if racks[broker_id] is not None:
                used_racks.add(racks[broker_id])
            if len(chosen) == replication_factor:
                break
        used_racks.clear()
    return tuple(chosen)
