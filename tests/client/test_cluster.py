import pytest

from kafkalite.client import cluster as cluster_module
from kafkalite.client.cluster import Client, parse_address, parse_addresses
from kafkalite.client.errors import ClientError
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.delete_groups import (
    DELETE_GROUPS,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorResponse
from kafkalite.wire.messages.metadata import METADATA, MetadataResponse, MetadataResponseTopic
from tests.client.fake_broker import FakeBroker


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(cluster_module, "PAUSE_MS", 0)


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "address"),
        [
            ("broker:9093", ("broker", 9093)),
            ("broker", ("broker", 9092)),
            ("[::1]:9093", ("::1", 9093)),
            ("[::1]", ("::1", 9092)),
        ],
    )
    def test_forms(self, text, address):
        assert parse_address(text) == address

    @pytest.mark.parametrize("text", [":9092", "host:x", "host:0", "host:65536", "[::1", "[::1]9"])
    def test_anything_else_is_refused(self, text):
        with pytest.raises(ClientError, match="no address"):
            parse_address(text)

    def test_list_may_hold_spaces(self):
        assert parse_addresses("a:1, b:2,") == [("a", 1), ("b", 2)]

    def test_empty_list_is_refused(self):
        with pytest.raises(ClientError, match="no bootstrap server"):
            parse_addresses(" , ")


class TestBootstrap:
    def test_first_server_that_answers_is_taken(self):
        with FakeBroker() as broker, Client(f"127.0.0.1:1,{broker.bootstrap}") as client:
            assert client.metadata().controller_id == 0

    def test_last_failure_is_told_if_none_answers(self):
        with pytest.raises(ClientError, match=r"127\.0\.0\.1:2"):
            Client("127.0.0.1:1,127.0.0.1:2").any_broker()

    def test_closed_connection_is_replaced(self):
        with FakeBroker() as broker, Client(broker.bootstrap) as client:
            client.any_broker().close()
            assert client.partitions("orders") == [TopicPartition("orders", 0)]


class TestTopics:
    def test_unknown_topic_is_told_at_once(self):
        with FakeBroker() as broker, Client(broker.bootstrap) as client:
            with pytest.raises(KafkaError, match="topic 'nope' does not exist"):
                client.topic("nope")
            assert len(broker.seen(METADATA)) == 1

    def test_created_topic_is_waited_for(self):
        broker = FakeBroker(topics={})
        missing = MetadataResponse(topics=[MetadataResponseTopic(error_code=3, name="new")])
        electing = MetadataResponse(topics=[MetadataResponseTopic(error_code=5, name="new")])
        broker.answers[METADATA] = [missing, electing, broker.answers[METADATA]]
        broker.topics["new"] = 2
        with broker, Client(broker.bootstrap) as client:
            assert len(client.topic("new", auto_create=True).partitions) == 2
            assert [r.allow_auto_topic_creation for r in broker.seen(METADATA)] == [True] * 3

    def test_waiting_ends_at_the_timeout(self):
        electing = MetadataResponse(topics=[MetadataResponseTopic(error_code=5, name="orders")])
        with (
            FakeBroker({METADATA: electing}) as broker,
            Client(broker.bootstrap, timeout_ms=20) as client,
            pytest.raises(KafkaError, match="LEADER_NOT_AVAILABLE"),
        ):
            client.topic("orders")

    def test_partition_beyond_the_last_does_not_exist(self):
        with (
            FakeBroker() as broker,
            Client(broker.bootstrap) as client,
            pytest.raises(KafkaError, match="partition orders-7 does not exist"),
        ):
            client.by_leader([TopicPartition("orders", 7)])

    def test_leaders_are_remembered_until_forgotten(self):
        with FakeBroker() as broker, Client(broker.bootstrap) as client:
            place = TopicPartition("orders", 0)
            assert client.by_leader([place]) == client.by_leader([place]) == {0: [place]}
            assert len(broker.seen(METADATA)) == 1
            client.forget_leaders(["orders"])
            client.by_leader([place])
            assert len(broker.seen(METADATA)) == 2


class TestCoordinator:
    def test_is_followed_when_it_moves(self):
        codes = iter([[16], [0]])  # NOT_COORDINATOR, then done
        with FakeBroker({DELETE_GROUPS: DeleteGroupsResponse()}) as broker:
            found = FindCoordinatorResponse(node_id=5, host="127.0.0.1", port=broker.port)
            loading = FindCoordinatorResponse(error_code=15)
            broker.answers[FIND_COORDINATOR] = [loading, found]
            with Client(broker.bootstrap) as client:
                client.ask_coordinator(
                    "g",
                    DELETE_GROUPS,
                    DeleteGroupsRequest(groups_names=["g"]),
                    lambda answer: next(codes),
                )
            assert [r.key for r in broker.seen(FIND_COORDINATOR)] == ["g"] * 3
            assert len(broker.seen(DELETE_GROUPS)) == 2

    def test_other_refusals_are_returned(self):
        with FakeBroker({DELETE_GROUPS: DeleteGroupsResponse()}) as broker:
            broker.answers[FIND_COORDINATOR] = FindCoordinatorResponse(
                node_id=5, host="127.0.0.1", port=broker.port
            )
            with Client(broker.bootstrap) as client:
                client.ask_coordinator(
                    "g",
                    DELETE_GROUPS,
                    DeleteGroupsRequest(groups_names=["g"]),
                    lambda answer: [68],  # NON_EMPTY_GROUP
                )
            assert len(broker.seen(DELETE_GROUPS)) == 1


def test_broker_that_left_is_named():
    with (
        FakeBroker() as broker,
        Client(broker.bootstrap) as client,
        pytest.raises(ClientError, match="broker 9 is not in the cluster"),
    ):
        client.broker(9)


def test_all_brokers_are_reached():
    with FakeBroker(node_id=1) as first, FakeBroker(node_id=2) as second:
        first.others = [second]
        with Client(first.bootstrap) as client:
            assert [c.address for c in client.all_brokers()] == [first.bootstrap, second.bootstrap]


def test_controller_is_followed_when_it_moves():
    codes = iter([[41], [0]])  # NOT_CONTROLLER, then done
    with FakeBroker({DELETE_GROUPS: DeleteGroupsResponse()}) as broker:
        with Client(broker.bootstrap) as client:
            client.ask_controller(DELETE_GROUPS, DeleteGroupsRequest(), lambda answer: next(codes))
        assert len(broker.seen(METADATA)) == 2
        assert len(broker.seen(DELETE_GROUPS)) == 2
