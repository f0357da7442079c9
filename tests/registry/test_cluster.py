"""The registry of a cluster: any broker answers, and a failover takes nothing back."""

import json
import threading
import urllib.error
import urllib.request

import pytest

from kafkalite.registry.client import SchemaRegistryClient, SchemaRegistryError
from kafkalite.registry.model import Schema, SchemaType
from kafkalite.testing import Cluster
from kafkalite.testing.processes import wait_until_true
from tests.registry.harness import OPTIONAL_B, avro, record

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]


@pytest.fixture(scope="module")
def cluster():
    with Cluster(3, schema_registry=True) as cluster:
        yield cluster


@pytest.fixture
def registries(cluster):
    """Return a new client of each broker's registry, by its id: they remember what they saw."""
    return {n: SchemaRegistryClient(url) for n, url in cluster.schema_registry_urls.items()}


def call(url, method, path, body=None):
    request = urllib.request.Request(
        url + path,
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_what_one_broker_takes_all_others_have_at_once(cluster, registries):
    for number, registry in registries.items():
        schema_id, _ = registry.register(f"s{number}", avro(record(f"a{number}")))
        for url in cluster.schema_registry_urls.values():
            found = SchemaRegistryClient(url)
            assert found.latest(f"s{number}")[0] == schema_id
            assert found.schema(schema_id).schema == registry.schema(schema_id).schema
    for number, url in cluster.schema_registry_urls.items():
        for other in registries:
            if other != number:
                body = {"schema": record("b", f"a{other}")}
                assert call(url, "POST", f"/subjects/s{other}/versions", body)[0] == 409
    ids = {registry.latest(f"s{number}")[0] for number, registry in registries.items()}
    assert len(ids) == 3


def test_settings_and_deletions_go_through_any_broker(cluster, registries):
    for number, url in cluster.schema_registry_urls.items():
        subject = f"gone-{number}"
        registries[number].register(subject, avro('"string"'))
        assert call(url, "PUT", f"/config/{subject}", {"compatibility": "FULL"})[0] == 200
        for other in cluster.schema_registry_urls.values():
            told = {"compatibilityLevel": "FULL"}
            assert call(other, "GET", f"/config/{subject}") == (200, told)
        assert call(url, "DELETE", f"/subjects/{subject}") == (200, [1])
        for other in cluster.schema_registry_urls.values():
            assert call(other, "GET", f"/subjects/{subject}/versions")[1]["error_code"] == 40401
        assert call(url, "PUT", f"/mode/{subject}", {"mode": "NEVER"})[1]["error_code"] == 42204


def test_nothing_that_was_acknowledged_is_lost_when_the_leader_dies(cluster):
    """Writers at all brokers go on while the leader is killed; each id stays what it was."""
    acknowledged, done = {}, threading.Event()

    def write(number, url):
        client, count = SchemaRegistryClient(url), 0
        while not done.is_set():
            schema = Schema(SchemaType.JSON, f'{{"const":"{number}-{count}"}}')
            try:
                schema_id, _ = client.register(f"w{number}-{count}", schema)
            except SchemaRegistryError:
                continue
            acknowledged[number, count] = (schema_id, schema.text)
            count += 1

    urls = cluster.schema_registry_urls
    writers = [threading.Thread(target=write, args=each) for each in urls.items()]
    for writer in writers:
        writer.start()
    try:
        wait_for(lambda: len(acknowledged) > 20)
        leader = cluster.leader_of("_schemas", 0)
        cluster.kill(leader)
        survivors = {number: url for number, url in urls.items() if number != leader}
        for url in survivors.values():
            status, found = call(url, "GET", "/subjects/w1-0/versions/latest")
            assert (status, found["schema"]) == (200, '{"const":"1-0"}')
        cluster.wait_leader("_schemas", 0, other_than=leader)
        written = {number: last(acknowledged, number) for number in survivors}
        wait_for(lambda: all(last(acknowledged, n) > count for n, count in written.items()))
    finally:
        done.set()
        for writer in writers:
            writer.join()
    cluster.restart(leader)
    ids = [schema_id for schema_id, _ in acknowledged.values()]
    assert len(ids) == len(set(ids))
    for url in urls.values():
        found = {each["id"]: each["schema"] for each in call(url, "GET", "/schemas")[1]}
        for schema_id, text in acknowledged.values():
            assert found[schema_id] == text


def last(acknowledged, number):
    return max((count for n, count in [*acknowledged] if n == number), default=-1)


def wait_for(condition):
    wait_until_true(condition, 60)
    assert condition()


def test_readers_are_kept_from_breaking_at_every_broker(cluster, registries):
    first, *others = registries.values()
    first.register("evolving", avro(record("a")))
    for registry in others:
        registry.register("evolving", avro(record("a", OPTIONAL_B)))
        with pytest.raises(SchemaRegistryError, match="409"):
            registry.register("evolving", avro(record("a", "c")))
