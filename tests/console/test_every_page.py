"""Every page of a broker's console in a browser: with few and many topics, load, and a restart."""

import contextlib
import threading

import pytest
from selenium.webdriver.common.by import By

from kafkalite import Broker
from kafkalite.client.cluster import Client
from kafkalite.client.groups import commit_offsets
from kafkalite.client.producer import Producer
from kafkalite.types import TopicPartition
from kafkalite.wire.messages.create_topics import CREATE_TOPICS, CreatableTopic, CreateTopicsRequest
from tests.console.console_kit import Console, browser

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

PAGES = {
    "overview": "Overview",
    "topics": "Topics",
    "groups": "Groups",
    "transactions": "Transactions",
    "clients": "Clients",
    "live": "Live requests",
    "faults": "Faults and clock",
    "schemas": "Schemas",
    "security": "Security",
    "brokers/1": "Broker 1",
}
"""Pages that there are with any number of topics, and their headings."""

PARTS = ("", "/produce", "/partitions", "/config", "/groups")
"""Pages of one topic."""


@pytest.fixture(scope="module")
def driver():
    with browser() as driver:
        yield driver


def run_broker(folder, **settings):
    """A broker that can be stopped and started again with its data and at its addresses."""
    config = {"kafkalite.journal.max.bytes": 1_000_000, **settings}
    return Broker(http=True, schema_registry=True, data_dir=folder, config=config)


@contextlib.contextmanager
def load(broker, topic):
    """Somebody writes until the end; yields what counts what was acknowledged."""
    stop, written = threading.Event(), []

    def write():
        with Client(broker.bootstrap, client_id="load") as client:
            producer = Producer(client, topic)
            while not stop.wait(0.01):
                for _ in range(20):
                    producer.send(b"x" * 200)
                producer.flush()
                written.append(20)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield written
    finally:
        stop.set()
        thread.join()


def visit(console, page, heading):
    """Go to a page as a link does, without loading the console anew."""
    console.script("location.hash = arguments[0]", f"#/{page}")
    drawn = "return document.getElementById('main').dataset.page.split('?')[0]"
    console.wait(lambda: console.script(drawn) == f"#/{page}")
    assert console.driver.find_element(By.TAG_NAME, "h1").text == heading
    alerts = console.script(
        "return [...document.querySelectorAll('main [role=alert]')].map((each) => each.textContent)"
    )
    assert alerts == [], page


def visit_all(console, topic):
    for page, heading in PAGES.items():
        visit(console, page, heading)
    for part in PARTS if topic else ():
        visit(console, f"topics/{topic}{part}", f"Topic {topic}")
    if topic:
        visit(console, "groups/readers", "Group readers")


@pytest.mark.parametrize("count", [0, 1, 1_000])
def test_every_page_is_drawn_under_load_and_after_a_restart(driver, tmp_path, count):
    names = [f"paged-{number:04}" for number in range(count)]
    last = names[-1] if names else None
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(run_broker(tmp_path))
        if names:
            with Client(broker.bootstrap) as client:
                topics = [
                    CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                    for name in names
                ]
                request = CreateTopicsRequest(topics=topics, timeout_ms=60_000)
                answer = client.controller().request(CREATE_TOPICS, request)
                assert {topic.error_code for topic in answer.topics} == {0}
                commit_offsets(client, "readers", {TopicPartition(last, 0): 0})
        console = Console(driver, broker.http_url)
        console.open("overview")
        with load(broker, last) if last else contextlib.nullcontext([]) as written:
            visit_all(console, last)
        assert bool(written) == bool(last)
        visit(console, "clients", "Clients")
        addresses = {
            "listeners": f"PLAINTEXT://{broker.bootstrap}",
            "kafkalite.http.listener": broker.http_url.removeprefix("http://"),
        }
        broker.stop()
        console.wait_text("not connected")
        with run_broker(tmp_path, **addresses):
            console.wait(lambda: "not connected" not in console.text)
            visit_all(console, last)
            if last:
                visit(console, "topics", "Topics")
                console.fill("Search", last)
                console.wait_text(f"{sum(written):,}")
        assert console.errors() == []


def test_an_idle_broker_is_asked_for_nothing_but_its_pulse(driver):
    asked = (
        "return performance.getEntriesByType('resource')"
        ".map((each) => new URL(each.name).pathname.replace('/api/v1', ''))"
    )
    with Broker(http=True) as broker:
        console = Console(driver, broker.http_url)
        console.open("clients")
        console.wait(lambda: "/pulse /pulse" in " ".join(console.script(asked)))
        before = console.script(asked).count("/clients")
        broker.create_topic("new")
        console.wait(lambda: console.script(asked).count("/clients") > before)
        assert console.errors() == []
