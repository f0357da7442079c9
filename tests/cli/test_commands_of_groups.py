"""Commands about groups."""

import json
import threading
import time

import pytest

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
)
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from tests.group.streams.harness import Thread
from tests.group.streams.speaking import heartbeat, join
from tests.group.streams.topologies import subtopology
from tests.raw_client import RawClient


class TestGroups:
    @pytest.fixture(autouse=True)
    def orders(self, broker):
        broker.create_topic("orders", partitions=2)
        for number in range(5):
            broker.produce("orders", b"v%d" % number, partition=0)

    def test_lag_is_shown(self, kafkalite):
        kafkalite("consume", "orders", "-g", "g", "-n", "2")
        assert kafkalite("groups", "list") == [
            "GROUP  STATE  PROTOCOL  TYPE",
            "g      Empty  -         classic",
        ]
        assert kafkalite("groups", "describe", "g") == [
            "g: Empty, 0 members",
            "TOPIC   PARTITION  COMMITTED  END  LAG  CLIENT",
            "orders          0          2    5    3  -",
            "orders          1          0    0    0  -",
        ]
        described = json.loads("".join(kafkalite("groups", "describe", "g", "--json")))
        assert described["offsets"][0]["lag"] == 3
        listed = json.loads("".join(kafkalite("groups", "list", "--json")))
        assert listed == [{"group": "g", "state": "Empty", "protocol_type": "", "type": "classic"}]

    def test_a_group_outlives_the_offsets_that_go_with_their_topic(self, kafkalite, broker):
        kafkalite("consume", "orders", "-g", "g")
        assert len(kafkalite("groups", "describe", "g")) == 4
        broker.delete_topic("orders")
        assert kafkalite("groups", "describe", "g") == ["g: Empty, 0 members"]

    def test_reset(self, kafkalite, broker):
        kafkalite("consume", "orders", "-g", "g")
        shown = kafkalite("groups", "reset-offsets", "g", "--to", "-1", "--dry-run")
        assert shown == [
            "TOPIC   PARTITION  OLD  NEW",
            "orders          0    5    4",
            "orders          1    0    0",
        ]
        assert kafkalite("consume", "orders", "-g", "g") == []
        kafkalite("groups", "reset-offsets", "g", "--to", "beginning", "-t", "orders", "-p", "0")
        assert len(kafkalite("consume", "orders", "-g", "g")) == 5

    def test_reset_of_a_group_that_has_committed_nothing(self, kafkalite):
        kafkalite("consume", "orders", "-g", "other", "-n", "1")
        kafkalite(
            "groups",
            "reset-offsets",
            "g",
            "--to",
            "end",
            code=1,
            error="group 'g' has committed nothing; name a --topic",
        )

    def test_delete(self, kafkalite):
        kafkalite("consume", "orders", "-g", "g", "-n", "1")
        assert kafkalite("groups", "delete", "g") == ["deleted group g"]
        missing = "GROUP_ID_NOT_FOUND: group 'g' does not exist"
        kafkalite("groups", "delete", "g", code=1, error=missing)
        kafkalite("groups", "describe", "g", code=1, error="group 'g' does not exist")


class TestActiveGroup:
    """A group with a member, which is a real client."""

    @pytest.fixture
    def member(self, broker):
        from confluent_kafka import Consumer as ConfluentConsumer

        broker.create_topic("orders", partitions=2)
        consumer = ConfluentConsumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "g", "client.id": "me"}
        )
        consumer.subscribe(["orders"])
        stopping = threading.Event()

        def poll():
            while not stopping.is_set():
                consumer.poll(0.02)

        thread = threading.Thread(target=poll)
        thread.start()
        broker.wait_assigned("g")
        yield
        stopping.set()
        thread.join()
        consumer.close()

    def test_members_are_shown_and_protected(self, kafkalite, member):
        lines = kafkalite("groups", "describe", "g")
        assert lines[0] == "g: Stable, 1 member, assignor range"
        assert lines[1].endswith("at 127.0.0.1: orders-0, orders-1")
        assert lines[-1].split() == ["orders", "1", "-", "0", "-", "me"]
        kafkalite(
            "groups",
            "reset-offsets",
            "g",
            "--topic",
            "orders",
            "--to",
            "end",
            code=1,
            error="UNKNOWN_MEMBER_ID: group 'g' has active members; stop them first",
        )
        kafkalite(
            "groups",
            "delete",
            "g",
            code=1,
            error="NON_EMPTY_GROUP: group 'g' has members; stop them first",
        )


class TestConsumerGroups:
    """Members of the consumer protocol (KIP-848)."""

    @pytest.fixture
    def client(self, broker):
        broker.create_topic("orders", partitions=2)
        broker.produce("orders", b"v", partition=0)
        with RawClient(broker) as connected:
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
            while connected.ask(FIND_COORDINATOR, 4, request).coordinators[0].error_code:
                time.sleep(0.01)
            yield connected

    def beat(self, client, member_id, epoch, **said):
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=epoch, **said
        )
        answer = client.ask(CONSUMER_GROUP_HEARTBEAT, 1, request)
        assert answer.error_code == ErrorCode.NONE, answer

    def join(self, client, member_id):
        said = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["orders"]}
        self.beat(client, member_id, 0, topic_partitions=[], **said)

    def test_epochs_targets_and_lag_are_shown(self, kafkalite, broker, client):
        self.join(client, "a")
        assert kafkalite("groups", "list")[1:] == ["g      Stable  consumer  consumer"]
        lines = kafkalite("groups", "describe", "g")
        assert lines[:2] == [
            "g: Stable, 1 member, assignor uniform, epoch 2, target of epoch 2",
            "  a at 127.0.0.1, epoch 2: orders-0, orders-1",
        ]
        assert lines[3].split() == ["orders", "0", "-", "1", "-", "raw"]
        self.join(client, "b")
        self.beat(client, "a", 2)
        lines = kafkalite("groups", "describe", "g")
        assert lines[0].startswith("g: Reconciling, 2 members")
        assert lines[1].endswith("epoch 2: orders-0, orders-1 (to have orders-0)")
        assert lines[2].endswith("epoch 3: nothing assigned (to have orders-1)")
        described = json.loads("".join(kafkalite("groups", "describe", "g", "--json")))
        assert (described["group_epoch"], described["target_epoch"]) == (3, 3)
        first = described["members"][0]
        assert (first["protocol"], first["target"]) == ("consumer", ["orders-0"])

    def test_a_group_without_members_is_altered_and_deleted(self, kafkalite, client):
        self.join(client, "a")
        in_use = "NON_EMPTY_GROUP: group 'g' has members; stop them first"
        kafkalite("groups", "delete", "g", code=1, error=in_use)
        self.beat(client, "a", -1)
        kafkalite("groups", "reset-offsets", "g", "--topic", "orders", "--to", "end")
        lines = kafkalite("groups", "describe", "g")
        assert lines[0].startswith("g: Empty, 0 members")
        assert lines[2].split() == ["orders", "0", "1", "1", "0", "-"]
        assert kafkalite("groups", "delete", "g") == ["deleted group g"]


class TestStreamsGroups:
    @pytest.fixture
    def client(self, broker):
        broker.create_topic("in1", partitions=2)
        broker.produce("in1", b"v", partition=0)
        with RawClient(broker) as connected:
            yield connected

    def test_tasks_and_lag_are_shown(self, kafkalite, client):
        a = Thread("a", topology=(subtopology("0", "in1"),), endpoint=("host", 7))
        join(client, "app", a)
        assert kafkalite("groups", "list")[1:] == ["app    Stable  streams   streams"]
        lines = kafkalite("groups", "describe", "app")
        assert lines[:4] == [
            "app: Stable, 1 member, epoch 2, target of epoch 2",
            "  a at 127.0.0.1, epoch 2: active 0_0 0_1",
            "SUBTOPOLOGY  READS  WRITES  CHANGELOGS",
            "0            in1    -       -",
        ]
        assert [" ".join(line.split()) for line in lines[4:]] == [
            "TOPIC PARTITION COMMITTED END LAG TASK CLIENT",
            "in1 0 - 1 - 0_0 raw",
            "in1 1 - 0 - 0_1 raw",
        ]
        described = json.loads("".join(kafkalite("groups", "describe", "app", "--json")))
        (member,) = described["members"]
        assert member["endpoint"] == "host:7"
        assert member["tasks"] == {"active": ["0_0", "0_1"], "standby": [], "warmup": []}
        assert described["subtopologies"] == [
            {"subtopology": "0", "reads": ["in1"], "writes": [], "changelogs": []}
        ]
        assert described["offsets"][0]["task"] == "0_0"

    def test_what_a_member_is_to_have_is_shown_until_it_has_it(self, kafkalite, client):
        for name in "ab":
            join(client, "app", Thread(name, topology=(subtopology("0", "in1"),)))
        lines = kafkalite("groups", "describe", "app")
        assert lines[0].startswith("app: Assigning, 2 members") or "Reconciling" in lines[0]
        assert lines[2].startswith("  b at 127.0.0.1, epoch ")

    def test_a_group_is_shown_whose_topics_lack_and_deleted_when_it_is_empty(
        self, kafkalite, client
    ):
        a = Thread("a", topology=(subtopology("0", "gone", sinks="r"),))
        join(client, "app", a)
        assert kafkalite("groups", "describe", "app") == [
            "app: NotReady, 1 member, epoch 2, target of epoch 2",
            "  a at 127.0.0.1, epoch 2: no tasks",
            "SUBTOPOLOGY  READS  WRITES  CHANGELOGS",
            "0            gone   r       -",
        ]
        in_use = "NON_EMPTY_GROUP: group 'app' has members; stop them first"
        kafkalite("groups", "delete", "app", code=1, error=in_use)
        a.epoch = -1
        heartbeat(client, "app", a)
        assert kafkalite("groups", "describe", "app")[0].startswith("app: Empty, 0 members")
        assert kafkalite("groups", "delete", "app") == ["deleted group app"]
