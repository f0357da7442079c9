"""Serializers of other languages on the built-in registry, in both directions."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.registry import programs
from kafkalite import Broker
from kafkalite.registry.client import SchemaRegistryClient
from kafkalite.registry.model import Schema, SchemaType
from kafkalite.registry.values import decode, encode, frame, unframe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from compat_tests.clients import Prepared

pytestmark = [pytest.mark.compat, pytest.mark.slow]

ORDER = {
    "avro": '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}]}',
    "json": '{"title":"Order","type":"object","properties":{"id":{"type":"integer"}}}',
    "protobuf": 'syntax = "proto3"; message Order { int32 id = 1; }',
}
ALL = frozenset(ORDER)


@pytest.fixture(scope="module", params=["plain", "secured"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the registry is; that of a secured broker has its token in it."""
    users = {"alice": "secret"} if request.param == "secured" else None
    with Broker(schema_registry=True, users=users) as broker:
        yield broker.schema_registry_url


@pytest.mark.parametrize(
    ("prepare", "kinds"),
    [
        pytest.param(programs.python, ALL, id="confluent-kafka"),
        pytest.param(programs.go, ALL, id="franz-go"),
        pytest.param(programs.node, {"avro", "json"}, id="kafkajs"),  # Protobuf: only its own
        pytest.param(programs.java, {"avro"}, id="flink"),
    ],
)
def test_serializers_write_and_read_what_kafkalite_does(
    url: str, prepare: Callable[[], Prepared], kinds: set[str]
) -> None:
    registry = SchemaRegistryClient(url)
    given = {}
    for kind in kinds:
        schema_id, known = registry.register(
            f"shared-{kind}", Schema(SchemaType(kind.upper()), ORDER[kind])
        )
        given[kind] = frame(schema_id, encode(known, {"id": 42})).hex()
    told = _run(prepare, url, json.dumps(given))
    assert told["read"] == {kind: {"id": 42} for kind in kinds}
    assert told["refused"] == 409
    for kind in kinds:
        framed = unframe(bytes.fromhex(told["written"][kind]))
        assert framed is not None
        known = registry.schema(framed.schema_id)
        assert known.schema.schema_type.value.lower() == kind
        assert decode(known, framed.payload) == {"id": 7}


def _run(prepare: Callable[[], Prepared], *arguments: str) -> dict[str, Any]:
    command, environment = prepare()
    done = subprocess.run(
        [*command, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
