import logging
from uuid import UUID

import pytest
import trio

from kafkalite.config import load_config
from kafkalite.meta.batch_decide import EVENTS_AT_ONCE_MAX
from kafkalite.meta.changes import ConfigsChanged, TopicCreated, TopicDeleted
from kafkalite.meta.events import (
    CreateTopic,
    DeleteTopic,
    IncrementalAlterConfigs,
    Operation,
    RegisterBroker,
)
from kafkalite.meta.found_logs import FoundLog
from kafkalite.meta.kraft import KraftMetadata
from kafkalite.meta.local import LocalStore
from kafkalite.meta.runner import MetadataRunner
from kafkalite.meta.store import MetadataStoreError
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.log.sim_disk import SimDisk
from tests.meta.meta_kit import ENDPOINTS, topic_id

PATH = "/data/kafkalite-metadata.log"


class Kit:
    """A runner on a simulated disk, which can be started again."""

    def __init__(self, profile="dev", **settings):
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.settings = {"kafkalite.profile": profile, **named}
        self.disk = SimDisk()
        self.disk.make_directory("/data")
        self.next_id = 100
        self.start()

    def start(self):
        self.config = load_config(overrides=self.settings)
        self.runner = MetadataRunner(
            self.config, LocalStore(self.disk, PATH), cluster_id="cluster", new_uuid=self.new_uuid
        )
        trio.run(self.runner.load)

    def new_uuid(self):
        self.next_id += 1
        return UUID(int=self.next_id)

    @property
    def image(self):
        return self.runner.image

    def run(self, function, *arguments):
        return trio.run(function, *arguments)

    def register(self):
        self.run(self.runner.register, {"PLAINTEXT": 9092})

    def submit(self, event):
        return self.run(self.runner.submit, event)

    def alter(self, kind, name, setting, value):
        operation = Operation.DELETE if value is None else Operation.SET
        self.submit(
            IncrementalAlterConfigs(
                resource_type=kind, resource_name=name, operations=[(setting, operation, value)]
            )
        )


@pytest.fixture
def kit():
    made = Kit()
    made.register()
    return made


def create(name, **attributes):
    attributes = {
        "num_partitions": 1,
        "replication_factor": 1,
        "topic_id": topic_id(7),
        **attributes,
    }
    return CreateTopic(name=name, **attributes)


def test_an_event_changes_the_image_and_tells_subscribers_before_it_is_answered(kit):
    seen = []
    stop = kit.runner.subscribe(lambda changes, image: seen.append((changes, image)))
    changes = kit.submit(create("a"))
    assert isinstance(changes[0], TopicCreated)
    assert seen == [(changes, kit.image)]
    assert "a" in kit.image.topics
    stop()
    kit.submit(DeleteTopic(name="a"))
    assert len(seen) == 1


def test_a_refused_event_changes_nothing(kit):
    before = kit.image
    with pytest.raises(KafkaError) as caught:
        kit.submit(DeleteTopic(name="a"))
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert kit.image is before


def test_an_event_that_asks_for_what_is_already_commits_nothing(kit):
    kit.submit(create("a"))
    before = kit.image
    kit.alter(2, "a", "retention.ms", None)
    assert kit.image is before


def test_events_together_are_one_commit_and_refused_ones_do_not_touch_the_others(kit):
    version = kit.image.version
    events = [
        create("a"),
        create("a", topic_id=topic_id(8)),
        DeleteTopic(name="a"),
        create("b", topic_id=topic_id(9)),
    ]
    results = kit.run(kit.runner.submit_all, events)
    assert isinstance(results[1], KafkaError)
    assert [type(result[0]) for result in (results[0], *results[2:])] == [
        TopicCreated, TopicDeleted, TopicCreated,
    ]  # fmt: skip
    assert list(kit.image.topics) == ["b"]
    assert kit.image.version == version + 1


def test_a_preview_changes_nothing(kit):
    before = kit.image
    results = trio.run(kit.runner.preview, [create("a"), DeleteTopic(name="b")])
    assert isinstance(results[0][0], TopicCreated)
    assert isinstance(results[1], KafkaError)
    assert kit.image is before


def test_all_is_there_after_a_restart(kit):
    kit.submit(create("a", configs={"retention.ms": "5"}))
    kit.alter(4, "1", "log.segment.bytes", "2000000")
    before = kit.image
    kit.start()
    assert kit.image == before
    assert kit.config.int("log.segment.bytes") == 2_000_000
    kit.register()
    assert kit.image.topics["a"].partitions[0].leader_epoch == 1


def test_what_cannot_be_stored_does_not_happen(kit, caplog):
    """Issue: a disk that is full gives KAFKA_STORAGE_ERROR."""
    before = kit.image
    kit.disk.fail("append", PATH, times=1)
    events = [create("a"), DeleteTopic(name="b")]
    results = kit.run(kit.runner.submit_all, events)
    assert [result.code for result in results] == [
        ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]  # fmt: skip
    assert kit.image is before
    assert "could not be stored" in caplog.text
    kit.submit(create("a"))


def test_two_who_create_the_same_topic_at_once_are_served_one_after_the_other():
    kit = Kit()
    kit.register()

    async def both():
        results = []

        async def one(number):
            results.extend(await kit.runner.submit_all([create("a", topic_id=topic_id(number))]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, 1)
            nursery.start_soon(one, 2)
        return results

    results = kit.run(both)
    refused = [result for result in results if isinstance(result, KafkaError)]
    assert [error.code for error in refused] == [ErrorCode.TOPIC_ALREADY_EXISTS]


def test_a_client_that_goes_away_leaves_no_half_commit(kit):
    """Each wait either ends before anything was done, or after all of it."""
    kit.disk.run_in_thread = trio.to_thread.run_sync

    async def cancelled():
        with trio.CancelScope() as scope:
            scope.cancel()
            await kit.runner.submit(create("a"))

    kit.run(cancelled)
    assert "a" not in kit.image.topics
    kit.submit(create("a"))
    before = kit.image
    kit.start()
    assert kit.image == before


def test_registering_tells_how_clients_reach_the_broker():
    """USERS 1 and 2."""
    kit = Kit(broker_rack="r1")
    kit.register()
    broker = kit.image.brokers[1]
    assert broker.endpoints == {"PLAINTEXT": ("", 9092)}
    assert broker.rack == "r1"
    version = kit.image.version
    kit.alter(4, "1", "advertised.listeners", "PLAINTEXT://outside:19092")
    assert kit.image.version == version + 1
    assert kit.config.endpoints({"PLAINTEXT": 9092}) == {"PLAINTEXT": ("outside", 19092)}
    assert kit.image.brokers[1].endpoints == {"PLAINTEXT": ("outside", 19092)}
    kit.alter(4, "1", "advertised.listeners", None)
    assert kit.image.brokers[1].endpoints == {"PLAINTEXT": ("", 9092)}


def test_a_changed_address_is_there_after_a_restart():
    kit = Kit()
    kit.register()
    kit.alter(4, "1", "advertised.listeners", "PLAINTEXT://outside:0")
    kit.start()
    kit.run(kit.runner.register, {"PLAINTEXT": 4711})
    assert kit.image.brokers[1].endpoints == {"PLAINTEXT": ("outside", 4711)}


def test_changed_broker_settings_take_effect_before_subscribers_are_told(kit):
    seen = []
    kit.runner.subscribe(lambda *_: seen.append(kit.config.int("message.max.bytes")))
    kit.alter(4, "", "message.max.bytes", "5000")
    kit.alter(4, "1", "message.max.bytes", "6000")
    kit.alter(4, "1", "message.max.bytes", None)
    assert seen == [5000, 6000, 5000]


def test_settings_of_other_brokers_are_not_taken_up(kit):
    kit.submit(RegisterBroker(broker_id=2, endpoints=ENDPOINTS))
    changed = ConfigsChanged(resource_type=4, resource_name="2", values={"message.max.bytes": "5"})
    image = kit.image.apply([changed])
    assert image.configs
    kit.alter(4, "1", "log.retention.ms", "5")
    assert kit.config.int("message.max.bytes") == 1_048_588


class TestEnsureTopic:
    def ensure(self, kit, name):
        return kit.run(kit.runner.ensure_topic, name)

    def test_creates_with_the_brokers_defaults_once(self):
        """USERS 23: the topic has a leader at once."""
        kit = Kit(num_partitions="3")
        kit.register()
        topic = self.ensure(kit, "a")
        assert [state.leader for state in topic.partitions] == [1, 1, 1]
        assert topic.configs == {}
        assert self.ensure(kit, "a") is topic

    def test_refuses_what_cannot_be_created(self, kit):
        with pytest.raises(KafkaError) as caught:
            self.ensure(kit, "bad name")
        assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION

    def test_several_are_created_with_one_commit(self, kit):
        version = kit.image.version
        refused = kit.run(kit.runner.ensure_topics, ["a", "bad name", "b", "a"])
        assert [(name, error.code) for name, error in refused.items()] == [
            ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION)
        ]
        assert list(kit.image.topics) == ["a", "b"]
        assert kit.image.version == version + 1

    def test_internal_topics_fit_a_lone_broker_in_dev(self, kit):
        """USERS 8 and 9; rule 21."""
        offsets = self.ensure(kit, "__consumer_offsets")
        assert len(offsets.partitions) == 50
        assert offsets.partitions[0].replicas == (1,)
        assert offsets.configs == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }
        transactions = self.ensure(kit, "__transaction_state")
        assert transactions.configs == {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "segment.bytes": "104857600",
            "unclean.leader.election.enable": "false",
        }

    @pytest.mark.parametrize(
        "settings", [{"profile": "kafka"}, {"zookeeper_connect": "127.0.0.1:1"}], ids=str
    )
    def test_profile_kafka_and_clusters_keep_kafkas_replication(self, settings):
        """In a cluster there may be too few brokers for a moment, and the topic stays as it is."""
        kit = Kit(**settings)
        kit.register()
        with pytest.raises(KafkaError) as caught:
            self.ensure(kit, "__consumer_offsets")
        assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
        for broker in (2, 3):
            kit.submit(RegisterBroker(broker_id=broker, endpoints=ENDPOINTS))
        assert len(self.ensure(kit, "__consumer_offsets").partitions[0].replicas) == 3
        assert self.ensure(kit, "__transaction_state").configs["min.insync.replicas"] == "2"

    def test_small_segments_of_internal_topics_are_possible(self):
        kit = Kit(offsets_topic_segment_bytes="1000")
        kit.register()
        self.ensure(kit, "__consumer_offsets")
        assert kit.runner.log_config("__consumer_offsets").segment_bytes == 1000

    def test_a_race_is_won_by_the_first(self, kit):
        async def both():
            topics = []

            async def one():
                topics.append(await kit.runner.ensure_topic("a"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(one)
                nursery.start_soon(one)
            return topics

        first, second = kit.run(both)
        assert first is second

    def test_a_topic_that_is_created_and_deleted_by_others_is_unknown(self, kit, monkeypatch):
        async def too_late(events):
            return [KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS)]

        monkeypatch.setattr(kit.runner, "submit_all", too_late)
        with pytest.raises(KafkaError) as caught:
            self.ensure(kit, "a")
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestProducerIds:
    def allocate(self, kit):
        return kit.run(kit.runner.allocate_producer_id)

    def test_are_counted_up_and_never_given_twice(self, kit):
        """Rule 64."""
        assert kit.runner.producer_id_nowait() is None
        assert [self.allocate(kit) for _ in range(3)] == [0, 1, 2]
        assert kit.runner.producer_id_nowait() == 3
        kit.start()
        assert self.allocate(kit) == 1000

    def test_go_on_in_the_next_block(self, kit):
        assert [self.allocate(kit) for _ in range(1001)] == list(range(1001))
        assert kit.image.next_producer_id == 2000

    def test_one_block_serves_all_who_wait_for_it(self, kit):
        async def many():
            ids = []

            async def one():
                ids.append(await kit.runner.allocate_producer_id())

            async with trio.open_nursery() as nursery:
                for _ in range(10):
                    nursery.start_soon(one)
            return ids

        assert sorted(kit.run(many)) == list(range(10))
        assert kit.image.next_producer_id == 1000

    def test_an_id_that_cannot_be_stored_is_not_given(self, kit):
        kit.disk.fail("append", PATH)
        with pytest.raises(KafkaError) as caught:
            self.allocate(kit)
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def found(topic, partition, number=1, **attributes):
    return FoundLog(
        topic_partition=TopicPartition(topic, partition),
        topic_id=None if number is None else topic_id(number),
        **attributes,
    )


class TestAdopt:
    def adopt(self, kit, *logs):
        return kit.run(kit.runner.adopt, logs)

    def test_directories_of_unknown_topics_become_topics(self, kit, caplog):
        """A data directory written by Apache Kafka is opened."""
        logs = (
            found("a", 1, leader_epoch=3, next_producer_id=42),
            found("a", 0),
            found("__consumer_offsets", 0, 2),
            found("old", 0, None),
        )
        with caplog.at_level(logging.INFO):
            assert self.adopt(kit, *logs) == []
        assert len(kit.image.topics["a"].partitions) == 2
        assert kit.image.topics["a"].topic_id == topic_id(1)
        assert kit.image.topics["a"].partitions[1].leader_epoch == 4
        assert kit.image.next_producer_id == 42
        assert kit.runner.log_config("__consumer_offsets").cleanup_policy == {"compact"}
        assert kit.image.topics["old"].topic_id.int > 100
        assert "directories of a were taken over" in caplog.text

    def test_settings_that_kafka_knew_are_taken_over(self, kit):
        kraft = KraftMetadata(
            topic_configs={"a": {"cleanup.policy": "compact"}}, next_producer_id=5000
        )
        kit.run(kit.runner.adopt, [found("a", 0)], lambda: kraft)
        assert kit.runner.log_config("a").cleanup_policy == {"compact"}
        assert kit.image.next_producer_id == 5000

    def test_known_directories_cost_nothing(self, kit):
        kit.submit(create("a"))
        before = kit.image

        def kraft():
            raise AssertionError("not to be read")

        assert kit.run(kit.runner.adopt, [found("a", 0, 7)], kraft) == []
        assert kit.image is before

    def test_directories_of_deleted_topics_are_handed_back(self, kit):
        """USERS 7: also after a crash a deleted topic stays deleted."""
        kit.submit(create("a"))
        kit.submit(DeleteTopic(name="a"))
        kit.start()
        assert self.adopt(kit, found("a", 0, 7), found("a", 1, 7)) == [("a", 0), ("a", 1)]
        kit.submit(create("a", topic_id=topic_id(8)))

    def test_directory_with_a_foreign_topic_id_is_kept_as_stray(self, kit):
        """As Kafka 4.3 does: nobody asked for it to be deleted."""
        kit.submit(create("a", topic_id=topic_id(8)))
        logs = [found("a", 0, 9), found("a", 1, 8), found("b", 0, 8)]
        assert self.adopt(kit, *logs) == []
        assert kit.runner.strays(logs) == [("a", 0), ("b", 0)]
        assert kit.image.topics["a"].topic_id == topic_id(8)

    def test_directories_are_not_given_up_because_they_cannot_be_noted(self, kit):
        kit.disk.fail("append", "metadata")
        with pytest.raises(MetadataStoreError, match="directories of a"):
            self.adopt(kit, found("a", 0, 9))

    def test_what_is_no_topic_is_left_alone(self, kit, caplog):
        assert self.adopt(kit, found("__cluster_metadata", 0)) == []
        assert "__cluster_metadata" not in kit.image.topics
        assert "is no topic" in caplog.text


def test_settings_of_a_topics_logs(kit):
    kit.submit(create("a", configs={"retention.ms": "5"}))
    assert kit.runner.log_config("a").retention_ms == 5
    assert kit.runner.log_config("unknown") == kit.config.log_config()


def test_ids_of_new_topics_are_made_outside_of_the_decision(kit):
    assert kit.runner.new_topic_id() != kit.runner.new_topic_id()


class TestVeryMany:
    """Rule 250: many events are several commits."""

    COUNT = 5 * EVENTS_AT_ONCE_MAX

    def events(self, prefix="t"):
        return [create(f"{prefix}{index}") for index in range(self.COUNT)]

    def test_commits_are_bounded_in_events_and_in_partitions(self, kit):
        commits = []
        kit.runner.subscribe(lambda changes, image: commits.append(len(changes)))
        results = kit.run(kit.runner.submit_all, self.events())
        assert len(results) == self.COUNT
        assert commits == [EVENTS_AT_ONCE_MAX] * 5
        commits.clear()
        wide = [create(f"wide{index}", num_partitions=400) for index in range(5)]
        kit.run(kit.runner.submit_all, wide)
        assert commits == [2, 2, 1]

    def test_others_have_their_turn_in_between(self, kit):
        counts = []

        async def ask_for_little(began):
            await began.wait()
            await kit.runner.submit(create("little"))
            counts.append(len(kit.image.topics))

        async def ask():
            began = trio.Event()
            kit.runner.subscribe(lambda changes, image: began.set())
            async with trio.open_nursery() as nursery:
                nursery.start_soon(kit.runner.submit_all, self.events())
                nursery.start_soon(ask_for_little, began)

        kit.run(ask)
        assert counts[0] < self.COUNT
        assert len(kit.image.topics) == self.COUNT + 1

    def test_who_is_cancelled_creates_no_more(self, kit):
        async def ask():
            with trio.CancelScope() as scope:
                kit.runner.subscribe(lambda changes, image: scope.cancel())
                await kit.runner.submit_all(self.events())
            assert scope.cancelled_caught

        kit.run(ask)
        assert len(kit.image.topics) == EVENTS_AT_ONCE_MAX

    def test_a_preview_of_many_sees_what_comes_before(self, kit):
        before = kit.image
        results = kit.run(kit.runner.preview, [*self.events("a.b"), create("a_b0")])
        assert isinstance(results[-1], KafkaError)
        assert all(not isinstance(result, KafkaError) for result in results[:-1])
        assert kit.image is before

    def test_too_many_to_be_created_by_default_are_refused_together(self, kit):
        names = [f"t{index}" for index in range(10_001)]
        refused = kit.run(kit.runner.ensure_topics, names)
        assert {error.code for error in refused.values()} == {ErrorCode.POLICY_VIOLATION}
        assert len(refused) == len(names)
        assert not kit.image.topics
