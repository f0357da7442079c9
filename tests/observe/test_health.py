"""Whether a broker is there, and what tests in other languages wait for."""

import threading

import confluent_kafka
import pytest

from kafkalite import Broker
from tests.observe.observe_kit import Http


@pytest.fixture(scope="module")
def broker():
    with Broker(http=True) as broker:
        yield broker


@pytest.fixture(scope="module")
def http(broker):
    return Http(broker.http_url)


def test_a_broker_that_answers_lives(http):
    assert http.get("/health/live") == {"status": "live"}


def test_a_broker_alone_is_ready(http):
    body = http.get("/health/ready")
    assert body["status"] == "ready"
    assert {check["name"] for check in body["checks"]} >= {"registered", "controller"}
    assert all(check["ok"] for check in body["checks"])


def test_a_topic_that_is_not_there_is_told(http):
    status, body = http.ask("GET", "/health/ready?topic=nobody")
    assert status == 503
    assert body["reason"] == "topic: there is no topic 'nobody'"


def test_a_topic_is_waited_for(http, broker):
    timer = threading.Timer(0.2, broker.create_topic, ["late"], {"partitions": 3})
    timer.start()
    body = http.get("/health/ready?topic=late&timeout=20000")
    assert body["checks"][-1]["detail"] == "3 of 3 partitions have a leader"
    timer.join()


def test_a_group_is_waited_for(http, broker):
    broker.create_topic("read")
    status, body = http.ask("GET", "/health/ready?group=readers&timeout=10")
    assert status == 503
    assert "readers" in body["reason"]
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "readers"}
    )
    consumer.subscribe(["read"])
    stop = threading.Event()
    polling = threading.Thread(target=lambda: [consumer.poll(0.1) for _ in iter(stop.is_set, True)])
    polling.start()
    try:
        body = http.get("/health/ready?group=readers&members=1&timeout=20000")
        assert body["checks"][-1]["detail"] == "Stable with 1 members"
        assert http.ask("GET", "/health/ready?group=readers&members=2")[0] == 503
    finally:
        stop.set()
        polling.join()
        consumer.close()


def test_a_bad_timeout_is_refused(http):
    assert http.ask("GET", "/health/ready?timeout=soon")[0] == 400
