"""Records with schemas in a real browser: on a broker, and with a registry elsewhere."""

import json
from functools import partial

import pytest
import trio

from kafkalite import Broker
from kafkalite.client.cluster import Client
from kafkalite.console.serving import serve_console
from kafkalite.http.port import HttpAddress
from kafkalite.registry.client import SchemaRegistryClient
from kafkalite.registry.lookup import remote
from kafkalite.registry.model import Schema, SchemaType
from kafkalite.registry.values import encode, frame
from tests.console.console_kit import Console, browser

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

AVRO = '{"type":"record","name":"Order","fields":[{"name":"total","type":"long"}]}'
PROTO = 'syntax = "proto3"; message Order { int32 total = 1; }'
VALUES = [
    (Schema(SchemaType.AVRO, AVRO), {"total": 101}),
    (Schema(SchemaType.JSON, '{"required":["total"]}'), {"total": 202}),
    (Schema(SchemaType.PROTOBUF, PROTO), {"total": 303}),
]
HOSTILE = "<img src=x onerror=\"document.body.dataset.hacked='yes'\">"


@pytest.fixture(scope="module")
def driver():
    with browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def broker():
    with Broker(schema_registry=True) as broker:
        registry = SchemaRegistryClient(broker.schema_registry_url)
        key_id, key = registry.register("orders-key", Schema(SchemaType.AVRO, '"string"'))
        for index, (schema, value) in enumerate(VALUES):
            schema_id, known = registry.register(f"orders-{index}", schema)
            broker.produce(
                "orders",
                frame(schema_id, encode(known, value)),
                key=frame(key_id, encode(key, f"customer-{index}{HOSTILE}")),
            )
        broker.produce("orders", frame(1, b"\xff"))
        yield broker


def check(console):
    console.open("topics/orders")
    console.wait_text("4 of 4 searched")
    for shown in ('{"total":101}', '{"total":202}', '{"total":303}', "customer-2<img"):
        assert shown in console.text
    console.fill("Filter", "$.total > 200")
    console.click("Search")
    console.wait_text("2 found")
    assert '{"total":101}' not in console.text
    for offset, kind in enumerate(("avro", "json", "protobuf")):
        console.open(f"topics/orders/record/0/{offset}")
        console.wait_text(f"({kind})")
        assert json.loads(console.script("return document.getElementById('value').textContent"))
    console.save("record-with-schema")
    console.open("topics/orders/record/0/3")
    console.wait_text("no Avro of this schema")
    assert not console.script("return document.body.dataset.hacked")
    assert console.errors() == []


def test_a_broker_shows_records_by_its_own_registry(driver, broker):
    check(Console(driver, broker.http_url))


def test_its_schemas_topic_is_shown_as_json(driver, broker):
    console = Console(driver, broker.http_url)
    console.open("topics/_schemas")
    console.wait_text('"keytype":"SCHEMA"')


def test_a_console_beside_any_kafka_asks_the_registry_it_is_told(driver, broker):
    async def look():
        with Client(broker.bootstrap, client_id="console") as client:
            urls = []
            serve = partial(
                serve_console,
                client,
                HttpAddress(host="127.0.0.1", port=0),
                can_write=False,
                token=None,
                on_ready=urls.append,
                schemas=remote(broker.schema_registry_url),
            )
            async with trio.open_nursery() as nursery:
                nursery.start_soon(serve)
                while not urls:  # noqa: ASYNC110 - it is told by a plain call
                    await trio.sleep(0.05)
                await trio.to_thread.run_sync(check, Console(driver, urls[0]))
                nursery.cancel_scope.cancel()

    trio.run(look)
