"""The simple assignor of share groups (rule 391), with Kafka's results for the same input.

Members may share partitions: with more members than partitions each partition has several, else
each has one. Where Kafka's own depends on the order of Java's hash maps, so does this
(`java_order`).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar
from uuid import UUID

from kafkalite.group.java_order import HASH_MAP_CAPACITY, hash_map_order, string_hash
from kafkalite.group.slices import Sliced, sliced_hash_map_order

Key = TypeVar("Key", bound=Hashable)
TopicPart = tuple[UUID, int]
Assignment = dict[UUID, set[int]]

PARTS_PER_STEP = 64

_LOW_64 = 2**64 - 1
_LOW_32 = 2**32 - 1


@dataclass(slots=True)
class MemberSpec:
    """A member, as the assignor knows it.

    Attributes:
        topics: that it reads, in the order of Java's set of their names.
        target: what it was to have so far.
    """

    topics: Sequence[UUID]
    target: Mapping[UUID, Iterable[int]]


class _JavaMap(Generic[Key]):
    """A HashMap with sets for values.

    `at_head` where computeIfAbsent fills it, which puts a key before the others of its bucket.
    """

    def __init__(
        self,
        hash_code: Callable[[Key], int],
        capacity: int = HASH_MAP_CAPACITY,
        *,
        at_head: bool = False,
    ) -> None:
        self.keys: dict[Key, set[int]] = {}
        self._hash_code = hash_code
        self._at_head = at_head
        self._capacity = 1
        while self._capacity < capacity:
            self._capacity *= 2

    def put(self, key: Key) -> set[int]:
        """Return the set of a key, which is made for a new one; tables never shrink."""
        found = self.keys.get(key)
        if found is None:
            found = self.keys[key] = set()
            while 4 * len(self.keys) > 3 * self._capacity:
                self._capacity *= 2
        return found

    def ordered(self) -> Sliced[list[Key]]:
        keys = reversed(self.keys) if self._at_head else iter(self.keys)
        return sliced_hash_map_order(keys, self._hash_code, capacity=self._capacity)


def topic_id_hash(topic_id: UUID) -> int:
    """Return the hashCode of Kafka's Uuid, as an unsigned number of 32 bits."""
    mixed = (topic_id.int >> 64) ^ (topic_id.int & _LOW_64)
    return (mixed >> 32) ^ (mixed & _LOW_32)


def _part_hash(part: TopicPart) -> int:
    return (31 * topic_id_hash(part[0]) + part[1]) & _LOW_32


def assign(
    members: Mapping[str, MemberSpec],
    assignable: Mapping[UUID, Sequence[int]],
    *,
    is_homogeneous: bool,
) -> Sliced[dict[str, Assignment]]:
    """Return what each member is to have.

    Args:
        members: by their ids, in the order in which they were put into Kafka's map.
        assignable: partitions of each topic that may be given, ascending.
        is_homogeneous: all members read the same topics.
    """
    order = yield from sliced_hash_map_order(members, string_hash)
    specs = [members[member_id] for member_id in order]
    found: list[Assignment] = []
    for spec in specs:
        had = {topic: set(parts) for topic, parts in spec.target.items()}
        found.append(had)
        yield 1 + len(had) + sum(map(len, had.values())) // 16
    if is_homogeneous:
        yield from _assign_all(specs, assignable, found)
    else:
        yield from _assign_by_topic(specs, assignable, found)
    return dict(zip(order, found, strict=True))


def _assign_all(
    specs: Sequence[MemberSpec], assignable: Mapping[UUID, Sequence[int]], found: list[Assignment]
) -> Sliced[None]:
    topics = dict.fromkeys(specs[0].topics if specs else ())
    if not topics:
        for assignment in found:
            assignment.clear()
        return
    targets: list[TopicPart] = []
    for topic in topics:
        targets += [(topic, part) for part in assignable.get(topic, ())]
        yield 1 + len(assignable.get(topic, ())) // 8
    olds: list[list[TopicPart]] = []
    for spec in specs:
        old = [
            (topic, part)
            for topic in hash_map_order(spec.target, topic_id_hash)
            if topic in topics
            for part in spec.target[topic]
        ]
        olds.append(old)
        yield 1 + len(spec.target) + len(old) // 8
    every = range(len(specs))
    yield from _Round(targets, every, found, _part_hash, begins_unfilled=True).run(olds)
    for assignment in found:
        for topic in [topic for topic in assignment if topic not in topics]:
            del assignment[topic]
        yield 1 + len(assignment) // 8


def _assign_by_topic(
    specs: Sequence[MemberSpec], assignable: Mapping[UUID, Sequence[int]], found: list[Assignment]
) -> Sliced[None]:
    topics: dict[UUID, list[int]] = {}
    for index, spec in enumerate(specs):
        for topic in spec.topics:
            topics.setdefault(topic, []).append(index)
        yield 1 + len(spec.topics) // 4
    if not topics:
        for assignment in found:
            assignment.clear()
        return
    for topic in (yield from sliced_hash_map_order(topics, topic_id_hash)):
        olds = [[(topic, part) for part in spec.target.get(topic, ())] for spec in specs]
        yield len(specs) // 4
        yield from _Round(
            [(topic, part) for part in assignable.get(topic, ())],
            topics[topic],
            found,
            lambda part: part[1],
            begins_unfilled=False,
        ).run(olds)


def _desired_counts(target_count: int, member_count: int) -> tuple[int, list[int]]:
    """Return how many members share a partition at most, and how many each member is to have."""
    if not target_count or not member_count:
        return 0, [0] * member_count
    sharing = -(-member_count // target_count)
    # Kafka computes with doubles; what it rounds is close enough to matter.
    each = sharing * target_count / member_count
    steps = [_ceil(each * index) for index in range(member_count + 1)]
    return sharing, [after - before for before, after in pairwise(steps)]


def _ceil(number: float) -> int:
    whole = int(number)
    return whole if whole == number else whole + 1


class _Round:
    """One distribution of partitions among members, who keep what they may.

    Args:
        targets: partitions to give.
        who: indexes of the members that read them.
        found: what each member is to have; changed.
        part_hash: of the keys of Kafka's map.
        begins_unfilled: who has too little is looked for before anything is taken away.
    """

    def __init__(
        self,
        targets: Sequence[TopicPart],
        who: Sequence[int],
        found: list[Assignment],
        part_hash: Callable[[TopicPart], int],
        *,
        begins_unfilled: bool,
    ) -> None:
        self._targets = targets
        self._who = who
        self._found = found
        self._begins_unfilled = begins_unfilled
        self._sharing, counts = _desired_counts(len(targets), len(who))
        self._wanted = dict(zip(who, counts, strict=True))
        capacity = int((len(targets) + 1) / 0.75 + 1)
        self._holders = _JavaMap(part_hash, capacity, at_head=True)
        self._part_hash = part_hash
        self._parts: list[_JavaMap[TopicPart]] = []

    def run(self, olds: Sequence[Sequence[TopicPart]]) -> Sliced[None]:
        """Distribute them.

        Args:
            olds: what each member had, also of those that do not read them any more.
        """
        for index, old in enumerate(olds):
            own = _JavaMap(self._part_hash)
            self._parts.append(own)
            for part in old:
                self._holders.put(part).add(index)
                own.put(part)
            yield 1 + len(old)
        unfilled = set(self._unfilled()) if self._begins_unfilled else set()
        yield from self._take_from_overfilled()
        unfilled |= yield from self._take_from_overshared()
        for position, part in enumerate(self._targets):
            self._holders.put(part)
            if not position % PARTS_PER_STEP:
                yield PARTS_PER_STEP // 2
        if not self._begins_unfilled:
            unfilled = set(self._unfilled())
        if unfilled:
            yield from self._give(sorted(unfilled))

    def _size(self, index: int) -> int:
        return len(self._parts[index].keys)

    def _unfilled(self) -> Iterable[int]:
        return (index for index in self._who if self._size(index) < self._wanted[index])

    def _take_from_overfilled(self) -> Sliced[None]:
        for index, parts in enumerate(self._parts):
            wanted = self._wanted.get(index, 0)
            if self._size(index) <= wanted:
                continue
            for part in (yield from parts.ordered()):
                if self._size(index) <= wanted:
                    break
                yield 1
                self._found[index][part[0]].discard(part[1])
                self._holders.keys[part].discard(index)
                del parts.keys[part]

    def _take_from_overshared(self) -> Sliced[set[int]]:
        lost: set[int] = set()
        for part in (yield from self._holders.ordered()):
            holders = self._holders.keys[part]
            count = len(holders)
            yield 1
            for index in sorted(holders):
                if count <= self._sharing:
                    break
                if part[1] in self._found[index].get(part[0], ()):
                    self._found[index][part[0]].discard(part[1])
                    count -= 1
                    holders.discard(index)
                    self._parts[index].keys.pop(part, None)
                    lost.add(index)
        return lost

    def _give(self, walk: list[int]) -> Sliced[None]:
        """Give what too few have to those who have too little, who take turns."""
        position, has_given = 0, False
        for part in (yield from self._holders.ordered()):
            yield 1
            # Who is given it is not put down here, as in Kafka: somebody may be given it twice.
            holders = self._holders.keys[part]
            needed = self._sharing - len(holders)
            while needed > 0 and walk:
                if position >= len(walk):
                    if not has_given:
                        break
                    position, has_given = 0, False
                index = walk[position]
                position += 1
                yield 1
                if index in holders:
                    continue
                self._found[index].setdefault(part[0], set()).add(part[1])
                self._parts[index].put(part)
                needed -= 1
                has_given = True
                if self._size(index) >= self._wanted[index]:
                    position -= 1
                    walk.pop(position)
            if not walk:
                return
