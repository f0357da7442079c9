"""Faults and the clock over HTTP and from the command line."""

import json
import threading
import urllib.error
import urllib.request

import pytest
from confluent_kafka import Producer

from kafkalite.cli.main import run
from kafkalite.faults.control import load_rules
from kafkalite.faults.parts import parse_peers
from kafkalite.settings.config_def import SettingError
from kafkalite.testing import Broker


@pytest.fixture(scope="module")
def shared_broker():
    with Broker(http=True) as broker:
        yield broker


@pytest.fixture
def broker(shared_broker):
    shared_broker.reset()
    shared_broker.create_topic("orders")
    return shared_broker


def call(broker, method, path, body=None, *, content_type="application/json"):
    """Return status and JSON of an answer."""
    request = urllib.request.Request(
        f"{broker.http_url}/api/v1/control{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Content-Type": content_type},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def send(broker):
    producer = Producer({"bootstrap.servers": broker.bootstrap, "retry.backoff.ms": 10})
    producer.produce("orders", b"x")
    return producer.flush(20)


def test_a_rule_is_added_fires_is_waited_for_and_removed(broker):
    said = {"api": "Produce", "topic": "orders", "error": "NOT_ENOUGH_REPLICAS", "times": 2}
    status, rule = call(broker, "POST", "/faults", said)
    assert (status, rule["hits"]) == (200, 0)
    assert "error=NOT_ENOUGH_REPLICAS" in rule["rule"]
    thread = threading.Thread(target=send, args=[broker])
    thread.start()
    path = f"/faults/{rule['id']}"
    assert call(broker, "GET", f"{path}?wait_hits=2&timeout_s=20")[1]["hits"] == 2
    thread.join()
    assert len(broker.records("orders")) == 1
    assert call(broker, "GET", "/faults")[1]["faults"][0]["spent"] is True
    assert call(broker, "DELETE", path)[1]["id"] == rule["id"]
    assert call(broker, "GET", path)[0] == 404
    assert call(broker, "GET", "/faults")[1]["faults"] == []


def test_a_trigger_is_said_anew_and_chaos_is_had_by_its_seed(broker):
    said = {"api": "Produce", "error": "NOT_ENOUGH_REPLICAS", "times": 1}
    _, rule = call(broker, "POST", "/faults", said)
    status, again = call(broker, "PATCH", f"/faults/{rule['id']}", {**said, "times": 3})
    assert status == 200
    assert "times=3" in again["rule"]
    send(broker)
    assert call(broker, "GET", f"/faults/{rule['id']}")[1]["hits"] == 3
    assert call(broker, "PATCH", "/faults/f0", said)[0] == 404
    _, chaos = call(broker, "POST", "/chaos", {"seed": 4, "probability": 0.5})
    assert [each["hits"] for each in chaos["faults"]] == [0] * 6
    assert call(broker, "POST", "/chaos", {"topic": "orders"})[0] == 422


def test_orders_for_brokers_that_are_not_known_are_refused(broker):
    said = {"api": "Produce", "disconnect": True, "broker": "all"}
    status, answer = call(broker, "POST", "/faults", said)
    assert status == 422
    assert "kafkalite.control.peers" in answer["error"]["message"]
    assert call(broker, "GET", "/faults/1.f1")[0] == 404
    assert call(broker, "GET", "/faults/1x.f1")[0] == 404


@pytest.mark.parametrize("text", ["1", "x=http://h", "1=ftp://h"])
def test_peers_are_addresses_by_id(text):
    with pytest.raises(SettingError, match="no ID=URL"):
        parse_peers([text])
    assert parse_peers(["1=http://h:1", " 2=http://h:2"]) == {1: "http://h:1", 2: "http://h:2"}


def test_who_waits_in_vain_is_told(broker):
    _, rule = call(broker, "POST", "/faults", {"api": "Produce", "disconnect": True})
    broker.clock.freeze()
    status, answer = call(broker, "GET", f"/faults/{rule['id']}?wait_hits=1&timeout_s=0.05")
    assert status == 408
    assert "0 of 1" in answer["error"]["message"]
    assert call(broker, "DELETE", "/faults")[1]["removed"][0]["hits"] == 0


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("/faults", {"api": "Prduce", "disconnect": True}, "no API named"),
        ("/faults", {"api": "Produce"}, "has none"),
        ("/faults", {"api": "Produce", "where": "code"}, "only Python"),
        ("/disk-faults", {"op": "seek"}, "op is one of"),
        ("/disk-faults", {"what": 1}, "has no 'what'"),
        ("/disk-faults", {"error": "EBADF"}, "error is one of"),
        ("/disk-faults", {"delay_s": "long"}, "could not convert"),
        ("/clock", {}, "one of"),
        ("/clock", {"advance_s": "x"}, "no number"),
        ("/clock", {"advance_s": -1}, "advanced by 0"),
        ("/clock", {"warp": 9}, "no 'warp'"),
        ("/clock", {"set": "tomorrow"}, "ISO 8601"),
        ("/clock", {"set": "2030-01-01T00:00:00"}, "no time zone"),
        ("/clock", {"rate": -1}, "0 or more"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(broker, path, body, reason):
    status, answer = call(broker, "POST", path, body)
    assert status == 422
    assert reason in answer["error"]["message"]


def test_pages_of_other_sites_cannot_give_orders(broker):
    status, _ = call(broker, "POST", "/clock", {"freeze": True}, content_type="text/plain")
    assert status == 415


def test_the_disk_fails_as_it_is_told(broker):
    _, fault = call(broker, "POST", "/disk-faults", {"topic": "orders", "error": "EIO", "times": 1})
    assert (fault["op"], fault["errno"]) == ("write", 5)
    send(broker)
    assert call(broker, "GET", "/faults")[1]["disk_faults"][0]["hits"] == 1
    call(broker, "DELETE", "/faults")


def test_the_clock_is_turned(broker):
    before = broker.clock.now_ms()
    status, found = call(broker, "POST", "/clock", {"advance_s": 3600})
    assert status == 200
    assert found["now_ms"] - before >= 3_600_000
    assert call(broker, "POST", "/clock", {"freeze": True})[1]["frozen"] is True
    assert call(broker, "POST", "/clock", {"resume": True})[1]["rate"] == 1
    assert call(broker, "POST", "/clock", {"rate": 60})[1]["rate"] == 60
    found = call(broker, "POST", "/clock", {"set": "2030-01-01T00:00:00Z"})[1]
    assert found["now_ms"] // 1_000_000 == 1_893_456
    assert call(broker, "POST", "/clock", {"set_ms": 5_000})[1]["now_ms"] < 1_000_000
    assert abs(call(broker, "POST", "/clock", {"reset": True})[1]["ahead_s"]) < 1
    assert call(broker, "GET", "/clock")[1]["frozen"] is False


def test_without_permission_there_is_nothing():
    with Broker(http=True, config={"kafkalite.control": False}) as broker:
        assert call(broker, "GET", "/faults")[0] == 404
        assert run(["clock", "show", "--http", broker.http_url]) == 1


def test_from_the_command_line(broker, capsys):
    def kafkalite(*arguments, code=0):
        assert run([*arguments, "--http", broker.http_url]) == code
        return capsys.readouterr()

    out = kafkalite("faults", "add", "api=Produce", "topic=orders", "delay_s=0", "once=true").out
    rule_id = out.split()[0]
    assert rule_id in kafkalite("faults", "list").out
    send(broker)
    assert "hits=1" in kafkalite("faults", "wait", rule_id).out
    kafkalite("faults", "remove", rule_id)
    kafkalite("faults", "add", "api=Fetch", "disconnect=true", "topic=misspelt")
    assert "never fired" in kafkalite("faults", "clear").out
    assert "no API named" in kafkalite("faults", "add", "api=X", "disconnect=true", code=1).err
    assert "NAME=VALUE" in kafkalite("faults", "add", "api", code=2).err
    assert "+604800" in kafkalite("clock", "advance", "7d").out
    assert "frozen" in kafkalite("clock", "freeze").out
    assert "rate 1" in kafkalite("clock", "resume").out
    assert "2030-01-01" in kafkalite("clock", "set", "2030-01-01T00:00:00Z").out
    assert "rate 60" in kafkalite("clock", "rate", "60").out
    assert "rate 1" in kafkalite("clock", "reset").out
    assert "no duration" in kafkalite("clock", "advance", "soon", code=2).err


def test_a_broker_that_is_not_there_is_told(capsys):
    assert run(["clock", "show", "--http", "http://127.0.0.1:1"]) == 1
    assert "--http names it" in capsys.readouterr().err


def test_reset_makes_the_broker_as_it_was_at_its_start(broker):
    assert send(broker) == 0
    call(
        broker, "POST", "/faults", {"api": "Produce", "topic": "orders", "error": 19, "once": True}
    )
    call(broker, "POST", "/clock", {"advance_s": 100})
    status, answer = call(broker, "POST", "/reset", {})
    assert status == 200
    assert answer["topics"] == ["orders"]
    assert [rule["hits"] for rule in answer["removed"]] == [0]
    assert broker.topics() == []
    assert call(broker, "GET", "/faults")[1]["faults"] == []
    assert abs(call(broker, "GET", "/clock")[1]["ahead_s"]) < 50
    broker.create_topic("orders")


def test_a_file_has_rules_chaos_and_faults_of_the_disk(broker):
    control = broker.server.control
    rule = {"api": "Produce", "topic": "orders", "error": "NOT_ENOUGH_REPLICAS", "times": 1}
    text = json.dumps([rule, {"chaos": {"seed": 3}}, {"op": "write", "error": "EIO", "times": 1}])
    assert broker.call_in_broker(lambda: load_rules(text, control)) == 8
    found = call(broker, "GET", "/faults")[1]
    assert (len(found["faults"]), len(found["disk_faults"])) == (7, 1)
    call(broker, "DELETE", "/faults")
    wrong = ["{", "{}", "[1]", '[{"op": "seek"}]', '[{"api": "X"}]', '[{"chaos": {"x": 1}}]']
    for each in wrong:
        with pytest.raises(ValueError, match=r"JSON|a list|op is|no API|chaos has"):
            broker.call_in_broker(lambda each=each: load_rules(each, control))
    assert call(broker, "GET", "/faults")[1]["faults"] == []
