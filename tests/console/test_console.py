"""The console in a real browser: on a broker, and over the wire."""

import json

import confluent_kafka
import pytest
import trio

from kafkalite import Broker
from kafkalite.client.cluster import Client
from kafkalite.console.serving import serve_console
from kafkalite.http.port import HttpAddress
from tests.console.console_kit import Console, browser

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

HOSTILE = "<img src=x onerror=\"document.body.dataset.hacked='yes'\"><script>alert(1)</script>"


@pytest.fixture(scope="module")
def driver():
    with browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def broker():
    config = {"kafkalite.journal.max.bytes": 4_000_000}
    with Broker(http=True, config=config) as broker:
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
        ("groups", "billing"),
        ("groups/billing", "Reset offsets"),
        ("transactions", "Nothing here."),
        ("clients", "Software"),
        ("live", "Who waits for what"),
        ("brokers/1", "log.retention.hours"),
        ("nowhere", "There is no such page"),
    ],
)
def test_each_page_is_drawn(console, page, text):
    console.open(page)
    console.wait_text(text)
    console.save(page.replace("/", "-"))


def test_every_field_and_button_has_a_name(console):
    for page in ("topics", "topics/orders", "topics/orders/produce", "groups/billing", "live"):
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
