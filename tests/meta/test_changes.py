import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.meta.changes import (
    BrokerRegistered,
    BrokerUnregistered,
    ConfigsChanged,
    FeaturesUpdated,
    ImageReplaced,
    LeaderEpochsRaised,
    PartitionChanged,
    PartitionsAdded,
    ProducerIdsAllocated,
    TopicCreated,
    TopicDeleted,
    TopicIdsRetired,
    from_json,
    snapshot,
    to_json,
    to_text,
)
from kafkalite.meta.controller import decide
from kafkalite.meta.image import Image, PartitionImage
from kafkalite.wire.errors import KafkaError
from tests.meta.meta_kit import BROKER, events, image, rules, topic_id

RULES = rules()
REPLICA = PartitionImage((1, 2), (1,), 1, 3, 4)
SOLE = PartitionImage((1,), (1,), 1)
REASSIGNED = PartitionImage((3, 1, 2), (1,), 1, 3, 4, adding=(3,), removing=(2,))


@pytest.mark.parametrize(
    "change",
    [
        BrokerRegistered(broker_id=1, endpoints={"PLAINTEXT": ("", 9092)}, rack="r"),
        BrokerRegistered(broker_id=1, endpoints={}, broker_epoch=7, shutting_down=True),
        BrokerUnregistered(broker_id=1, broker_epoch=7),
        LeaderEpochsRaised(broker_id=1),
        TopicCreated(name="a", topic_id=topic_id(1), partitions=(REPLICA,), configs={"k": "v"}),
        TopicDeleted(name="a", topic_id=topic_id(1)),
        PartitionsAdded(name="a", topic_id=topic_id(1), partitions=(REPLICA, REPLICA)),
        PartitionChanged(name="a", topic_id=topic_id(1), index=0, state=REPLICA),
        PartitionsAdded(name="a", topic_id=topic_id(1), partitions=(REPLICA,), first_index=1),
        PartitionChanged(name="a", topic_id=topic_id(1), index=0, state=REASSIGNED),
        ConfigsChanged(resource_type=2, resource_name="a", values={"k": "v"}, removed=("x",)),
        ProducerIdsAllocated(broker_id=1, next_producer_id=2000),
        TopicIdsRetired(topic_ids=(topic_id(1), topic_id(2))),
        FeaturesUpdated(levels={"transaction.version": 1}),
    ],
)
def test_every_change_goes_through_json(change):
    assert from_json(json.loads(json.dumps(to_json(change)))) == change
    assert from_json(json.loads(to_text(change))) == change


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"change": "Nope"},
        {"change": "BrokerUnregistered"},
        {"change": "BrokerUnregistered", "broker_id": 1, "more": 2},
        {"change": "TopicDeleted", "name": "a", "topic_id": "x"},
        {"change": "TopicDeleted", "name": "a", "topic_id": 5},
        {"change": "PartitionsAdded", "name": "a", "topic_id": str(topic_id(1)), "partitions": 5},
    ],
)
def test_what_is_no_change_is_refused(values):
    with pytest.raises(ValueError):
        from_json(values)


def test_a_restarted_broker_begins_a_new_reign_of_what_it_leads_only():
    """Rule 180."""
    mine, other = PartitionImage((1, 2), (1, 2), 1), PartitionImage((2, 1), (1, 2), 2)
    before = image(
        TopicCreated(name="a", topic_id=topic_id(1), partitions=(mine, other)),
        TopicCreated(name="b", topic_id=topic_id(2), partitions=(other,)),
        brokers=(1, 2),
    )
    after = before.apply([LeaderEpochsRaised(broker_id=1)])
    assert after.topics["a"].partitions == (replace(mine, leader_epoch=1, partition_epoch=1), other)
    assert after.topics["b"] is before.topics["b"]


def test_settings_of_topics_are_with_the_topics():
    before = image("a")
    after = before.apply(
        [ConfigsChanged(resource_type=2, resource_name="a", values={"retention.ms": "5"})]
    )
    assert after.topics["a"].configs == {"retention.ms": "5"}
    assert not after.configs


def test_a_change_knows_what_it_belongs_to():
    change = ConfigsChanged(resource_type=BROKER, resource_name="1")
    assert change.resource == (BROKER, "1")


def test_a_snapshot_holds_everything():
    before = image("a", "b").apply(
        [
            TopicDeleted(name="b", topic_id=topic_id(2)),
            ConfigsChanged(resource_type=BROKER, resource_name="1", values={"k": "v"}),
            ConfigsChanged(resource_type=2, resource_name="a", values={"k": "v"}),
            ProducerIdsAllocated(broker_id=1, next_producer_id=3000),
        ]
    )
    start = Image(cluster_id="cluster", controller_id=1)
    assert replace(start.apply(snapshot(before)), version=before.version) == before


def run(sequence, start):
    """Return the live image and the log of commits after a sequence of events."""
    live, commits = start, []
    for event in sequence:
        try:
            changes = decide(event, live, RULES)
        except KafkaError:
            continue
        live = live.apply(changes)
        commits.append(json.dumps([to_json(change) for change in changes]))
    return live, commits


class TestOlderThanKnown:
    """A broker that loads a snapshot may be told changes again that led to it."""

    def again(self, before, *changes):
        return replace(before.apply(changes), version=before.version)

    def test_a_registration_that_was_replaced(self):
        before = image(brokers=(1,), epochs=(7,))
        older = BrokerRegistered(broker_id=1, endpoints={}, broker_epoch=6)
        gone = BrokerUnregistered(broker_id=1, broker_epoch=6)
        assert self.again(before, older, gone) == before
        assert not before.apply([replace(gone, broker_epoch=7)]).brokers

    def test_a_topic_that_is_there_or_was_deleted(self):
        created = TopicCreated(name="a", topic_id=topic_id(1), partitions=(SOLE,))
        before = image(created).apply(
            [PartitionChanged(name="a", topic_id=topic_id(1), index=0, state=REPLICA)]
        )
        assert self.again(before, created) == before
        deleted = TopicDeleted(name="a", topic_id=topic_id(1))
        gone = before.apply([deleted])
        assert self.again(gone, created, deleted) == gone
        settings_ = ConfigsChanged(resource_type=2, resource_name="a", values={"k": "v"})
        changed_ = PartitionChanged(name="a", topic_id=topic_id(1), index=0, state=REPLICA)
        added = PartitionsAdded(name="a", topic_id=topic_id(1), partitions=(SOLE,))
        assert self.again(gone, settings_, changed_, added) == gone

    def test_a_topic_under_the_name_of_another(self):
        """The deletion of the other was not told; it is gone all the same."""
        after = image("a").apply([TopicCreated(name="a", topic_id=topic_id(9), partitions=(SOLE,))])
        assert after.topics["a"].topic_id == topic_id(9)
        assert after.retired_topic_ids == (topic_id(1),)
        assert list(after.topic_names) == [topic_id(9)]
        stale = TopicDeleted(name="a", topic_id=topic_id(1))
        assert self.again(after, stale) == after

    def test_partitions_that_are_there(self):
        added = PartitionsAdded(
            name="a", topic_id=topic_id(1), partitions=(SOLE, SOLE), first_index=1
        )
        before = image("a").apply([added])
        assert len(before.topics["a"].partitions) == 3
        assert self.again(before, added) == before

    def test_a_state_that_was_replaced(self):
        states = [replace(SOLE, partition_epoch=epoch) for epoch in (1, 2)]
        changes = [
            PartitionChanged(name="a", topic_id=topic_id(1), index=0, state=state)
            for state in states
        ]
        before = image("a").apply(changes)
        assert self.again(before, changes[0]) == before
        beyond = PartitionChanged(name="a", topic_id=topic_id(1), index=5, state=SOLE)
        assert self.again(before, beyond) == before

    def test_producer_ids_never_go_back(self):
        """Rule 64."""
        before = image(next_producer_id=3000)
        assert self.again(before, ProducerIdsAllocated(broker_id=1, next_producer_id=9)) == before


def test_that_an_image_was_replaced_changes_nothing():
    before = image("a")
    assert replace(before.apply([ImageReplaced()]), version=before.version) == before
    with pytest.raises(ValueError):
        from_json(to_json(ImageReplaced()))


def test_files_of_older_versions_are_read():
    line = {"change": "BrokerRegistered", "broker_id": 1, "endpoints": {}, "rack": None}
    assert from_json(line) == BrokerRegistered(broker_id=1, endpoints={})
    line = {"change": "PartitionsAdded", "name": "a", "topic_id": str(topic_id(1))}
    line["partitions"] = [[[1], [1], 1, 0, 0]]
    assert len(image("a").apply([from_json(line)]).topics["a"].partitions) == 2


@settings(max_examples=100, deadline=None)
@given(st.lists(events, max_size=25))
def test_the_log_of_changes_rebuilds_the_live_image(sequence):
    """What is committed is all there is (docs/architecture.md)."""
    start = Image(cluster_id="cluster", controller_id=1)
    live, commits = run(sequence, start)
    rebuilt = start
    for commit in commits:
        rebuilt = rebuilt.apply(map(from_json, json.loads(commit)))
    assert rebuilt == live


@settings(max_examples=100, deadline=None)
@given(st.lists(events, max_size=25))
def test_a_snapshot_rebuilds_the_live_image(sequence):
    start = Image(cluster_id="cluster", controller_id=1)
    live, _ = run(sequence, start)
    rebuilt = start.apply(map(from_json, map(to_json, snapshot(live))))
    assert replace(rebuilt, version=live.version) == live


@settings(max_examples=100, deadline=None)
@given(st.lists(events, max_size=25))
def test_images_keep_their_invariants(sequence):
    live, _ = run(sequence, Image(cluster_id="cluster", controller_id=1))
    assert {topic.topic_id: name for name, topic in live.topics.items()} == dict(live.topic_names)
    assert not set(live.retired_topic_ids) & set(live.topic_names)
    for topic in live.topics.values():
        assert topic.partitions
        for state in topic.partitions:
            assert state.isr
            assert set(state.isr) <= set(state.replicas)
            assert state.leader == -1 or state.leader in state.isr
