"""Somebody new finds a record, sees why a consumer does not get it, and resets the group."""

import re
import subprocess
import sys

import confluent_kafka
import pytest

from kafkalite.client.cluster import Client
from kafkalite.client.producer import Producer
from tests.console.console_kit import Console, browser

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

PATIENCE_S = 60


@pytest.fixture
def printed(tmp_path):
    """`kafkalite serve` as it is started by hand; what its line says."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "kafkalite", "serve", "--listen", "127.0.0.1:0"),
            *("--http", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield dict(re.findall(r"(\w+)=(\S+)", process.stdout.readline()))
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


def billing(bootstrap):
    """The consumer that does not get it."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "billing",
            "auto.offset.reset": "latest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    return consumer


def next_value(consumer):
    for _ in range(PATIENCE_S):
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            return message.value()
    return pytest.fail("nothing came")


def test_from_the_printed_address_to_the_record(printed):
    with Client(printed["bootstrap"]) as client:
        producer = Producer(client, "orders")
        for number in range(40):
            producer.send(b'{"order": %d, "customer": "%s"}' % (number, b"ab"[number % 2 :][:1]))
        producer.send(b'{"order": 40, "customer": "Ada Lovelace"}')
        producer.flush()
    consumer = billing(printed["bootstrap"])
    while not consumer.assignment():
        assert consumer.poll(1.0) is None  # it began behind all of them
    consumer.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 41)], asynchronous=False)

    with browser() as driver:
        console = Console(driver, printed["http"])
        driver.get(printed["http"])
        console.wait_text("Topics")
        console.click("Topics")
        console.click("orders")

        console.fill("Filter", "Lovelace")
        console.click("Search")
        console.wait_text("1 found, all seen")
        console.click("0:40")
        console.wait_text("Ada Lovelace")

        console.click("Who has read it?")
        console.wait_text("It is past it and goes on at 41")
        console.click("billing")
        console.wait_text("Stable")
        assert "lag 0" in console.text

        console.click("Show the plan")
        console.wait_text("Nothing has changed yet.")
        console.click("Reset")
        console.wait_text("still has members (1)")
        consumer.close()
        console.wait_text("Empty")
        console.click("Reset")
        console.wait_text("Done.")
        console.wait_text("lag 41")
        assert console.errors() == []

    consumer = billing(printed["bootstrap"])
    values = [next_value(consumer) for _ in range(41)]
    consumer.close()
    assert b"Ada Lovelace" in values[40]
