"""The console in a real browser: on a broker, and over the wire."""

import json
import urllib.request

import confluent_kafka
import pytest
import trio

from kafkalite import Broker
from kafkalite.client.cluster import Client
from kafkalite.client.producer import Producer
from kafkalite.client.users import set_password
from kafkalite.console.serving import serve_console
from kafkalite.http.port import HttpAddress
from kafkalite.wire.errors import KafkaError
from tests.console.console_kit import Console, browser
from tests.observe.observe_kit import Http

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "total", "type": "long"}]}
STATE = {"name": "state", "type": "string", "default": "open"}
ORDER_WITH_STATE = {**ORDER, "fields": [*ORDER["fields"], STATE]}

HOSTILE = "<img src=x onerror=\"document.body.dataset.hacked='yes'\"><script>alert(1)</script>"


def register(broker, subject, schema):
    request = urllib.request.Request(
        f"{broker.schema_registry_url}/subjects/{subject}/versions",
        json.dumps({"schema": json.dumps(schema)}).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request).close()


@pytest.fixture(scope="module")
def driver():
    with browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def broker():
    config = {"kafkalite.journal.max.bytes": 4_000_000}
    with Broker(http=True, schema_registry=True, config=config) as broker:
        broker.create_topic("orders", partitions=3)
        for number in range(300):
            value = json.dumps({"order": number, "state": "paid" if number % 7 else "open"})
            broker.produce("orders", value.encode(), key=b"customer-%d" % (number % 20))
        broker.create_topic("empty")
        broker.create_topic("hostile")
        broker.produce("hostile", HOSTILE.encode(), key=HOSTILE.encode(), headers=[(HOSTILE, b"x")])
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "billing",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        read = [(0, 50), (1, 100), (2, 50)]
        consumer.commit(
            offsets=[confluent_kafka.TopicPartition("orders", *each) for each in read],
            asynchronous=False,
        )
        consumer.close()
        with Client(broker.bootstrap) as client:
            set_password(client, "alice", "secret")
        for version in (ORDER, ORDER_WITH_STATE):
            register(broker, "orders-value", version)
        yield broker


@pytest.fixture
def console(driver, broker):
    console = Console(driver, broker.http_url)
    yield console
    assert console.errors() == []


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("overview", "controller"),
        ("topics", "orders"),
        ("topics/orders", "customer-"),
        ("topics/orders/partitions", "High watermark"),
        ("topics/orders/config", "cleanup.policy"),
        ("topics/orders/groups", "billing"),
        ("topics/orders/produce", "Tombstone"),
        ("topics/empty", "0 of 0 searched"),
        ("topics/none", "there is no topic"),
        ("topics/__consumer_offsets", '"is":"OffsetCommitValue"'),
        ("groups", "billing"),
        ("groups/billing", "Reset offsets"),
        ("transactions", "Nothing here."),
        ("clients", "Software"),
        ("live", "Who waits for what"),
        ("brokers/1", "log.retention.hours"),
        ("faults", "the real time"),
        ("schemas", "orders-value"),
        ("schemas/orders-value", "What changed since version 1"),
        ("security", "alice"),
        ("nowhere", "There is no such page"),
    ],
)
def test_each_page_is_drawn(console, page, text):
    console.open(page)
    console.wait_text(text)
    console.save(page.replace("/", "-"))


def test_every_field_and_button_has_a_name(console):
    pages = ("topics", "topics/orders", "topics/orders/produce", "groups/billing", "live", "faults")
    for page in pages:
        console.open(page)
        nameless = console.script(
            "return [...document.querySelectorAll('input, select, textarea, button')]"
            ".filter((each) => !each.textContent.trim() && !each.closest('label')"
            " && !each.getAttribute('aria-label')).map((each) => each.outerHTML)"
        )
        assert nameless == [], page


def test_a_record_is_found_by_its_content(console):
    console.open("topics/orders")
    console.wait_text("found")
    console.fill("From", "earliest")
    console.fill("Filter", "$.order = 217")
    console.click("Search")
    console.wait_text("1 found, all seen")
    assert '"order": 217' in console.text
    assert "300 of 300 searched" in console.text
    link = "return document.querySelector('tbody a').getAttribute('href')"
    console.open(console.script(link).removeprefix("#/"))
    console.wait_text('"order": 217')


def test_new_records_appear_while_they_are_followed(console, broker):
    console.open("topics/empty")
    console.click("Follow")
    console.wait_text("following")
    broker.produce("empty", b"breaking news")
    console.wait_text("breaking news")


def test_records_are_never_html(console):
    for page in ("topics/hostile", "topics/hostile/record/0/0"):
        console.open(page)
        console.wait_text("onerror")
        assert console.script("return document.body.dataset.hacked || null") is None
        assert (
            console.script("return document.querySelectorAll('main img, main script').length") == 0
        )


def test_a_record_is_written(console, broker):
    console.open("topics/empty/produce")
    console.fill("Key", "k")
    console.fill("Value", "by hand")
    console.fill("Headers", "a=1")
    console.click("Produce")  # the tab of this name, which changes nothing
    console.script("document.querySelector('form button.main').click()")
    console.wait_text("Written:")
    record = broker.records("empty")[-1]
    assert (record.key, record.value, record.headers) == (b"k", b"by hand", [("a", b"1")])


def test_a_group_is_reset_after_its_plan_was_shown(console):
    console.open("groups/billing")
    console.wait_text("lag 100")
    console.click("Show the plan")
    console.wait_text("Nothing has changed yet.")
    console.click("Reset")
    console.wait_text("Done.")
    console.wait_text("lag 300")


def test_a_fault_is_added_fires_and_is_removed(console, broker):
    console.open("faults")
    console.fill("Rule", '{"api": "Produce", "topic": "faulty", "error": "INVALID_RECORD"}')
    console.click("Add the rule")
    console.wait_text("INVALID_RECORD")
    broker.create_topic("faulty")
    with Client(broker.bootstrap) as client:
        producer = Producer(client, "faulty")
        producer.send(b"x")
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            producer.flush()
    console.wait_text("in force")
    assert [rule.hits for rule in broker.server.control.injector.rules] == [1]
    console.click("Remove all rules")
    console.wait_text("Nothing here.")


def test_the_clock_is_moved_and_put_back(console, broker):
    console.open("faults")
    console.wait_text("the real time")
    console.fill("Seconds", "7200")
    console.click("Go forward")
    console.wait_text("2.0 h ahead")
    console.click("Real time")
    console.wait(lambda: "ahead" not in console.text)


def test_a_schema_is_checked_and_registered(console):
    console.open("schemas/orders-value")
    wrong = {**ORDER, "fields": [{"name": "price", "type": "long"}]}
    console.fill("Schema", json.dumps(wrong))
    console.click("Check")
    console.wait_text("It is not compatible.")
    more = {**ORDER_WITH_STATE, "doc": "An order."}
    console.fill("Schema", json.dumps(more))
    console.click("Check")
    console.wait_text("It is compatible.")
    console.click("Register")
    console.wait_text("Version 3")


def test_what_clients_push_is_shown(console, broker):
    """KIP-714: librdkafka pushes once somebody subscribed."""
    api = Http(f"{broker.http_url}/api/v1")
    settings = {"set": {"metrics": "*", "interval.ms": "100"}}
    api.write("POST", "/configs/client-metrics/all", settings)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("empty", b"x")
    producer.flush()
    console.wait(lambda: producer.poll(0) or api.get("/client-metrics")["clients"])
    console.wait(lambda: api.get("/client-metrics")["clients"][0]["metrics"])
    console.open("clients")
    console.wait_text("pushes")
    console.script("document.querySelector('details').open = true")
    console.wait_text("producer.connection.creation.total")


def test_a_thousand_topics_are_usable(driver):
    with Broker(http=True) as broker:
        for number in range(1_000):
            broker.create_topic(f"topic-{number:04}")
        console = Console(driver, broker.http_url)
        console.open("topics")
        console.wait_text("Show more of 1000")
        console.fill("Search", "0999")
        console.wait(lambda: "topic-0999" in console.text and "topic-0001" not in console.text)


def test_without_topics_it_says_so(driver):
    with Broker(http=True) as broker:
        console = Console(driver, broker.http_url)
        console.open("topics")
        console.wait_text("Nothing here.")


def test_over_the_wire_it_only_looks(driver, broker):
    """As `kafkalite console -b`, which knows nothing of the broker but what any Kafka answers."""

    async def look():
        with Client(broker.bootstrap, client_id="console") as client:
            urls = []
            async with trio.open_nursery() as nursery:

                async def serve():
                    await serve_console(
                        client,
                        HttpAddress(host="127.0.0.1", port=0),
                        can_write=False,
                        token=None,
                        on_ready=urls.append,
                    )

                nursery.start_soon(serve)
                while not urls:  # noqa: ASYNC110 - it is told by a plain call
                    await trio.sleep(0.05)
                await trio.to_thread.run_sync(use, Console(driver, urls[0]))
                nursery.cancel_scope.cancel()

    def use(console):
        console.open("topics")
        console.wait_text("orders")
        assert "New topic" not in console.text
        assert "Live" not in console.text
        console.open("topics/orders")
        console.wait_text("customer-")
        console.open("groups/billing")
        console.wait_text("billing")
        assert "Reset offsets" not in console.text
        answer = console.script(
            "return fetch('/api/v1/topics', {method: 'POST', body: '{\"name\": \"x\"}',"
            " headers: {'Content-Type': 'application/json'}}).then((each) => each.status)"
        )
        assert answer == 403

    trio.run(look)
