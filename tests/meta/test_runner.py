import pytest
import trio

from kafkalite.meta.batch_decide import EVENTS_AT_ONCE_MAX
from kafkalite.meta.changes import ConfigsChanged, TopicCreated, TopicDeleted
from kafkalite.meta.events import (
    DeleteTopic,
    RegisterBroker,
)
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.meta.meta_kit import ENDPOINTS, topic_id
from tests.meta.runner_kit import PATH, Kit, create


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
