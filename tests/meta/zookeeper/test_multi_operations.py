from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.meta.changes import (
    BrokerRegistered,
    BrokerUnregistered,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    snapshot,
)
from kafkalite.meta.controller import decide
from kafkalite.meta.events import RegisterBroker
from kafkalite.meta.image import Image, PartitionImage
from kafkalite.meta.zookeeper import multi_operations
from kafkalite.meta.zookeeper.multi_operations import (
    Create,
    Delete,
    Set,
    check_size,
    operations,
    split_commit,
)
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.meta.meta_kit import ENDPOINTS, events, image, rules, topic_id


class Nodes:
    """What ZooKeeper makes of transactions: data and versions by path."""

    def __init__(self):
        self.data = {"/latest_producer_id_block": (b"", 0)}

    def apply(self, made):
        for operation in made:
            path = operation.path
            match operation:
                case Create(data=data):
                    assert path not in self.data
                    self.data[path] = (data, 0)
                case Set(data=data, version=version):
                    assert version in (-1, self.data[path][1])
                    self.data[path] = (data, self.data[path][1] + 1)
                case Delete():
                    assert not any(other.startswith(f"{path}/") for other in self.data)
                    del self.data[path]


def states(count, **attributes):
    return tuple(PartitionImage((1, 2, 3), (1, 2, 3), 1, **attributes) for _ in range(count))


def created(name, number, count=1):
    return TopicCreated(name=name, topic_id=topic_id(number), partitions=states(count))


@settings(max_examples=80, deadline=None)
@given(st.lists(events, max_size=12))
def test_nodes_say_what_the_image_does(chosen):
    """However an image came about, its nodes are those of one that was written at once."""
    now = image(brokers=(1, 2))
    nodes = Nodes()
    nodes.apply(operations(Image(), now, snapshot(now), controller_epoch=1))
    for number, event in enumerate(chosen, 1):
        if isinstance(event, RegisterBroker):
            # Without an epoch it would be a lone broker, which has no ZooKeeper.
            event = replace(event, broker_epoch=number)
        try:
            changes = decide(event, now, rules())
        except KafkaError:
            continue
        after = now.apply(changes)
        nodes.apply(operations(now, after, changes, controller_epoch=1))
        now = after
    for topic in now.topics.values():
        for index, state in enumerate(topic.partitions):
            path = f"/brokers/topics/{topic.name}/partitions/{index}/state"
            assert nodes.data[path][1] == state.partition_epoch
    whole = Nodes()
    whole.apply(operations(Image(), now, snapshot(now), controller_epoch=1))
    passing = ("/kafkalite/retired", "/latest_producer_id_block")
    assert {
        path: data for path, (data, _) in nodes.data.items() if not path.startswith(passing)
    } == {path: data for path, (data, _) in whole.data.items() if not path.startswith(passing)}


def test_a_commit_that_fits_is_one_part():
    changes = [created("a", 1), BrokerUnregistered(broker_id=1), created("b", 2)]
    assert split_commit(changes, Image()) == [changes]


def test_long_commits_are_parted_and_lead_to_the_same_image(monkeypatch):
    monkeypatch.setattr(multi_operations, "PART_BYTES_MAX", 20_000)
    before = image("z", brokers=(1,)).apply(
        [PartitionsAdded(name="z", topic_id=topic_id(1), first_index=1, partitions=states(3))]
    )
    changes = [
        BrokerUnregistered(broker_id=1),
        BrokerRegistered(broker_id=2, endpoints=ENDPOINTS),
        created("long", 10, 300),
        PartitionsAdded(name="z", topic_id=topic_id(1), first_index=4, partitions=states(200)),
        *[created(f"t{number}", 20 + number, 3) for number in range(40)],
        PartitionChanged(
            name="z", topic_id=topic_id(1), index=0, state=states(1, partition_epoch=3)[0]
        ),
        TopicDeleted(name="t1", topic_id=topic_id(21)),
    ]
    after = before.apply(changes)
    parts = split_commit(changes, before)
    assert len(parts) > 5
    assert [type(each) for each in parts[-1][-2:]] == [BrokerUnregistered, BrokerRegistered]
    now = before
    nodes = Nodes()
    nodes.apply(operations(Image(), now, snapshot(now), controller_epoch=1))
    for part in parts:
        following = now.apply(part)
        made = operations(now, following, part, controller_epoch=1)
        assert sum(len(each.path) + len(getattr(each, "data", b"")) for each in made) < 20_000
        nodes.apply(made)
        now = following
    assert (now.topics, now.brokers) == (after.topics, after.brokers)


def test_a_commit_of_very_many_changes_is_parted_however_small_they_are():
    """Counted: each part is made, written and applied in one go."""
    count = 2 * multi_operations.PART_CHANGES_MAX + 10
    before = image(brokers=(1, 2)).apply([created("a", 1, count)])
    changes = [
        BrokerUnregistered(broker_id=1),
        *[
            PartitionChanged(
                name="a", topic_id=topic_id(1), index=index, state=states(1, partition_epoch=3)[0]
            )
            for index in range(count)
        ],
    ]
    parts = split_commit(changes, before)
    assert max(map(len, parts)) == multi_operations.PART_CHANGES_MAX
    assert [each for part in parts for each in part] == [*changes[1:], changes[0]]


def test_a_topic_with_very_many_partitions_is_noted_when_it_goes(monkeypatch):
    monkeypatch.setattr(multi_operations, "PART_BYTES_MAX", 5_000)
    before = Image().apply([created("a", 1, 100)])
    change = TopicDeleted(name="a", topic_id=topic_id(1))
    made = operations(before, before.apply([change]), [change], controller_epoch=1)
    assert Set("/brokers/topics/a", b"") in made
    assert Create("/kafkalite/deleted_topics/a", b"") in made
    assert len(made) < 5


def test_a_state_that_changes_without_a_new_epoch_is_a_bug():
    before = Image().apply([created("a", 1)])
    change = PartitionChanged(
        name="a", topic_id=topic_id(1), index=0, state=PartitionImage((1,), (1,), 1)
    )
    with pytest.raises(AssertionError):
        operations(before, before.apply([change]), [change], controller_epoch=1)


def test_what_zookeeper_would_not_take_is_refused():
    check_size([("/a", b"x" * 500_000), ("/b", b"x" * 499_000)])
    with pytest.raises(KafkaError, match="are too much for ZooKeeper") as caught:
        check_size([("/a", b"x" * 500_000), ("/b", b"x" * 500_000)])
    assert caught.value.code is ErrorCode.INVALID_REQUEST
