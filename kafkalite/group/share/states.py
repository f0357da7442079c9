"""Which share partitions a group is to have: initialising, altering and deleting them.

Rules 388 and 392-394. Everything is a new `StatePartitions`, written as record 15; what is to be
done at share coordinators goes along with it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from kafkalite.group.kinds import EventOfKind, GroupKind
from kafkalite.group.metadata import GroupMetadata
from kafkalite.group.share.group import ShareGroup, StatePartitions, TopicState

UNKNOWN = "<UNKNOWN>"


@dataclass(slots=True)
class StatesInitialized(EventOfKind[None]):
    """An event: `InitializeStates` was done, or not; answered with None."""

    kind = GroupKind.SHARE

    group_id: str
    partitions: Mapping[UUID, Iterable[int]]
    is_done: bool


def missing(
    group: ShareGroup,
    names: Iterable[str],
    metadata: GroupMetadata,
    *,
    is_retried: bool,
) -> dict[UUID, TopicState]:
    """Return the partitions of topics that are neither initialised nor about to be (rule 388).

    With `is_retried` also those that have been about to be for too long.
    """
    known = group.states or StatePartitions()
    found = {}
    for name in names:
        topic = metadata.topic(name)
        if topic is None:
            continue
        have = set()
        for states in (known.initialized, {} if is_retried else known.initializing):
            if topic.topic_id in states:
                have |= {*states[topic.topic_id].partitions}
        lacking = tuple(index for index in range(len(topic.partitions)) if index not in have)
        if lacking:
            found[topic.topic_id] = TopicState(name, lacking)
    return found


def with_initializing(
    states: StatePartitions | None, topics: Mapping[UUID, TopicState]
) -> StatePartitions:
    """Return the states while more are initialised."""
    known = states or StatePartitions()
    return StatePartitions(
        _union(known.initializing, topics),
        known.initialized,
        {topic_id: name for topic_id, name in known.deleting.items() if topic_id not in topics},
    )


def with_initialized(
    states: StatePartitions | None,
    partitions: Mapping[UUID, Iterable[int]],
    metadata: GroupMetadata,
) -> StatePartitions:
    """Return the states when some are initialised."""
    known = states or StatePartitions()
    done = {
        topic_id: TopicState(_name(topic_id, metadata), tuple(sorted(indexes)))
        for topic_id, indexes in partitions.items()
    }
    return StatePartitions(
        _without(known.initializing, partitions), _union(known.initialized, done), known.deleting
    )


def with_failed(
    states: StatePartitions, partitions: Mapping[UUID, Iterable[int]]
) -> StatePartitions:
    """Return the states when some could not be initialised: a later heartbeat tries again."""
    return StatePartitions(
        _without(states.initializing, partitions), states.initialized, states.deleting
    )


def without_topics(states: StatePartitions, metadata: GroupMetadata) -> StatePartitions | None:
    """Return the states without topics that are gone; None if there are none of those."""
    gone = {
        topic_id
        for topics in (states.initializing, states.initialized, states.deleting)
        for topic_id in topics
        if metadata.topic_by_id(topic_id) is None
    }
    if not gone:
        return None
    return StatePartitions(
        {each: state for each, state in states.initializing.items() if each not in gone},
        {each: state for each, state in states.initialized.items() if each not in gone},
        {each: name for each, name in states.deleting.items() if each not in gone},
    )


def all_deleting(
    states: StatePartitions, metadata: GroupMetadata
) -> tuple[StatePartitions, dict[UUID, TopicState]]:
    """Return the states before their group is deleted, and what is to be deleted (rule 394)."""
    candidates = _union(states.initialized, states.initializing)
    again = {
        topic_id: TopicState(topic.name, tuple(range(len(topic.partitions))))
        for topic_id in states.deleting
        if (topic := metadata.topic_by_id(topic_id)) is not None
    }
    candidates = _union(candidates, again)
    deleting = {topic_id: state.name for topic_id, state in candidates.items()}
    return StatePartitions({}, {}, deleting), candidates


def without_deleted(states: StatePartitions, topic_ids: Iterable[UUID]) -> StatePartitions:
    """Return the states when share coordinators have forgotten topics."""
    gone = {*topic_ids}
    deleting = {each: name for each, name in states.deleting.items() if each not in gone}
    return StatePartitions(states.initializing, states.initialized, deleting)


def _union(
    first: Mapping[UUID, TopicState], second: Mapping[UUID, TopicState]
) -> dict[UUID, TopicState]:
    union = dict(first)
    for topic_id, state in second.items():
        union[topic_id] = union[topic_id] | state if topic_id in union else state
    return union


def _without(
    topics: Mapping[UUID, TopicState], partitions: Mapping[UUID, Iterable[int]]
) -> dict[UUID, TopicState]:
    left = {}
    for topic_id, state in topics.items():
        rest = state.without(partitions.get(topic_id, ()))
        if rest.partitions:
            left[topic_id] = rest
    return left


def _name(topic_id: UUID, metadata: GroupMetadata) -> str:
    topic = metadata.topic_by_id(topic_id)
    return UNKNOWN if topic is None else topic.name
