"""The API as scripts use it, on a broker; and that the OpenAPI file tells the truth."""

import json
import threading
import time
import urllib.request
from urllib.parse import quote

import confluent_kafka
import confluent_kafka.admin
import pytest

from kafkalite import Broker
from kafkalite.client.cluster import Client
from kafkalite.observe import records
from tests.observe.observe_kit import Http


@pytest.fixture(scope="module")
def broker():
    with Broker(http=True, config={"kafkalite.journal.max.bytes": 1_000_000}) as broker:
        yield broker


@pytest.fixture(scope="module")
def api(broker):
    return Http(f"{broker.http_url}/api/v1")


@pytest.fixture(scope="module")
def orders(api):
    """A topic of three partitions with twenty records, the n-th with the value {"n": n}."""
    api.write("POST", "/topics", {"name": "orders", "partitions": 3})
    written = [
        {
            "key": f"k{n}",
            "value": {"n": n},
            "value_encoding": "json",
            "headers": [{"name": "trace", "value": f"t{n % 2}"}],
            "timestamp": 1_000_000 + n,
        }
        for n in range(20)
    ]
    api.write("POST", "/topics/orders/messages", {"records": written})
    return "orders"


def values(answer):
    return sorted(message["value"]["value"]["n"] for message in answer["messages"])


def consume(broker, group, count, **config):
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **config,
        }
    )
    consumer.subscribe(["orders"])
    assert len(consumer.consume(count, timeout=20)) == count
    return consumer


class TestCluster:
    def test_says_who_is_there(self, api, broker):
        found = api.get("/cluster")
        (one,) = found["brokers"]
        assert one["is_controller"]
        assert f"{one['host']}:{one['port']}" == found["bootstrap"] == broker.bootstrap
        assert found["profile"] == "test"

    def test_unknown_things_are_not_found(self, api):
        for path in (
            "/nothing",
            "/topics/none",
            "/topics/none/messages",
            "/groups/none",
            "/transactions/none",
            "/configs/planet/earth",
            "/requests/999999999",
        ):
            assert api.ask("GET", path)[0] == 404, path

    def test_settings_are_told_with_their_source_and_changed(self, api, orders):
        name = f"/configs/topic/{orders}"
        api.write("POST", name, {"set": {"retention.ms": "1000000"}})
        configs = {each["name"]: each for each in api.get(name)["configs"]}
        assert configs["retention.ms"]["value"] == "1000000"
        assert configs["retention.ms"]["source"] == "topic"
        assert configs["cleanup.policy"]["is_default"]
        assert "segments" in configs["cleanup.policy"]["documentation"]
        api.write("POST", name, {"delete": ["retention.ms"]})
        status, body = api.ask("POST", name, {"set": {"retention.ms": "soon"}})
        assert status == 400
        assert "retention.ms" in body["error"]["message"]

    def test_passwords_are_told_to_nobody(self, api):
        configs = api.get("/configs/broker/1")["configs"]
        token = next(each for each in configs if each["name"] == "kafkalite.http.token")
        assert token["sensitive"]
        assert token["value"] is None


class TestTopics:
    def test_are_listed_with_their_size(self, api, orders):
        (topic,) = [each for each in api.get("/topics")["topics"] if each["name"] == orders]
        assert (topic["records"], topic["partitions"]) == (20, 3)
        assert topic["bytes"] > 1_000
        assert api.get("/topics?search=rder")["count"] >= 1
        assert api.get("/topics?search=nobody")["topics"] == []

    def test_are_made_changed_emptied_and_deleted(self, api):
        body = {"name": "short", "partitions": 1, "configs": {"retention.ms": 5}}
        api.write("POST", "/topics", body)
        assert api.ask("POST", "/topics", body)[0] == 409
        api.write("POST", "/topics/short/partitions", {"count": 2})
        for partition in (0, 1):
            api.write("POST", "/topics/short/messages", {"value": "x", "partition": partition})
        assert api.get("/topics/short")["records"] == 2
        api.write("POST", "/topics/short/empty", {"before": {"1": 1}})
        assert api.get("/topics/short")["records"] == 1
        api.write("POST", "/topics/short/empty")
        assert [each["start"] for each in api.get("/topics/short/partitions")["partitions"]] == [
            1,
            1,
        ]
        api.write("DELETE", "/topics/short")
        assert api.ask("GET", "/topics/short")[0] == 404

    def test_bad_bodies_are_refused(self, api):
        for body in ({}, {"name": 5}, {"name": "a", "partitions": "x"}, {"name": "a b"}):
            assert api.ask("POST", "/topics", body)[0] == 400


class TestMessages:
    def test_the_newest_come_first_and_all_come_by_the_cursor(self, api, orders):
        seen, path = [], f"/topics/{orders}/messages?limit=2"
        for _ in range(20):
            answer = api.get(path)
            seen += answer["messages"]
            if answer["done"]:
                break
            path = f"/topics/{orders}/messages?limit=2&cursor={quote(json.dumps(answer['cursor']))}"
        assert answer["done"]
        assert sorted(each["value"]["value"]["n"] for each in seen) == [*range(20)]
        first = [each["timestamp"] for each in api.get(f"/topics/{orders}/messages")["messages"]]
        assert first == sorted(first, reverse=True)

    def test_nothing_is_passed_over_when_time_is_short(self, api, broker, monkeypatch):
        """Neither between two steps nor between partitions."""
        monkeypatch.setattr(records, "STEP_S", 0.0)
        topic = "hasty"
        broker.create_topic(topic, partitions=3)
        for number in range(30):
            broker.produce(topic, b"needle" + bytes(40_000), partition=number % 3)
        seen, steps, cursor, answer = [], 0, "", {"done": False}
        while not answer["done"]:
            answer = api.get(f"/topics/{topic}/messages?filter=needle{cursor}")
            seen += [(each["partition"], each["offset"]) for each in answer["messages"]]
            cursor = f"&cursor={quote(json.dumps(answer['cursor']))}"
            steps += 1
        assert sorted(seen) == [(index, offset) for index in range(3) for offset in range(10)]
        assert steps > 1
        assert answer["passed"] == answer["of"] == 30

    def test_the_newest_of_all_partitions_are_there_when_time_is_short(
        self, api, orders, monkeypatch
    ):
        monkeypatch.setattr(records, "STEP_S", 0.0)
        assert len(api.get(f"/topics/{orders}/messages")["messages"]) == 20

    def test_reading_goes_on_where_the_cursor_says(self, api, orders):
        path = f"/topics/{orders}/messages?from=earliest&limit=7"
        found, answer = [], api.get(path)
        while True:
            found += values(answer)
            if answer["done"]:
                break
            answer = api.get(f"{path}&cursor={quote(json.dumps(answer['cursor']))}")
        assert sorted(found) == [*range(20)]
        assert answer["passed"] == answer["of"] == 20

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("$.n > 16", [17, 18, 19]),
            ("$.n>=17 $.n != 18", [17, 19]),
            ("key:k3", [3]),
            ("header:trace=t1 $.n<4", [1, 3]),
            ("-$.n<19", [19]),
            ('"n\\": 12"', [12]),
            ("K12", [12]),
            ("$.nothing = 1", []),
        ],
    )
    def test_filters(self, api, orders, text, wanted):
        path = f"/topics/{orders}/messages?from=earliest&filter={quote(text)}"
        assert values(api.get(path)) == wanted

    def test_from_a_time_and_an_offset(self, api, orders):
        answer = api.get(f"/topics/{orders}/messages?from=time:1000018")
        assert values(answer) == [18, 19]
        assert values(api.get(f"/topics/{orders}/messages?from=time:2030-01-01")) == []
        answer = api.get(f"/topics/{orders}/messages?from=offset:2&partition=1")
        assert min(each["offset"] for each in answer["messages"]) == 2
        assert {each["partition"] for each in answer["messages"]} == {1}

    @pytest.mark.parametrize(
        "query",
        ["from=nowhere", "from=time:soon", "partition=9", "limit=0", "limit=x", "cursor=[]",
         "cursor=x", "filter=%22open", "filter=" + "x" * 3_000],
    )  # fmt: skip
    def test_bad_questions_are_refused(self, api, orders, query):
        assert api.ask("GET", f"/topics/{orders}/messages?{query}")[0] == 400

    def test_one_record_has_a_place_that_lasts(self, api, orders):
        message = api.get(f"/topics/{orders}/messages")["messages"][0]
        place = f"/topics/{orders}/messages/{message['partition']}"
        assert api.get(f"{place}/{message['offset']}") == message
        assert api.ask("GET", f"{place}/99")[0] == 404
        assert api.ask("GET", f"/topics/{orders}/messages/9/0")[0] == 404
        assert api.ask("GET", f"/topics/{orders}/messages/x/0")[0] == 404

    def test_bytes_come_as_they_are(self, api, broker):
        api.write("POST", "/topics", {"name": "bytes"})
        api.write(
            "POST",
            "/topics/bytes/messages",
            {"key": "AAECAw==", "key_encoding": "base64", "value": None, "compression": "zstd"},
        )
        (message,) = api.get("/topics/bytes/messages")["messages"]
        assert message["key"]["base64"] == "AAECAw=="
        assert message["value"]["type"] == "null"
        assert message["compression"] == "zstd"
        assert broker.records("bytes")[0].key == b"\0\1\2\3"
        for bad in (
            {"value": "x", "value_encoding": "rot13"},
            {"value": "%", "value_encoding": "base64"},
            {"value": "x", "partition": 7},
            {"value": "x", "compression": "rar"},
            {"records": []},
            {"records": [1]},
            {"headers": [1]},
        ):
            assert api.ask("POST", "/topics/bytes/messages", bad)[0] in (400, 404), bad

    def test_records_of_kafkas_own_topics_are_decoded(self, api, broker, orders):
        consumer = consume(broker, "own", 1)
        consumer.commit(asynchronous=False)
        consumer.close()
        answer = api.get("/topics/__consumer_offsets/messages?from=earliest&limit=100")
        kinds = {message["key"]["value"]["is"] for message in answer["messages"]}
        assert "OffsetCommitKey" in kinds

    def test_new_records_are_followed(self, api, broker):
        api.write("POST", "/topics", {"name": "news"})
        url = f"{api.url}/topics/news/messages/follow?filter=good"
        with urllib.request.urlopen(url, timeout=20) as stream:
            assert stream.readline() == b"retry: 1000\n"
            time.sleep(0.3)
            broker.produce("news", b"bad")
            broker.produce("news", b"good")
            lines = []
            while not lines or not lines[-1].startswith(b"data: "):
                lines.append(stream.readline())
        (message,) = json.loads(lines[-1].removeprefix(b"data: "))["messages"]
        assert message["value"]["value"] == "good"
        assert b'id: {"0": 2}\n' in lines


class TestGroups:
    def test_lag_and_members_are_told(self, api, broker, orders):
        consumer = consume(broker, "readers", 20)
        consumer.commit(offsets=[confluent_kafka.TopicPartition(orders, 0, 1)], asynchronous=False)
        group = api.get("/groups/readers")
        assert (group["type"], group["state"]) == ("classic", "Stable")
        (member,) = group["members"]
        assert member["assignment"] == [{"topic": orders, "partitions": [0, 1, 2]}]
        (offset,) = [each for each in group["offsets"] if each["partition"] == 0]
        assert offset["lag"] == offset["end"] - 1 == group["lag"]
        assert offset["lag_seconds"] > 1_000
        listed = {each["group_id"]: each for each in api.get("/groups?lag=true")["groups"]}
        assert listed["readers"]["lag"] == group["lag"]
        assert "readers" in {
            each["group_id"] for each in api.get(f"/topics/{orders}/groups")["groups"]
        }
        status, body = api.ask("POST", "/groups/readers/reset", {"to": "latest", "dry_run": False})
        assert status == 409
        assert "still has members (1)" in body["error"]["message"]
        consumer.close()

    def test_a_reset_is_shown_before_it_is_done(self, api, broker, orders):
        consumer = consume(broker, "moved", 20)
        consumer.commit(asynchronous=False)
        consumer.close()
        reset = "/groups/moved/reset"
        plan = api.write("POST", reset, {"to": "earliest"})
        assert plan["dry_run"]
        assert {change["after"] for change in plan["changes"]} == {0}
        assert api.get("/groups/moved")["lag"] == 0
        api.write("POST", reset, {"to": "earliest", "dry_run": False})
        assert api.get("/groups/moved")["lag"] == 20
        for to, lag in (("shift:1", 17), ("latest", 0), ("time:1000018", 2), ("offset:2", None)):
            api.write("POST", reset, {"to": to, "dry_run": False})
            assert lag is None or api.get("/groups/moved")["lag"] == lag, to
        body = {"offsets": [{"topic": orders, "partition": 1, "offset": 1}]}
        (change,) = api.write("POST", reset, body)["changes"]
        assert (change["partition"], change["after"]) == (1, 1)
        for bad in ({}, {"to": "soon"}, {"to": "time:x"}, {"to": "offset:-1"}, {"offsets": [1]}):
            assert api.ask("POST", reset, bad)[0] == 400, bad
        api.write("DELETE", "/groups/moved")
        assert api.ask("GET", "/groups/moved")[0] == 404

    def test_a_member_is_removed(self, api, broker, orders):
        consumer = consume(broker, "busy", 1)
        (member,) = api.get("/groups/busy")["members"]
        assert api.ask("DELETE", "/groups/busy", {})[0] == 409
        assert api.ask("DELETE", "/groups/busy/members/nobody", {})[0] == 404
        api.write("DELETE", f"/groups/busy/members/{member['member_id']}")
        assert api.get("/groups/busy")["members"] == []
        consumer.close()


class TestTransactions:
    def test_an_open_one_is_seen_and_ended(self, api, broker, orders):
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap, "transactional.id": "tx"}
        )
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(orders, b'{"n": 99}', partition=2)
        producer.flush()
        (found,) = api.get("/transactions?open=true")["transactions"]
        assert found["transactional_id"] == "tx"
        assert found["partitions"] == [{"topic": orders, "partitions": [2]}]
        (_, _, last) = api.get(f"/topics/{orders}/partitions")["partitions"]
        assert last["last_stable_offset"] < last["high_watermark"]
        path = f"/topics/{orders}/messages?from=earliest&limit=100"
        assert 99 in values(api.get(path))
        assert 99 not in values(api.get(f"{path}&committed=true"))
        assert api.write("POST", "/transactions/tx/abort")["state_before"] == "Ongoing"
        with pytest.raises(confluent_kafka.KafkaException):
            producer.commit_transaction(30)
        deadline = time.monotonic() + 20
        while api.get("/transactions?open=true")["count"] and time.monotonic() < deadline:
            pass
        assert api.get("/transactions?open=true")["count"] == 0


class TestLive:
    def test_requests_are_kept_with_their_answers(self, api, broker, orders):
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap, "client.id": "noted"}
        )
        producer.produce(orders, b"x" * 5_000, partition=0)
        producer.flush()
        (found,) = api.get("/requests?api=produce&client_id=noted")["requests"]
        assert found["topics"] == [orders]
        assert found["errors"] == []
        whole = api.get(f"/requests/{found['id']}")
        (topic,) = whole["response"]["responses"]
        assert topic["partition_responses"][0]["error_code"] == "NONE"
        assert whole["request"]["acks"] == -1
        assert len(json.dumps(whole)) < 5_000
        assert api.get("/requests?limit=1")["requests"][0]["id"] >= found["id"]
        assert api.ask("GET", "/requests?api=nothing")[0] == 400
        status = api.get("/requests?connection=999999")
        assert status["requests"] == []
        assert status["held_bytes"] <= status["max_bytes"]

    def test_errors_are_found(self, api, broker):
        admin = confluent_kafka.Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "x", "client.id": "lost"}
        )
        admin.list_topics("no such topic", timeout=10)
        found = api.get("/requests?client_id=lost&failed=true")["requests"]
        assert found[0]["errors"] == ["INVALID_TOPIC_EXCEPTION"]
        admin.close()

    def test_who_waits_is_told_and_can_be_disconnected(self, api, broker, orders):
        consumer = consume(
            broker, "waits", 1, **{"client.id": "patient", "fetch.wait.max.ms": 9000}
        )
        stop = threading.Event()
        polling = threading.Thread(
            target=lambda: [consumer.poll(0.1) for _ in iter(stop.is_set, True)]
        )
        polling.start()
        try:
            deadline = time.monotonic() + 20
            waiting = []
            while not waiting and time.monotonic() < deadline:
                waiting = [
                    each
                    for each in api.get("/waiting")["waiting"]
                    if (each["client_id"], each["api"]) == ("patient", "FETCH")
                ]
            assert waiting[0]["waits_for"] == "new records"
            clients = {each["connection_id"]: each for each in api.get("/clients")["clients"]}
            number = waiting[0]["connection_id"]
            assert clients[number]["software"] == "confluent-kafka-python"
            api.write("DELETE", f"/clients/{number}")
            assert api.ask("DELETE", "/clients/999999", {})[0] == 404
        finally:
            stop.set()
            polling.join()
            consumer.close()

    def test_requests_are_followed(self, api, broker):
        url = f"{api.url}/requests/follow?api=CreateTopics&raw=true"
        with urllib.request.urlopen(url, timeout=20) as stream:
            assert stream.readline() == b"retry: 1000\n"
            admin = Http(api.url)
            assert admin.get("/cluster")
            producer = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap})
            topic = confluent_kafka.admin.NewTopic("followed", 1)
            producer.create_topics([topic])["followed"].result()
            lines = []
            while not lines or not lines[-1].startswith(b"data: "):
                lines.append(stream.readline())
        found = json.loads(lines[-1].removeprefix(b"data: "))
        assert found["api"] == "CREATE_TOPICS"
        assert len(found["raw"]) == 2

    def test_metrics_of_clients_are_listed(self, api):
        assert api.get("/client-metrics")["clients"] == []

    def test_rates_begin_when_somebody_looks(self, api):
        assert api.get("/rates")["interval_s"] == 10
        assert api.get("/rates?topic=orders")["topic"] == "orders"


def test_without_a_journal_nothing_is_followed():
    with Broker(http=True, config={"kafkalite.journal.max.bytes": 0}) as broker:
        api = Http(f"{broker.http_url}/api/v1")
        assert api.get("/requests")["requests"] == []
        assert api.ask("GET", "/requests/follow")[0] == 409


def test_the_pulse_changes_when_something_happens_and_not_when_somebody_looks():
    with Broker(http=True) as broker:
        api = Http(f"{broker.http_url}/api/v1")
        broker.create_topic("there")
        pulses = [api.get("/pulse")["pulse"]]
        for path in ("/cluster", "/topics", "/groups?lag=true", "/clients", "/waiting", "/rates"):
            api.get(path)
        assert api.get("/pulse")["pulse"] == pulses[0]
        broker.create_topic("more")
        pulses.append(api.get("/pulse")["pulse"])
        with Client(broker.bootstrap) as client:
            client.fetch_metadata(None)
            pulses.append(api.get("/pulse")["pulse"])
        api.write("POST", "/topics/there/messages", {"records": [{"value": "x"}]})
        pulses.append(api.get("/pulse")["pulse"])
        assert len(set(pulses)) == 4
