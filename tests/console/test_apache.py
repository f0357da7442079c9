"""The API of `kafkalite console` against Apache Kafka itself."""

from contextlib import contextmanager
from threading import Thread

import pytest
import trio
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.apache_kafka import ApacheBroker
from kafkalite.client.cluster import Client
from kafkalite.client.groups import commit_offsets
from kafkalite.console.serving import serve_console
from kafkalite.http.port import HttpAddress
from kafkalite.types import TopicPartition
from tests.console.console_kit import Console, browser
from tests.observe.observe_kit import Http

pytestmark = [pytest.mark.kafka_dir, pytest.mark.slow]


@pytest.fixture(scope="module")
def apache():
    with ApacheBroker() as broker:
        yield broker


@contextmanager
def served(bootstrap, *, can_write):
    """The API of a console in a thread of its own."""
    urls, tokens, scopes = [], [], []

    async def main():
        with Client(bootstrap, client_id="console") as client, trio.CancelScope() as scope:
            tokens.append(trio.lowlevel.current_trio_token())
            scopes.append(scope)
            address = HttpAddress(host="127.0.0.1", port=0)
            await serve_console(
                client, address, can_write=can_write, token=None, on_ready=urls.append
            )

    thread = Thread(target=trio.run, args=[main])
    thread.start()
    while not urls:
        thread.join(0.05)
        assert thread.is_alive()
    try:
        yield Http(f"{urls[0]}/api/v1")
    finally:
        tokens[0].run_sync_soon(scopes[0].cancel)
        thread.join()


def test_everything_that_any_kafka_answers(apache):
    with served(apache.bootstrap, can_write=True) as api:
        api.write("POST", "/topics", {"name": "orders", "partitions": 2})
        records = [{"key": f"k{n}", "value": {"n": n}, "value_encoding": "json"} for n in range(10)]
        api.write("POST", "/topics/orders/messages", {"records": records})
        (topic,) = api.get("/topics")["topics"]
        assert (topic["records"], topic["partitions"]) == (10, 2)
        assert topic["bytes"] > 0
        found = api.get("/topics/orders/messages?from=earliest&filter=$.n%20%3E%207")
        assert sorted(each["value"]["value"]["n"] for each in found["messages"]) == [8, 9]
        assert len(api.get("/topics/orders/messages")["messages"]) == 10
        partitions = api.get("/topics/orders/partitions")["partitions"]
        assert sum(each["high_watermark"] for each in partitions) == 10
        with Client(apache.bootstrap) as client:
            commit_offsets(client, "readers", {TopicPartition("orders", 0): 0})
        (group,) = api.get("/groups?lag=true")["groups"]
        assert group["group_id"] == "readers"
        assert group["lag"] == partitions[0]["high_watermark"]
        plan = api.write("POST", "/groups/readers/reset", {"to": "latest", "dry_run": False})
        assert {change["lag"] for change in plan["changes"]} == {0}
        assert api.get("/groups/readers")["lag"] == 0
        configs = {each["name"] for each in api.get("/configs/topic/orders")["configs"]}
        assert "cleanup.policy" in configs
        assert api.get("/transactions")["transactions"] == []
        assert api.get("/acls") == {"authorizer": False, "count": 0, "acls": []}
        assert api.get("/users")["users"] == []
        api.write("POST", "/topics/orders/empty")
        api.write("DELETE", "/groups/readers")
        api.write("DELETE", "/topics/orders")
        assert api.get("/topics?search=orders")["count"] in (0, 1)  # it takes Kafka a moment


def test_looking_changes_nothing(apache):
    with served(apache.bootstrap, can_write=False) as api:
        assert api.get("/cluster")["can_write"] is False
        assert api.ask("POST", "/topics", {"name": "x"})[0] == 403
        assert api.ask("DELETE", "/groups/x", {})[0] == 403


PAGES = {
    "overview": "controller",
    "topics": "Partitions",
    "groups": "Coordinator",
    "transactions": "Nothing here.",
    "security": "There is no authorizer",
}
"""Pages that any Kafka has, and what is on them with any number of topics."""


@pytest.mark.parametrize("count", [0, 1, 1_000])
def test_every_page_in_a_browser_with_so_many_topics(apache, count):
    """Each number of topics is on top of the one before: 0, then 1, then 1,000."""
    with served(apache.bootstrap, can_write=True) as api, browser() as driver:
        names = [f"paged-{number:04}" for number in range(count)]
        there = {topic["name"] for topic in api.get("/topics")["topics"]}
        made = [NewTopic(name, num_partitions=1) for name in names if name not in there]
        if made:
            admin = AdminClient({"bootstrap.servers": apache.bootstrap})
            for future in admin.create_topics(made).values():
                future.result(60)
        console = Console(driver, api.url.removesuffix("/api/v1"))
        for page, text in PAGES.items():
            console.open(page)
            console.wait_text(text)
        if names:
            console.open("topics")
            console.fill("Search", names[-1])
            console.wait(lambda: names[-1] in console.text)
            for part in ("", "/partitions", "/config", "/groups", "/produce"):
                console.open(f"topics/{names[-1]}{part}")
                console.wait_text(names[-1])
        assert "Live" not in console.text
        assert console.errors() == []
