import pytest
import trio

from kafkalite.meta.bisect_commit import commit_by_topic, with_failure
from kafkalite.meta.changes import (
    BrokerUnregistered,
    ConfigsChanged,
    PartitionChanged,
    TopicDeleted,
)
from kafkalite.meta.image import PartitionImage
from kafkalite.meta.store import OutcomeUnknown, StoreConflict
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.meta.meta_kit import topic_id

BROKER = BrokerUnregistered(broker_id=3, broker_epoch=1)
FIRST = StoreConflict("/first")


def moved(name, index=0):
    state = PartitionImage((1, 2, 3), (1, 2), 1)
    return PartitionChanged(name=name, topic_id=topic_id(1), index=index, state=state)


class Store:
    """Contradicts what touches bad topics; fails with `error` after some commits."""

    def __init__(self, *bad, error=None, after=0):
        self.bad, self.error, self.after = bad, error, after
        self.made = []

    async def commit(self, changes):
        await trio.lowlevel.checkpoint()
        for change in changes:
            if getattr(change, "name", getattr(change, "resource_name", "")) in self.bad:
                raise StoreConflict(f"/{change}")
        if self.error is not None and len(self.made) >= self.after:
            raise self.error
        self.made += changes


async def test_only_the_bad_topic_is_left_and_brokers_come_last():
    changes = [BROKER, *(moved(f"t{n}", index) for index in range(2) for n in range(9))]
    store = Store("t4")
    missing, error = await commit_by_topic(changes, FIRST, store.commit)
    assert missing == [moved("t4", 0), moved("t4", 1)]
    assert isinstance(error, StoreConflict)
    assert len(store.made) == len(changes) - 2
    assert store.made[-1] == BROKER


async def test_settings_belong_to_their_topic():
    own = ConfigsChanged(resource_type=2, resource_name="a", values={})
    gone = TopicDeleted(name="b", topic_id=topic_id(2))
    store = Store("a")
    missing, _ = await commit_by_topic([moved("a"), own, gone], FIRST, store.commit)
    assert missing == [moved("a"), own]
    assert store.made == [gone]


async def test_one_topic_alone_is_not_tried_again():
    store = Store()
    changes = [moved("a", 0), moved("a", 1)]
    assert await commit_by_topic(changes, FIRST, store.commit) == (changes, FIRST)
    assert store.made == []


@pytest.mark.parametrize(
    "failure", [OutcomeUnknown("lost"), KafkaError(ErrorCode.NOT_CONTROLLER, "another")]
)
async def test_nothing_more_is_tried_after_another_failure(failure):
    """Another controller, or no answer: what is not known to be made is missing."""
    changes = [moved(f"t{n}") for n in range(4)]
    store = Store("t0", error=failure, after=1)
    missing, error = await commit_by_topic(changes, FIRST, store.commit)
    assert error is failure
    assert store.made == [moved("t1")]
    assert sorted(change.name for change in missing) == ["t0", "t2", "t3"]


def test_refusals_and_what_was_made_stand():
    refusal = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "no")
    made, missing = moved("a"), moved("b")
    results = [refusal, [], [made], [made, missing]]
    assert with_failure(results, [missing], FIRST) == [refusal, [], [made], FIRST]
