"""The assignor `uniform`: as equal as can be, and as few partitions moved; after Kafka's.

Where all members read the same topics each gets its share of all partitions. Otherwise topics are
given out one by one to those who have least, and then balanced.
"""

from collections.abc import Sequence
from uuid import UUID

from kafkalite.group.assignors.assignment import GroupSpec, MemberSpec, partition_count
from kafkalite.group.java_order import copied_set_order, string_hash, uuid_hash
from kafkalite.group.slices import Sliced, sliced_hash_map_order

BALANCING_ROUNDS_MAX = 16
PARTITIONS_PER_STEP = 256
NOBODY = -1

Result = dict[str, dict[UUID, list[int]]]


def assign_uniformly(group: GroupSpec) -> Sliced[Result]:
    """Return an assignment that differs by at most one partition, where subscriptions let it."""
    by_id = {member.member_id: member for member in group.members}
    order = yield from sliced_hash_map_order(by_id, string_hash)
    members = [by_id[key] for key in order]
    if not members:
        return {}
    if group.is_homogeneous:
        return (yield from _assign_same_topics(group, members))
    different = _DifferentTopics(group, members)
    yield from different.read()
    return (yield from different.assign())


def _assign_same_topics(group: GroupSpec, members: Sequence[MemberSpec]) -> Sliced[Result]:
    counts = group.partition_counts
    topics = copied_set_order(members[0].topic_ids, uuid_hash)
    wanted = {*topics}
    held: dict[UUID, set[int]] = {}
    for member in members:
        for topic_id, partitions in member.assigned.items():
            held.setdefault(topic_id, set()).update(partitions)
        yield 1 + partition_count(member.assigned) // 8
    free = []
    for topic_id in topics:
        taken = held.get(topic_id, ())
        for start in range(0, counts[topic_id], PARTITIONS_PER_STEP):
            end = min(start + PARTITIONS_PER_STEP, counts[topic_id])
            free += [(topic_id, number) for number in range(start, end) if number not in taken]
            yield 1 + (end - start) // 8
    share, extras = divmod(sum(counts[topic_id] for topic_id in topics), len(members))
    result: Result = {}
    unfilled: list[tuple[str, int]] = []
    for position, member in enumerate(members):
        quota, is_extra = share, extras > 0
        quota += is_extra
        own = result[member.member_id] = {}
        for topic_id, partitions in member.assigned.items():
            if topic_id not in wanted:
                continue
            keeps = partitions[:quota]
            quota -= len(keeps)
            if keeps:
                own[topic_id] = [*keeps]
            free += [(topic_id, partition) for partition in partitions[len(keeps) :]]
        if quota and is_extra and len(members) - position > extras:
            # Somebody later may fill the extra place without anything being moved.
            quota -= 1
            is_extra = False
        if quota:
            unfilled.append((member.member_id, quota))
        extras -= is_extra
        yield 1 + partition_count(member.assigned) // 8
    left = iter(free)
    for member_id, quota in unfilled:
        own = result[member_id]
        for _, (topic_id, partition) in zip(range(quota), left, strict=False):
            own.setdefault(topic_id, []).append(partition)
        yield 1 + quota // 4
    return result


class _DifferentTopics:
    """Members are numbers here, in the order of the group's hash map."""

    def __init__(self, group: GroupSpec, members: Sequence[MemberSpec]) -> None:
        self.counts = group.partition_counts
        self.members = members
        self.readers: dict[UUID, list[int]] = {}
        self.owners: dict[UUID, list[int]] = {}
        self.loads = [0] * len(members)

    def read(self) -> Sliced[None]:
        """Take up who reads what, and who has what."""
        for number, member in enumerate(self.members):
            for topic_id in member.topic_ids:
                self.readers.setdefault(topic_id, []).append(number)
            yield 1 + len(member.topic_ids) // 4
        for topic_id in self.readers:
            self.owners[topic_id] = [NOBODY] * self.counts[topic_id]
        yield len(self.owners)
        for number, member in enumerate(self.members):
            reads = {*member.topic_ids} if member.assigned else ()
            for topic_id, partitions in member.assigned.items():
                if topic_id in reads:
                    self.loads[number] += len(partitions)
                    for partition in partitions:
                        self.owners[topic_id][partition] = number
            yield 1 + len(reads) // 4 + partition_count(member.assigned) // 8

    def assign(self) -> Sliced[Result]:
        walk = _Walk(self.loads)
        open_topics = [topic for topic, owners in self.owners.items() if NOBODY in owners]
        for topic_id in sorted(open_topics, key=self._topic_order):
            walk.begin(self.readers[topic_id])
            yield 1 + len(self.readers[topic_id]) // 8
            for partition, owner in enumerate(self.owners[topic_id]):
                if owner == NOBODY:
                    self._give(topic_id, partition, walk.next_least())
                    yield 1
        yield from self._balance(walk)
        result: Result = {member.member_id: {} for member in self.members}
        for topic_id, owners in self.owners.items():
            for partition, number in enumerate(owners):
                member_id = self.members[number].member_id
                result[member_id].setdefault(topic_id, []).append(partition)
                if not partition % PARTITIONS_PER_STEP:
                    yield PARTITIONS_PER_STEP // 4
        return result

    def _balance(self, walk: "_Walk") -> Sliced[None]:
        """Move partitions of one topic after the other until a whole round moves nothing."""
        shared = [topic_id for topic_id, readers in self.readers.items() if len(readers) > 1]
        topics = sorted(shared, key=self._topic_order)
        last_moved = NOBODY
        for _ in range(BALANCING_ROUNDS_MAX if topics else 0):
            for position, topic_id in enumerate(topics):
                if position == last_moved:
                    return
                moved = yield from self._balance_topic(walk, topic_id)
                if moved or last_moved == NOBODY:
                    last_moved = position

    def _balance_topic(self, walk: "_Walk", topic_id: UUID) -> Sliced[int]:
        """Move partitions from who has most to who has least; return how many."""
        difference = walk.begin(self.readers[topic_id])
        yield 1 + len(self.readers[topic_id]) // 8
        if difference <= 1:
            return 0
        owners = self.owners[topic_id]
        left: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            left.setdefault(owner, []).append(partition)
        yield len(owners) // 8
        moved = 0
        while not walk.is_balanced:
            most = walk.next_most()
            while most != NOBODY and not left.get(most):
                walk.exclude()
                most = walk.next_most()
                yield 1
            if most == NOBODY:
                break
            partition = left[most].pop()
            least = walk.next_least()
            if walk.is_balanced:
                break
            self._give(topic_id, partition, least)
            moved += 1
            yield 2
        return moved

    def _give(self, topic_id: UUID, partition: int, number: int) -> None:
        before = self.owners[topic_id][partition]
        if before != NOBODY:
            self.loads[before] -= 1
        self.owners[topic_id][partition] = number
        self.loads[number] += 1

    def _topic_order(self, topic_id: UUID) -> tuple[float, int, int, int]:
        """Most partitions for each reader first; topic ids as Kafka compares them, signed."""
        readers = len(self.readers[topic_id])
        high, low = topic_id.int >> 64, topic_id.int & 0xFFFF_FFFF_FFFF_FFFF
        return -self.counts[topic_id] / readers, readers, _signed(high), _signed(low)


class _Walk:
    """Finds who has least and who has most of a topic's readers, while partitions are given.

    The loads are read when a topic begins, and not again: two ranges grow from both ends of the
    sorted readers, each with a level that stands for the load of all in it.
    """

    def __init__(self, loads: list[int]) -> None:
        self._loads = loads
        self._sorted: list[int] = []
        self._least_end = self._least_level = self._least_next = 0
        self._most_start = self._most_end = self._most_level = self._most_next = 0

    def begin(self, readers: Sequence[int]) -> int:
        """Start with a topic; return by how much its readers' loads differ.

        Args:
            readers: ascending, so that of equals the lower number comes first.
        """
        loads = self._loads
        self._sorted = sorted(readers, key=loads.__getitem__)
        least, most = loads[self._sorted[0]], loads[self._sorted[-1]]
        size = len(self._sorted)
        self._least_end, self._least_level, self._least_next = 0, least - 1, 0
        self._most_start = self._most_end = size
        self._most_level, self._most_next = most + 1, size - 1
        return most - least

    @property
    def is_balanced(self) -> bool:
        """Whether nothing is gained by moving one more."""
        return self._most_level - self._least_level <= 1

    def next_least(self) -> int:
        """Return who is to get the next partition."""
        if self._least_next >= self._least_end:
            self._least_level += 1
            while (
                self._least_end < len(self._sorted)
                and self._loads[self._sorted[self._least_end]] == self._least_level
            ):
                self._least_end += 1
            self._least_next = 0
        self._least_next += 1
        return self._sorted[self._least_next - 1]

    def next_most(self) -> int:
        """Return who is to give the next partition up; NOBODY if there is nobody left."""
        if self._most_next < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most_level = self._loads[self._sorted[self._most_start - 1]]
            else:
                self._most_level -= 1
            while (
                self._most_start > 0
                and self._loads[self._sorted[self._most_start - 1]] == self._most_level
            ):
                self._most_start -= 1
            self._most_next = self._most_end - 1
        if self._most_next < 0:
            return NOBODY
        self._most_next -= 1
        return self._sorted[self._most_next + 1]

    def exclude(self) -> None:
        """Leave out whom `next_most` returned last: it has nothing of this topic to give up."""
        last, end = self._most_next + 1, self._most_end - 1
        self._sorted[last], self._sorted[end] = self._sorted[end], self._sorted[last]
        self._most_end -= 1


def _signed(half: int) -> int:
    return half - (1 << 64) if half >> 63 else half
