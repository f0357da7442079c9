"""The shared store in memory, and runners of a cluster upon it."""

import random
from uuid import UUID

import pytest
import trio
import trio.testing

from kafkalite.config import load_config
from kafkalite.meta.auto_topic_creation import AutoTopicCreationManager
from kafkalite.meta.changes import ImageReplaced, TopicCreated
from kafkalite.meta.ensemble import Ensemble
from kafkalite.meta.events import (
    AllocateProducerIds,
    AlterPartition,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    IncrementalAlterConfigs,
    Operation,
)
from kafkalite.meta.image import BrokerImage, Image
from kafkalite.meta.log_import import FoundLog, stale_logs, stray_logs
from kafkalite.meta.producer_ids import ProducerIdManager
from kafkalite.meta.runner import MetadataRunner
from kafkalite.meta.store import (
    BrokerIdTaken,
    ControllerChanged,
    LiveBrokers,
    MetadataStoreError,
    OutcomeUnknown,
)
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.allocate_producer_ids import (
    ALLOCATE_PRODUCER_IDS,
    AllocateProducerIdsResponse,
)
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from tests.meta.meta_kit import topic_id


class Node:
    """A broker as far as metadata go."""

    def __init__(self, ensemble, broker_id, **settings):
        named = {name.replace("_", "."): str(value) for name, value in settings.items()}
        advertised = f"PLAINTEXT://localhost:{9092 + broker_id}"
        self.config = load_config(
            overrides={
                "kafkalite.profile": "kafka",
                "node.id": str(broker_id),
                "advertised.listeners": advertised,
                **named,
            }
        )
        self.id = broker_id
        self.store = ensemble.store()
        self.runner = None
        self.seen = []

    async def start(self, nursery):
        await self.store.open()
        cluster_id = await self.store.cluster_id("c")
        self.runner = MetadataRunner(self.config, self.store, cluster_id=cluster_id)
        await self.runner.load()
        self.runner.subscribe(lambda changes, _: self.seen.extend(changes))
        self.scope = await nursery.start(self._run)
        await self.runner.register({"PLAINTEXT": 9092})

    async def _run(self, task_status):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.runner.run)
                task_status.started(scope)

    @property
    def image(self):
        return self.runner.image

    async def submit(self, event):
        return await self.runner.submit(event)


def cluster(count, function, **settings):
    """Run `function(nodes, ensemble)` with brokers 1 to `count`; virtual time."""
    options = {name: settings.pop(name) for name in ("changes_kept", "delay_s") if name in settings}

    async def main():
        ensemble = Ensemble(**options)
        nodes = [Node(ensemble, number + 1, **settings) for number in range(count)]
        async with trio.open_nursery() as nursery:
            with trio.fail_after(3_600):
                for node in nodes:
                    await node.start(nursery)
                await function(nodes, ensemble)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def create(name, number=7, **attributes):
    attributes = {"num_partitions": 2, "replication_factor": 1, **attributes}
    return CreateTopic(name=name, topic_id=topic_id(number), **attributes)


async def settle():
    await trio.sleep(60)


def comparable(image):
    configs = {key: dict(value) for key, value in image.configs.items()}
    return (
        (image.version, image.brokers, image.topics, image.topic_names, configs),
        (image.next_producer_id, image.retired_topic_ids),
        (image.controller_id, image.controller_epoch, image.cluster_id),
    )


def test_the_first_broker_is_controller_and_all_see_the_same():
    async def check(nodes, _):
        await nodes[0].submit(create("a", replication_factor=3))
        await settle()
        assert [node.runner.is_controller for node in nodes] == [True, False, False]
        for node in nodes:
            assert comparable(node.image) == comparable(nodes[0].image)
            assert set(node.image.brokers) == {1, 2, 3}
            assert node.runner.broker_epoch == node.image.brokers[node.id].broker_epoch
            assert (node.image.controller_id, node.image.controller_epoch) == (1, 1)
            assert any(isinstance(each, TopicCreated) for each in node.seen)

    cluster(3, check)


def test_who_is_not_controller_is_refused():
    async def check(nodes, _):
        before = nodes[1].image
        with pytest.raises(KafkaError) as caught:
            await nodes[1].submit(create("a"))
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        assert nodes[1].image is before

    cluster(2, check)


@pytest.mark.parametrize("seed", range(5))
def test_images_are_equal_after_random_work_and_mishaps(seed):
    async def check(nodes, ensemble):
        chance = random.Random(seed)
        for step in range(400):
            node = chance.choice(nodes)
            match chance.randint(0, 30):
                case 0:
                    node.store.expire_session()
                case 1:
                    node.store.cut_off()
                    await trio.sleep(chance.choice([1, 30]))
                    node.store.reconnect()
                case 2:
                    node.store.lose_next_answer()
                case 3:
                    await trio.sleep(chance.random())
            controllers = [each for each in nodes if each.runner.is_controller]
            if controllers:
                await try_something(controllers[-1].runner, chance, step)
        for node in nodes:
            node.store.reconnect()
        await settle()
        assert [node.runner.is_controller for node in nodes].count(True) == 1
        for node in nodes:
            assert set(node.image.brokers) == {1, 2, 3}
            assert comparable(node.image) == comparable(nodes[0].image)
            assert node.image.version == ensemble.image.version
            assert node.image.topics == ensemble.image.topics
        assert ensemble.epoch > 1

    cluster(3, check, changes_kept=8, delay_s=0.001)


async def try_something(runner, chance, step):
    name = chance.choice("abcdef")
    event = chance.choice(
        [
            CreateTopic(
                name=name,
                topic_id=UUID(int=1000 + step),
                num_partitions=chance.randint(1, 3),
                replication_factor=chance.randint(1, 3),
            ),
            DeleteTopic(name=name),
            CreatePartitions(name=name, count=chance.randint(2, 6)),
            IncrementalAlterConfigs(
                resource_type=2,
                resource_name=name,
                operations=[("retention.ms", chance.choice([0, 1]), "77")],
            ),
            AllocateProducerIds(broker_id=1),
        ]
    )
    try:
        await runner.submit(event)
    except KafkaError:
        await trio.sleep(0.01)


def test_a_dead_broker_leaves_the_cluster_and_comes_back_under_a_new_epoch():
    """Rule 197."""

    async def check(nodes, ensemble):
        await nodes[0].submit(create("a", replication_factor=3, num_partitions=6))
        before = nodes[1].runner.broker_epoch
        nodes[1].store.cut_off()
        await trio.sleep(ensemble.session_timeout_s - 1)
        assert 2 in nodes[0].image.brokers
        await settle()
        assert set(nodes[0].image.brokers) == {1, 3}
        assert all(2 not in each.isr for each in nodes[0].image.topics["a"].partitions)
        nodes[1].store.reconnect()
        await settle()
        assert nodes[0].image.brokers[2].broker_epoch == nodes[1].runner.broker_epoch > before
        assert comparable(nodes[1].image) == comparable(nodes[0].image)

    cluster(3, check)


def test_a_session_that_survives_costs_nothing():
    async def check(nodes, _):
        epoch = nodes[0].runner.broker_epoch
        nodes[0].store.cut_off()
        await trio.sleep(5)
        assert not nodes[0].runner.is_controller
        with pytest.raises(KafkaError) as caught:
            await nodes[0].submit(create("a"))
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        nodes[0].store.reconnect()
        await settle()
        assert nodes[0].runner.is_controller
        assert nodes[0].runner.broker_epoch == epoch
        assert nodes[0].image.controller_epoch == 1
        await nodes[0].submit(create("a"))

    cluster(2, check)


def test_events_may_be_faster_than_the_answer_that_one_is_controller():
    """The brokers that live were told before the controller, and forgotten: nothing was decided."""

    async def check(nodes, ensemble):
        runner, store = nodes[1].runner, nodes[1].store
        campaign = store.campaign

        async def slow():
            epoch = await campaign()
            if epoch is not None:
                store._told_brokers = ensemble.live()
                await runner._on_event(LiveBrokers(brokers=ensemble.live()))
                await runner._on_event(ControllerChanged(broker_id=2, epoch=epoch))
            return epoch

        store.campaign = slow
        nodes[0].store.cut_off()
        await settle()
        assert runner.is_controller
        assert set(nodes[1].image.brokers) == {2}

    cluster(2, check)


def test_who_is_leaving_does_not_come_back_nor_reign():
    """Its session may end behind its back while others take over what it leads."""

    async def check(nodes, ensemble):
        nodes[1].runner.leave()
        nodes[1].store.cut_off()
        await settle()
        nodes[1].store.reconnect()
        await settle()
        assert nodes[1].runner.broker_epoch == -1
        assert set(nodes[0].image.brokers) == {1}
        nodes[0].store.cut_off()
        await settle()
        assert not nodes[1].runner.is_controller

    cluster(2, check)


def test_another_controller_fences_the_one_before():
    """Rule 188: it has not heard of its end yet."""

    async def check(nodes, ensemble):
        ensemble.end(ensemble.controller)
        assert nodes[0].runner.is_controller
        with pytest.raises(KafkaError) as caught:
            await nodes[0].submit(create("a"))
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        await settle()
        assert sum(node.runner.is_controller for node in nodes) == 1
        assert "a" not in ensemble.image.topics
        assert ensemble.epoch == 2

    cluster(2, check)


def test_a_commit_with_a_lost_answer_is_found_before_the_next_decision():
    async def check(nodes, _):
        nodes[0].store.lose_next_answer()
        with pytest.raises(OutcomeUnknown):
            await nodes[0].submit(create("a"))
        with pytest.raises(KafkaError) as caught:
            await nodes[0].submit(create("a", 8))
        assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        assert nodes[0].image.topics["a"].topic_id == topic_id(7)

    cluster(1, check)


def test_a_commit_with_a_lost_answer_is_found_without_another_decision():
    async def check(nodes, ensemble):
        nodes[0].store.lose_next_answer()
        with pytest.raises(OutcomeUnknown):
            await nodes[0].submit(create("a"))
        await settle()
        assert set(nodes[0].image.topics) == {"a"}
        assert nodes[0].image.version == ensemble.image.version

    cluster(1, check)


def test_who_fell_behind_is_told_a_whole_image():
    async def check(nodes, _):
        nodes[1].store.cut_off()
        for number in range(10):
            await nodes[0].submit(create(f"t{number}", number + 1))
        nodes[1].store.reconnect()
        await settle()
        assert ImageReplaced() in nodes[1].seen
        assert comparable(nodes[1].image) == comparable(nodes[0].image)

    cluster(2, check, changes_kept=3)


def test_an_id_is_taken_as_long_as_its_session_lives():
    async def check(nodes, ensemble):
        twin = Node(ensemble, 2)
        async with trio.open_nursery() as nursery:
            await twin.store.open()
            started = trio.current_time()
            with pytest.raises(BrokerIdTaken, match=r"node\.id 2"):
                await twin.store.register(nodes[1].image.brokers[2])
            assert trio.current_time() - started == ensemble.session_timeout_s
            nodes[1].store.close()
            assert await twin.store.register(BrokerImage(broker_id=2, endpoints={})) == 3
            nursery.cancel_scope.cancel()

    cluster(2, check)


def test_changed_addresses_are_registered_by_the_broker_they_are_of():
    async def check(nodes, _):
        epoch = nodes[1].runner.broker_epoch
        await nodes[0].submit(
            IncrementalAlterConfigs(
                resource_type=4,
                resource_name="2",
                operations=[("advertised.listeners", Operation.SET, "PLAINTEXT://else:1")],
            )
        )
        await settle()
        for node in nodes:
            assert node.image.brokers[2].endpoints == {"PLAINTEXT": ("else", 1)}
            assert node.image.brokers[2].broker_epoch == epoch

    cluster(2, check)


@pytest.mark.parametrize("rebalanced", [True, False])
def test_leaders_go_back_to_preferred_replicas_from_time_to_time(rebalanced):
    """Rule 181."""

    async def check(nodes, _):
        await nodes[0].submit(
            CreateTopic(name="a", topic_id=topic_id(1), assignments=[(0, [2, 1]), (1, [2, 1])])
        )
        nodes[1].store.expire_session()
        await settle()
        assert [each.leader for each in nodes[0].image.topics["a"].partitions] == [1, 1]
        states = nodes[0].image.topics["a"].partitions
        for index, state in enumerate(states):
            await nodes[0].submit(
                AlterPartition(
                    broker_id=1,
                    broker_epoch=nodes[0].runner.broker_epoch,
                    topic_id=topic_id(1),
                    index=index,
                    leader_epoch=state.leader_epoch,
                    partition_epoch=state.partition_epoch,
                    new_isr=[(1, -1), (2, -1)],
                )
            )
        await trio.sleep(301)
        leaders = [each.leader for each in nodes[0].image.topics["a"].partitions]
        assert leaders == ([2, 2] if rebalanced else [1, 1])

    cluster(2, check, auto_leader_rebalance_enable=str(rebalanced).lower())


class Channel:
    """A controller that is asked directly."""

    def __init__(self, runner):
        self.runner = runner
        self.asked = []

    async def request(self, api, message, *, timeout_ms):
        self.asked.append(message)
        await trio.sleep(0.01)
        if api is ALLOCATE_PRODUCER_IDS:
            (change,) = await self.runner.submit(AllocateProducerIds(broker_id=message.broker_id))
            start = change.next_producer_id - 1_000
            return AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=1_000)
        assert api is CREATE_TOPICS
        results = []
        for number, topic in enumerate(message.topics):
            event = CreateTopic(
                name=topic.name,
                topic_id=topic_id(100 + number),
                num_partitions=topic.num_partitions,
                replication_factor=topic.replication_factor,
                configs={each.name: each.value for each in topic.configs},
            )
            code = ErrorCode.NONE
            try:
                await self.runner.submit(event)
            except KafkaError as error:
                code = error.code
            results.append(CreatableTopicResult(name=topic.name, error_code=code))
        return CreateTopicsResponse(topics=results)


def test_other_brokers_have_topics_created_by_the_controller():
    async def check(nodes, _):
        channel = Channel(nodes[0].runner)
        creation = AutoTopicCreationManager(nodes[1].config, nodes[1].runner, channel)
        topic = await creation.ensure_topic("__consumer_offsets")
        assert topic.configs["cleanup.policy"] == "compact"
        assert len(topic.partitions) == 4
        refused = await creation.ensure_topics(["bad name", "b", "__consumer_offsets"])
        assert list(refused) == ["bad name"]
        assert "b" in nodes[1].image.topics
        assert len(channel.asked) == 2

    cluster(2, check, offsets_topic_num_partitions=4, offsets_topic_replication_factor=2)


def test_each_broker_has_producer_ids_of_its_own():
    async def check(nodes, _):
        channel = Channel(nodes[0].runner)
        managers = [ProducerIdManager(node.config, node.runner, channel) for node in nodes]
        given = [await manager.next() for _ in range(1_500) for manager in managers]
        assert len(set(given)) == len(given)

    cluster(2, check)


def test_without_a_way_to_the_controller_nothing_is_to_be_had():
    async def check(nodes, _):
        with pytest.raises(KafkaError) as caught:
            await ProducerIdManager(nodes[1].config, nodes[1].runner, None).next()
        assert caught.value.code is ErrorCode.NOT_CONTROLLER

    cluster(2, check)


def found(name, index, number):
    return FoundLog(topic_partition=TopicPartition(name, index), topic_id=topic_id(number))


def test_only_logs_that_are_known_to_be_of_no_use_are_stale():
    """Others are strays: if the metadata were lost they are all that is left."""

    async def check(nodes, _):
        await nodes[0].submit(
            CreateTopic(name="gone", topic_id=topic_id(9), assignments=[(0, [2])])
        )
        await nodes[0].submit(DeleteTopic(name="gone"))
        await nodes[0].submit(CreateTopic(name="a", topic_id=topic_id(7), assignments=[(0, [2])]))
        await settle()
        logs = [
            found("a", 0, 7),
            found("a", 1, 7),
            found("a", 2, 8),
            found("gone", 0, 9),
            found("gone", 1, 10),
            found("a", 3, 9),
        ]
        image = nodes[1].image
        assert stale_logs(logs, image, broker_id=2) == [("gone", 0), ("a", 3)]
        assert stray_logs(logs, image) == [("a", 1), ("a", 2), ("gone", 1)]
        assert stale_logs(logs[:1], image, broker_id=1) == [("a", 0)]
        nameless = FoundLog(topic_partition=TopicPartition("old", 0), topic_id=None)
        assert stale_logs([nameless], image, broker_id=2) == []
        assert stray_logs([nameless], image) == [("old", 0)]
        assert set(nodes[0].image.topics) == {"a"}

    cluster(2, check)


def test_logs_are_not_given_to_a_cluster_that_is_new():
    async def main():
        store = Ensemble().store()
        await store.open()
        runner = MetadataRunner(load_config(), store, cluster_id="c")
        assert await runner.load() == Image(cluster_id="c")
        assert stale_logs([], runner.image, broker_id=1) == []
        with pytest.raises(MetadataStoreError, match=r"is new.*1 logs \(a-0"):
            stale_logs([found("a", 0, 7)], runner.image, broker_id=1)

    trio.run(main)


def test_an_ensemble_that_is_not_reached_stops_the_start():
    async def main():
        store = Ensemble().store()
        store.cut_off()
        with pytest.raises(MetadataStoreError):
            await store.open()

    trio.run(main)


def test_runs_are_the_same_each_time():
    def trace():
        seen = []

        async def check(nodes, ensemble):
            nodes[0].store.cut_off()
            await settle()
            nodes[0].store.reconnect()
            await settle()
            seen.append([str(change) for node in nodes for change in node.seen])
            seen.append(trio.current_time())

        cluster(3, check)
        return seen

    assert trace() == trace()


def test_an_event_is_not_lost_to_who_stopped_waiting():
    async def main():
        ensemble = Ensemble()
        store = ensemble.store()
        await store.open()
        with trio.CancelScope() as scope:
            scope.cancel()
            await store.next_event()
        with trio.fail_after(1):
            assert isinstance(await store.next_event(), ControllerChanged)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
