"""Faults made by a test, as real clients bear them."""

import socket
import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kafkalite.faults.specification import FaultRuleError
from kafkalite.testing import Broker
from kafkalite.testing.faults import FaultNeverFired
from kafkalite.wire.errors import ErrorCode


@pytest.fixture(scope="module")
def shared_broker():
    with Broker(
        config={
            "group.consumer.heartbeat.interval.ms": 200,
            "group.consumer.min.heartbeat.interval.ms": 100,
        }
    ) as broker:
        yield broker


@pytest.fixture
def broker(shared_broker):
    shared_broker.reset()
    shared_broker.create_topic("orders", partitions=2)
    yield shared_broker
    for rule in shared_broker.faults.rules():
        shared_broker.faults.remove(rule)


def producer(broker, **config):
    return Producer(
        {"bootstrap.servers": broker.bootstrap, "retry.backoff.ms": 10, "linger.ms": 0, **config}
    )


def send(client, value=b"x", *, partition=0, timeout_s=20):
    """Return the error of one delivery, None if it was delivered."""
    outcome = []
    client.produce("orders", value, partition=partition, on_delivery=lambda e, _: outcome.append(e))
    client.flush(timeout_s)
    return outcome[0]


def consumer(broker, **config):
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
            "reconnect.backoff.ms": 10,
            **config,
        }
    )


def grouped(broker, protocol):
    config = {"group.protocol": protocol}
    if protocol == "consumer":  # its heartbeats go by the broker's settings
        return Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                **config,
            }
        )
    return consumer(broker, **config)


def _group(broker, name):
    shard = broker.server.services.coordinators.shard_of("__consumer_offsets", name)
    return None if shard is None else shard.groups.get(name)


def members_of(broker, name):
    return broker.call_in_broker(lambda: [*getattr(_group(broker, name), "members", ())])


def read(client, count, timeout_s=20):
    until, values = time.monotonic() + timeout_s, []
    while len(values) < count:
        assert time.monotonic() < until, values
        message = client.poll(0.1)
        if message is not None and message.error() is None:
            values.append(message.value())
    return values


def test_an_error_before_is_retried_and_nothing_was_written_meanwhile(broker):
    rule = broker.faults.on("Produce", topic="orders").error("NOT_ENOUGH_REPLICAS").times(3)
    assert send(producer(broker)) is None
    assert (rule.hits, rule.matched) == (3, 3)
    assert len(broker.records("orders")) == 1


def test_an_error_after_is_retried_and_doubles_what_is_not_idempotent(broker):
    broker.faults.on("Produce").error("NOT_ENOUGH_REPLICAS_AFTER_APPEND", applied=True).once()
    assert send(producer(broker)) is None
    assert len(broker.records("orders")) == 2


@pytest.mark.parametrize(("idempotent", "copies"), [(False, 2), (True, 1)])
@pytest.mark.parametrize("reset", [False, True])
def test_a_lost_reply_doubles_records_unless_the_producer_is_idempotent(
    broker, idempotent, copies, reset
):
    rule = broker.faults.on("Produce").lose_reply(reset=reset).once()
    assert send(producer(broker, **{"enable.idempotence": idempotent})) is None
    rule.wait()
    assert len(broker.records("orders")) == copies


@pytest.mark.slow
def test_an_isr_that_is_too_small_refuses_only_those_who_want_all_of_it(broker):
    rule = broker.faults.shrink_isr("orders")
    assert send(producer(broker, acks=1)) is None
    assert rule.hits == 0
    refused = send(producer(broker, acks="all", **{"message.timeout.ms": 500}))
    assert refused.code() == KafkaError._MSG_TIMED_OUT
    assert rule.hits > 1
    rule.remove()
    assert send(producer(broker, acks="all")) is None
    assert len(broker.records("orders")) == 2


def test_a_rule_fires_by_chance_until_it_does_not(broker):
    rule = broker.faults.on("Produce").error("NOT_ENOUGH_REPLICAS").with_probability(0.8, seed=1)
    assert send(producer(broker)) is None
    assert rule.matched == rule.hits + 1 > 1


def test_a_rule_holds_for_a_time_of_the_brokers_clock(broker):
    rule = broker.faults.on("Produce").error("TOPIC_AUTHORIZATION_FAILED").for_seconds(60)
    assert send(producer(broker)).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    broker.clock.advance(61)
    assert send(producer(broker)) is None
    assert rule.hits == 1


@pytest.mark.slow
def test_a_disk_that_fails_once_or_is_slow_is_borne(broker):
    broken = broker.faults.disk_error(topic="orders", times=1)
    assert send(producer(broker)) is None
    slow = broker.faults.slow_disk(0.2, topic="orders", times=1)
    began_s = time.monotonic()
    assert send(producer(broker)) is None
    assert time.monotonic() - began_s >= 0.2
    assert (broken.hits, slow.hits) == (1, 1)
    assert len(broker.records("orders")) == 2


def test_a_fatal_error_reaches_the_application_at_once(broker):
    broker.faults.on("Produce", topic="ord*").error("TOPIC_AUTHORIZATION_FAILED").once()
    assert send(producer(broker)).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert broker.records("orders") == []


def test_one_partition_fails_and_the_other_does_not(broker):
    broker.faults.on("Produce", topic="orders", partition=1).error("INVALID_RECORD")
    client = producer(broker, **{"linger.ms": 50})
    outcomes = {}
    for partition in (0, 1):
        client.produce(
            "orders",
            b"x",
            partition=partition,
            on_delivery=lambda error, message: outcomes.update({message.partition(): error}),
        )
    client.flush(20)
    assert outcomes[0] is None
    assert outcomes[1].code() == KafkaError.INVALID_RECORD
    assert [r.partition for r in broker.records("orders")] == [0]


def test_a_disconnect_applies_nothing(broker):
    broker.faults.on("Produce").disconnect().once()
    assert send(producer(broker)) is None
    assert len(broker.records("orders")) == 1


def test_a_black_hole_is_noticed_by_the_clients_own_timeout(broker):
    rule = broker.faults.on("Produce").blackhole().once()
    assert send(producer(broker, **{"socket.timeout.ms": 500})) is None
    assert rule.hits == 1
    assert len(broker.records("orders")) == 1


def test_a_record_is_matched_by_key_and_value(broker):
    rule = broker.faults.on("Produce", topic="orders", value=b"poison").error("INVALID_RECORD")
    client = producer(broker)
    assert send(client, b"good") is None
    assert send(client, b"some poison in it").code() == KafkaError.INVALID_RECORD
    assert rule.hits == 1
    assert [r.value for r in broker.records("orders")] == [b"good"]


def test_a_delay_holds_back_the_answer_and_not_the_records(broker):
    rule = broker.faults.on("Produce").delay(0.5).once()
    client = producer(broker)
    client.produce("orders", b"x", partition=0)
    client.poll(0)
    rule.wait()
    until = time.monotonic() + 10
    while not broker.records("orders"):
        assert time.monotonic() < until
    assert client.flush(20) == 0


def test_a_delay_before_holds_back_the_records(broker):
    rule = broker.faults.on("Produce").delay(0.5, applied=False).once()
    client = producer(broker)
    client.produce("orders", b"x", partition=0)
    client.poll(0)
    rule.wait()
    assert broker.records("orders") == []
    assert client.flush(20) == 0
    assert len(broker.records("orders")) == 1


def test_a_delay_goes_by_the_brokers_clock(broker):
    rule = broker.faults.on("Produce").delay(3_000).once()
    client = producer(broker)
    client.produce("orders", b"x", partition=0)
    client.poll(0)
    rule.wait()
    broker.clock.advance(3_001)
    assert client.flush(20) == 0


def test_a_consumer_reads_on_over_errors_of_its_fetches(broker):
    broker.produce("orders", b"first", partition=0)
    rule = broker.faults.on("Fetch", topic="orders", partition=0).error("NOT_LEADER_OR_FOLLOWER")
    rule.times(2)
    client = consumer(broker)
    client.subscribe(["orders"])
    assert read(client, 1) == [b"first"]
    rule.wait(2)
    broker.faults.on("Fetch", topic="orders", partition=0).error("OFFSET_OUT_OF_RANGE").once()
    broker.produce("orders", b"second", partition=0)
    assert b"second" in read(client, 2)  # it begins anew at the earliest
    client.close()


@pytest.mark.parametrize("how", ["crc", "batch"])
def test_corrupt_records_are_seen_by_a_client_that_looks(broker, how):
    broker.produce("orders", b"intact", partition=0)
    rule = broker.faults.on("Fetch", topic="orders").corrupt(how).once()
    client = consumer(broker, **{"check.crcs": True})
    client.assign([TopicPartition("orders", 0, 0)])
    rule.wait(timeout_s=20) if client.poll(0.5) is None else None
    assert read(client, 1) == [b"intact"]
    assert rule.hits == 1
    assert [r.value for r in broker.records("orders")] == [b"intact"]
    client.close()


COMMITTING = {"enable.auto.commit": False, "retry.backoff.ms": 500}
"""librdkafka fails a commit that it tries again before it has reconnected, and does so for up to a
minute, if it waits for as long as for reconnecting, as it does by default."""


def test_a_lost_commit_is_committed(broker):
    broker.produce("orders", b"x", partition=0)
    # librdkafka tries again too early for its own connection if its backoff is as short as here,
    # and asks for the coordinator behind a long poll.
    client = consumer(
        broker,
        **{"enable.auto.commit": False, "fetch.wait.max.ms": 50, "reconnect.backoff.ms": 100},
    )
    client.subscribe(["orders"])
    read(client, 1)
    rule = broker.faults.on("OffsetCommit", group="g").lose_reply().once()
    client.commit(asynchronous=False)
    assert rule.hits == 1
    broker.wait_committed("g", "orders", 0)
    client.close()


def test_a_moved_coordinator_is_looked_for_again(broker):
    broker.produce("orders", b"x", partition=0)
    client = consumer(broker)
    client.subscribe(["orders"])
    read(client, 1)
    moved, gone = broker.faults.move_coordinator("g", times=2)
    until = time.monotonic() + 20
    while gone.hits < 2:
        assert time.monotonic() < until
        client.poll(0.1)
    assert moved.hits == 1
    broker.produce("orders", b"y", partition=0)
    assert b"y" in read(client, 1)
    client.close()


def test_a_transaction_whose_commit_is_lost_is_committed_once(broker):
    client = producer(broker, **{"transactional.id": "tx"})
    client.init_transactions(20)
    rule = broker.faults.on("EndTxn", transactional_id="tx*").lose_reply().once()
    client.begin_transaction()
    client.produce("orders", b"x", partition=0)
    client.commit_transaction(20)
    assert rule.hits == 1
    assert [r.value for r in broker.records("orders", read_committed=True)] == [b"x"]


def test_a_fenced_producer_is_told_so(broker):
    client = producer(broker, **{"transactional.id": "tx"})
    client.init_transactions(20)
    rule = broker.faults.fence_producer("tx")
    client.begin_transaction()
    client.produce("orders", b"x", partition=0)
    with pytest.raises(KafkaException) as failure:
        client.commit_transaction(20)
    assert failure.value.args[0].code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
    assert rule.hits == 1
    assert broker.records("orders", read_committed=True) == []


def test_metadata_can_be_stale(broker):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with broker.faults.on("Metadata").stale_metadata() as rule:
        broker.create_topic("new")
        assert "new" not in admin.list_topics(timeout=10).topics
        assert rule.hits
    assert "new" in admin.list_topics(timeout=10).topics


def test_stale_metadata_are_stale_for_who_would_create_the_topic_too(broker):
    rule = broker.faults.on("Metadata").stale_metadata().times(2)
    broker.create_topic("new")
    client = producer(broker)
    client.produce("new", b"x")
    assert client.flush(20) == 0
    assert rule.hits == 2
    answers = [seen.response for seen in broker.requests("Metadata")]
    codes = [topic.error_code for answer in answers[:2] for topic in answer.topics]
    assert set(codes) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert [record.value for record in broker.records("new")] == [b"x"]


def test_metadata_names_the_error_of_one_topic_and_all_brokers(broker):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    broker.create_topic("fine")
    broker.faults.on("Metadata", topic="orders").error("LEADER_NOT_AVAILABLE")
    listed = admin.list_topics(timeout=10)
    assert listed.topics["orders"].error.code() == KafkaError.LEADER_NOT_AVAILABLE
    assert listed.topics["fine"].error is None
    assert listed.brokers


@pytest.mark.parametrize("match", [{}, {"topic": "orders"}])
def test_a_wrong_leader_is_named_and_given_up_again(broker, match):
    rule = broker.faults.on("Produce", **match).wrong_leader(4_242).once()
    assert send(producer(broker)) is None
    assert rule.hits == 1
    answers = [seen.response.responses[0] for seen in broker.requests("Produce")]
    leaders = [answer.partition_responses[0].current_leader.leader_id for answer in answers]
    assert leaders == [4_242, -1]
    assert len(broker.records("orders")) == 1


def test_a_torn_answer_is_asked_for_again(broker):
    broker.faults.on("Produce").truncate(9).once()
    assert send(producer(broker, **{"enable.idempotence": True})) is None
    assert len(broker.records("orders")) == 1


def test_an_answer_in_pieces_is_put_together(broker):
    rule = broker.faults.on("Produce").slice(3, pause_s=0.001)
    assert send(producer(broker)) is None
    assert rule.hits
    rule.remove()
    rule = broker.faults.on("Metadata").slow(20_000)
    assert "orders" in AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics().topics
    assert rule.hits


def test_a_throttled_connection_rests(broker):
    broker.faults.on("Produce").throttle(400).once()
    client = producer(broker)
    begin = time.monotonic()
    assert send(client) is None
    assert send(client) is None
    assert time.monotonic() - begin >= 0.35
    seen = broker.requests("Produce")
    assert seen[-1].timestamp_ms - seen[-2].timestamp_ms >= 0


def test_ignored_it_is_as_if_the_client_never_asked(broker):
    broker.faults.on("Produce").ignore().once()
    assert send(producer(broker, **{"socket.timeout.ms": 500})) is None
    assert len(broker.records("orders")) == 1


def test_a_response_can_be_transformed(broker):
    def rename(request, response):
        response.cluster_id = "another"
        return response

    broker.faults.on("Metadata").transform(rename)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert admin.list_topics(timeout=10).cluster_id == "another"


def test_a_full_disk_refuses_what_is_to_be_written(broker):
    fault = broker.faults.disk_full("orders")
    assert send(producer(broker, **{"message.timeout.ms": 1_000})) is not None
    assert fault.hits
    assert broker.records("orders") == []


def test_a_sequence_is_gone_through(broker):
    rule = broker.faults.on("Produce").sequence("ok", "NOT_LEADER_OR_FOLLOWER", {"delay_s": 0.01})
    client = producer(broker)
    assert send(client) is None
    assert rule.hits == 1
    assert send(client) is None
    assert rule.hits == 3
    assert len(broker.records("orders")) == 2


def test_requests_behind_a_fault_on_one_connection_keep_their_order(broker):
    broker.faults.on("Produce", topic="orders").error("NOT_LEADER_OR_FOLLOWER").every(7).times(5)
    client = producer(broker, **{"enable.idempotence": True, "batch.num.messages": 3})
    for number in range(100):
        client.produce("orders", str(number).encode(), partition=0)
    assert client.flush(30) == 0
    assert [int(r.value) for r in broker.records("orders")] == list(range(100))


def test_chaos_harms_no_idempotent_producer_and_is_the_same_for_the_same_seed(broker):
    broker.faults.chaos(seed=3, probability=0.05)
    client = producer(broker, **{"enable.idempotence": True, "batch.num.messages": 2})
    for number in range(200):
        client.produce("orders", str(number).encode(), partition=0)
    assert client.flush(60) == 0
    for rule in broker.faults.rules():
        broker.faults.remove(rule)
    assert [int(r.value) for r in broker.records("orders")] == list(range(200))


def test_a_rule_that_never_fired_is_told(broker):
    broker.faults.on("Produce", topic="ordres").error("NOT_LEADER_OR_FOLLOWER")
    with pytest.warns(FaultNeverFired, match="ordres"):
        broker.faults.clear()
    broker.faults.on("Produce", topic="ordres").error("NOT_LEADER_OR_FOLLOWER")
    with pytest.raises(FaultNeverFired):
        broker.faults.clear(strict=True)
    assert broker.faults.rules() == []


def test_waiting_ends_when_it_fires_or_by_real_time(broker):
    rule = broker.faults.on("Produce").error("NOT_LEADER_OR_FOLLOWER").once()
    with broker.clock.frozen(), pytest.raises(TimeoutError, match="0 of 1"):
        rule.wait(timeout_s=0.05)
    thread = threading.Thread(target=send, args=[producer(broker)])
    thread.start()
    rule.wait(timeout_s=20)
    thread.join()


def test_what_does_not_fit_is_refused_before_anything_happens(broker):
    with pytest.raises(FaultRuleError, match="no API"):
        broker.faults.on("Prduce").disconnect()
    with pytest.raises(FaultRuleError, match="is an action"):
        broker.faults.on("Produce", error="x")
    with pytest.raises(FaultRuleError, match="action already"):
        broker.faults.on("Produce").disconnect().lose_reply()
    with pytest.raises(RuntimeError, match="no action yet"):
        _ = broker.faults.on("Produce").hits
    for rule in broker.faults.rules():
        broker.faults.remove(rule)


def test_without_rules_the_dispatcher_knows_of_none(broker):
    dispatcher = broker.server.dispatcher
    assert dispatcher.interceptor is None
    rule = broker.faults.on("Produce").disconnect()
    assert dispatcher.interceptor is not None
    rule.remove()
    assert dispatcher.interceptor is None


def test_a_reset_is_a_reset(broker):
    with broker.faults.on("ApiVersions").disconnect(reset=True):
        host, _, port = broker.bootstrap.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff".replace(" ", "")))
            with pytest.raises(ConnectionResetError):
                client.recv(1)


@pytest.mark.slow
@pytest.mark.parametrize("action", [{"blackhole": True}, {"ignore": True}, {"delay_s": 5.0}])
def test_member_that_lost_patience_with_a_rule_is_still_a_member(broker, action):
    """The client closes the connection itself here, and not because it wants to leave."""
    broker.produce("orders", b"x", partition=0)
    settings = {**COMMITTING, "socket.timeout.ms": 1_000, "fetch.wait.max.ms": 100}
    client = consumer(broker, **settings)
    client.subscribe(["orders"])
    read(client, 1)
    members = members_of(broker, "g")
    rule = broker.faults.add({"api": "OffsetCommit", "group": "g", "once": True, **action})
    client.commit(asynchronous=False)
    assert rule.hits == 1
    assert members_of(broker, "g") == members
    client.close()


@pytest.mark.slow
def test_member_whose_connection_a_rule_closes_is_still_a_member(broker):
    """Members are gone with their connection in tests, but Kafka's are not."""
    broker.produce("orders", b"x", partition=0)
    client = consumer(broker, **COMMITTING)
    client.subscribe(["orders"])
    read(client, 1)
    members = members_of(broker, "g")
    rule = broker.faults.on("OffsetCommit", group="g").disconnect().once()
    client.commit(asynchronous=False)
    assert rule.hits == 1
    assert members_of(broker, "g") == members
    client.close()
