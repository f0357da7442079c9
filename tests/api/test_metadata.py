from uuid import UUID

import pytest
import trio

from kafkalite.api import metadata
from kafkalite.api.metadata import HANDLERS, refuse
from kafkalite.deferred import InSteps
from kafkalite.meta.events import DeleteTopic, RegisterBroker, UnregisterBroker
from kafkalite.types import ZERO_UUID
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.api.cluster_kit import ClusterKit
from tests.api.metadata_kit import MetadataKit

(HANDLER,) = HANDLERS


@pytest.fixture
def kit():
    made = MetadataKit(broker_rack="r1")
    made.create("m1", 2)
    made.create("m2", 3)
    return made


def ask(
    kit,
    *names,
    version=13,
    auto=False,
    all_topics=False,
    listener="PLAINTEXT",
    is_consumer=False,
    **flags,
):
    topics = [
        MetadataRequestTopic(name=name)
        if isinstance(name, str)
        else MetadataRequestTopic(name=name[0], topic_id=name[1])
        for name in names
    ]
    request = MetadataRequest(
        topics=None if all_topics else topics, allow_auto_topic_creation=auto, **flags
    )
    return kit.ask(HANDLER, request, version, listener, is_consumer=is_consumer)


def codes(response):
    return [(topic.name, topic.error_code) for topic in response.topics]


@pytest.mark.parametrize("version", range(14))
def test_topics_brokers_and_controller_are_told_in_every_version(kit, version):
    response = ask(kit, "m1", version=version)
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "127.0.0.1", 4711)
    assert broker.rack == ("r1" if version >= 1 else None)
    assert response.cluster_id == ("cluster" if version >= 2 else None)
    assert response.controller_id == (1 if version >= 1 else -1)
    (topic,) = response.topics
    assert (topic.name, topic.error_code, topic.is_internal) == ("m1", 0, False)
    assert topic.topic_id == (kit.image.topics["m1"].topic_id if version >= 10 else ZERO_UUID)
    assert [p.partition_index for p in topic.partitions] == [0, 1]
    for partition in topic.partitions:
        assert (partition.error_code, partition.leader_id) == (0, 1)
        assert (partition.replica_nodes, partition.isr_nodes) == ([1], [1])
        assert partition.leader_epoch == (0 if version >= 7 else -1)
        assert partition.offline_replicas == []


def test_no_topics_mean_all_in_v0_and_none_later(kit):
    """Rule 16."""
    assert codes(ask(kit, version=0)) == [("m1", 0), ("m2", 0)]
    for version in range(1, 14):
        assert codes(ask(kit, version=version)) == []
        assert codes(ask(kit, version=version, all_topics=True)) == [("m1", 0), ("m2", 0)]


def test_a_topic_named_twice_is_answered_once(kit):
    """As Kafka 4.3 answers."""
    assert codes(ask(kit, "m2", "m1", "m2")) == [("m2", 0), ("m1", 0)]


class TestListeners:
    def test_brokers_are_told_at_the_address_the_client_came_in_by(self, kit):
        """Rule 17, USERS 1."""
        assert kit.image.brokers[1].endpoints == {"PLAINTEXT": ("", 9092)}
        assert ask(kit).brokers[0].port == 4711

    def test_an_advertised_address_goes_before_that(self):
        kit = MetadataKit(advertised_listeners="PLAINTEXT://outside:19092")
        (broker,) = ask(kit).brokers
        assert (broker.host, broker.port) == ("outside", 19092)

    @pytest.mark.parametrize(
        ("version", "code"),
        [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)],
    )
    def test_a_leader_that_the_client_cannot_reach_is_none(self, kit, version, code):
        """Rules 17 and 18."""
        response = ask(kit, "m1", version=version, listener="OTHER")
        assert response.brokers == []
        (first, _) = response.topics[0].partitions
        assert (first.error_code, first.leader_id) == (code, -1)


def test_a_dead_leader_is_none_and_its_replica_offline(kit):
    """Rule 18."""
    kit.submit(RegisterBroker(broker_id=2, endpoints={"PLAINTEXT": ("other", 1)}))
    kit.submit(UnregisterBroker(broker_id=1))
    response = ask(kit, "m1")
    assert [broker.node_id for broker in response.brokers] == [2]
    (first, _) = response.topics[0].partitions
    assert (first.error_code, first.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert first.offline_replicas == [1]


class TestManyBrokers:
    @pytest.fixture
    def cluster(self):
        made = ClusterKit(3)
        made.assign("a", [2, 3], [3, 1])
        return made

    def test_all_are_told_in_order_with_the_controller(self, cluster):
        """Rules 17 and 26."""
        response = ask(cluster, "a")
        nodes = [(broker.node_id, broker.host, broker.port) for broker in response.brokers]
        assert nodes == [(1, "host", 9091), (2, "host", 9092), (3, "host", 9093)]
        assert response.controller_id == cluster.image.controller_id
        assert [each.leader_id for each in response.topics[0].partitions] == [2, 3]

    def test_replicas_that_the_client_cannot_reach_are_offline(self, cluster):
        """As Kafka: dead, or without the client's listener."""
        cluster.submit(UnregisterBroker(broker_id=2))
        cluster.register(3, listener="OTHER")
        first, second = ask(cluster, "a").topics[0].partitions
        assert first.replica_nodes == first.offline_replicas == [2, 3]
        assert (first.isr_nodes, first.leader_id) == ([3], -1)
        assert first.error_code == second.error_code == ErrorCode.LISTENER_NOT_FOUND
        assert second.offline_replicas == [3]

    def test_the_first_version_leaves_replicas_out_that_are_not_there(self, cluster):
        """Rule 18."""
        cluster.submit(UnregisterBroker(broker_id=2))
        first, second = ask(cluster, "a", version=0).topics[0].partitions
        assert (first.leader_id, first.replica_nodes, first.isr_nodes) == (3, [3], [3])
        assert first.error_code == ErrorCode.REPLICA_NOT_AVAILABLE
        assert (second.error_code, second.replica_nodes) == (0, [3, 1])

    def test_another_broker_without_a_host_is_not_told(self, cluster):
        """Nobody knows its address but those that came in by it (`advertised.listeners=auto`)."""
        cluster.register(2, host="", epoch=50)
        assert [broker.node_id for broker in ask(cluster).brokers] == [1, 3]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nosuch", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_topics_that_are_not_there(kit, name, code):
    """Rule 19: at topic level, without partitions."""
    (topic,) = ask(kit, name).topics
    assert (topic.name, topic.error_code, topic.partitions) == (name, code, [])


def test_internal_topics_are_marked(kit):
    """Rule 23."""
    (topic,) = ask(kit, "__consumer_offsets").topics
    assert topic.is_internal


class TestAutoCreation:
    def test_the_first_answer_names_the_leader(self, kit):
        """Issue; USERS 23."""
        (topic,) = ask(kit, "new", auto=True).topics
        assert topic.error_code == 0
        assert [p.leader_id for p in topic.partitions] == [1]
        assert topic.topic_id == kit.image.topics["new"].topic_id

    def test_versions_below_4_imply_it(self, kit):
        """Rule 20."""
        assert codes(ask(kit, "new", version=3)) == [("new", 0)]
        assert codes(ask(kit, "other", version=4)) == [
            ("other", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        ]

    def test_the_broker_can_forbid_it(self):
        """Rule 20."""
        kit = MetadataKit(auto_create_topics_enable="false")
        assert codes(ask(kit, "new", auto=True)) == [("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]

    def test_more_than_one_request_may_create_stay_unknown(self, kit):
        """Rule 250."""
        names = [f"t{index}" for index in range(10_001)]
        before = kit.image
        answer = ask(kit, *names, auto=True)
        assert {code for _, code in codes(answer)} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert kit.image is before

    def test_asking_for_all_topics_creates_none(self, kit):
        """Rule 20."""
        version = kit.image.version
        ask(kit, all_topics=True, auto=True)
        assert kit.image.version == version

    def test_what_cannot_be_created_says_why_and_does_not_touch_the_others(self, kit):
        ask(kit, "a.b", auto=True)
        names = ["a_b", "bad name", "new", "new", "m1"]
        assert codes(ask(kit, *names, auto=True)) == [
            ("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("new", 0),
            ("m1", 0),
        ]

    def test_internal_topics_get_their_own_settings(self, kit):
        """Rule 21."""
        (topic,) = ask(kit, "__consumer_offsets", auto=True).topics
        assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (0, True, 50)
        assert kit.image.topics["__consumer_offsets"].configs["cleanup.policy"] == "compact"

    def test_kafkas_own_first_answer_can_be_had(self):
        """USERS 23: to see how a client copes."""
        kit = MetadataKit(kafkalite_auto_create_topics_wait="false")
        assert codes(ask(kit, "new", auto=True)) == [("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
        assert codes(ask(kit, "new", auto=True)) == [("new", 0)]

    def test_a_full_disk_creates_nothing(self, kit):
        kit.disk.fail("append", "metadata", times=1)
        assert codes(ask(kit, "new", auto=True)) == [("new", ErrorCode.KAFKA_STORAGE_ERROR)]
        assert "new" not in kit.image.topics


class TestTopicIds:
    def test_topics_may_be_named_by_id_from_v12(self, kit):
        """Rule 24, KIP-516."""
        topic_id = kit.image.topics["m1"].topic_id
        for version in (12, 13):
            assert codes(ask(kit, (None, topic_id), version=version)) == [("m1", 0)]

    def test_an_unknown_id_has_no_name(self, kit):
        """Rule 24."""
        (topic,) = ask(kit, (None, UUID(int=99))).topics
        assert (topic.name, topic.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)
        assert topic.topic_id == UUID(int=99)

    def test_an_id_goes_before_a_name(self, kit):
        topic_id = kit.image.topics["m1"].topic_id
        assert codes(ask(kit, ("m2", topic_id))) == [("m1", 0)]
        assert codes(ask(kit, ("m2", UUID(int=99)))) == [(None, ErrorCode.UNKNOWN_TOPIC_ID)]

    def test_an_id_is_never_created(self, kit):
        version = kit.image.version
        ask(kit, ("new", UUID(int=99)), auto=True)
        assert kit.image.version == version

    @pytest.mark.parametrize("version", [10, 11])
    def test_ids_below_v12_are_refused(self, kit, version):
        """Rule 24."""
        topic_id = kit.image.topics["m1"].topic_id
        for named in ((None, topic_id), ("m1", topic_id)):
            response = ask(kit, named, version=version)
            assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]
            assert response.brokers == []

    def test_neither_name_nor_id_is_refused(self, kit):
        response = ask(kit, (None, ZERO_UUID))
        assert response.error_code == ErrorCode.INVALID_REQUEST


def test_operations_are_told_when_asked_for(kit):
    """Rule 27."""
    flags = {
        "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
    }
    for version in range(8, 14):
        response = ask(kit, "m1", version=version, **flags)
        assert response.topics[0].topic_authorized_operations == 3576
        expected = 8096 if version <= 10 else -(2**31)
        assert response.cluster_authorized_operations == expected
    response = ask(kit, "m1", version=10)
    assert response.topics[0].topic_authorized_operations == -(2**31)
    assert response.cluster_authorized_operations == -(2**31)


def test_an_error_of_the_whole_request(kit):
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    response = refuse(MetadataRequest(topics=None), error, kit.context(13))
    assert (response.error_code, response.topics) == (-1, [])


class TestDeleted:
    """Decision 0073."""

    @pytest.mark.parametrize("profile", ["dev", "test", "kafka"])
    @pytest.mark.parametrize("is_consumer", [False, True])
    def test_a_deleted_topic_comes_back_by_whoever_may_bring_it_back(self, profile, is_consumer):
        kit = MetadataKit(profile)
        kit.create("t")
        kit.submit(DeleteTopic(name="t"))
        code = ask(kit, "t", auto=True, is_consumer=is_consumer).topics[0].error_code
        comes_back = profile == "kafka" or not is_consumer
        assert ("t" in kit.image.topics) == comes_back
        assert code == (0 if comes_back else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def test_a_consumer_creates_what_never_was_or_is_there_again(self):
        kit = MetadataKit()
        assert codes(ask(kit, "new", auto=True, is_consumer=True)) == [("new", 0)]
        kit.submit(DeleteTopic(name="new"))
        ask(kit, "new", auto=True)
        assert codes(ask(kit, "new", auto=True, is_consumer=True)) == [("new", 0)]


class TestVeryManyPartitions:
    """In steps between which others have their turn (decision 0062)."""

    @pytest.fixture
    def many(self, kit):
        for number in range(3):
            kit.create(f"wide{number}", 700)
        for number in range(30):
            kit.create(f"few{number}", 10)
        return kit

    @pytest.mark.parametrize("options", [{"all_topics": True}, {"version": 12}])
    def test_the_answer_is_the_same(self, many, monkeypatch, options):
        names = [] if options.get("all_topics") else ["wide0", "unknown", "few3", "wide2"]
        in_steps = ask(many, *names, **options)
        monkeypatch.setattr(metadata, "PART_MAX", 1_000_000)
        assert ask(many, *names, **options) == in_steps
        assert len(in_steps.topics) == (35 if options.get("all_topics") else 4)

    def test_no_turn_describes_more_than_a_step(self, many, monkeypatch):
        described = []

        class Turns(trio.abc.Instrument):
            def before_task_step(self, task):
                described.append(0)

        real = metadata._partition

        def count(*arguments):
            described[-1] += 1
            return real(*arguments)

        monkeypatch.setattr(metadata, "_partition", count)
        context = many.context(13)
        pending = HANDLER.handle(MetadataRequest(topics=None), context)
        assert isinstance(pending, InSteps)

        async def wait():
            trio.lowlevel.add_instrument(Turns())
            await trio.lowlevel.checkpoint()
            return await pending.wait()

        response = trio.run(wait)
        assert sum(described) == sum(len(topic.partitions) for topic in response.topics) == 2_405
        assert max(described) <= 2 * metadata.STEP_PARTITIONS

    def test_few_are_answered_at_once(self, kit):
        answered = HANDLER.handle(MetadataRequest(topics=None), kit.context(13))
        assert isinstance(answered, MetadataResponse)
