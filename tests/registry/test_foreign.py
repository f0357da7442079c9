"""A topic `_schemas` that Confluent's registry or Karapace has written, taken over as it is.

`karapace.json` is what Karapace, run from its source, wrote to a broker (without Protobuf), and
what it answered then.
Confluent's registry could not be had: CONFLUENT is made by hand, after its documented format.
"""

import json
from pathlib import Path

import pytest

from kafkalite import Broker
from kafkalite.registry.client import SchemaRegistryClient
from kafkalite.registry.model import Schema, SchemaType

pytestmark = pytest.mark.slow

STRING = '"string"'


def schema(subject, version, schema_id, text, **more):
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    value = {"subject": subject, "version": version, "id": schema_id, "schema": text}
    return key, {**value, "deleted": False, **more}


CONFLUENT = [
    ({"keytype": "NOOP", "magic": 0}, None),
    # Later releases write digests, metadata, rules and what is null.
    schema("a", 1, 1, STRING, md5Bytes="x", guid="0", references=[], metadata=None, ruleSet=None),
    schema("b", 1, 2, '{"type":"object"}', schemaType="JSON"),
    schema("c", 1, 3, 'syntax = "proto3";\nmessage C {}\n', schemaType="PROTOBUF", references=[]),
    schema(
        "d", 1, 4, '{"type":"array","items":"R"}',
        references=[{"name": "R", "subject": "r", "version": 1}],
    ),
    schema("r", 1, 5, '{"type":"record","name":"R","fields":[]}'),
    schema("gone", 1, 6, '"int"'),
    (
        {"keytype": "DELETE_SUBJECT", "subject": "gone", "magic": 0},
        {"subject": "gone", "version": 1},
    ),
    schema("deleted", 1, 7, '"long"'),
    schema("deleted", 1, 7, '"long"', deleted=True),
    schema("cleared", 1, 8, '"double"'),
    ({"keytype": "SCHEMA", "subject": "cleared", "version": 1, "magic": 1}, None),
    ({"keytype": "CLEAR_SUBJECT", "subject": "cleared", "magic": 0}, {"subject": "cleared"}),
    ({"keytype": "CONFIG", "subject": None, "magic": 0}, {"compatibilityLevel": "FULL"}),
    (
        {"keytype": "CONFIG", "subject": "a", "magic": 0},
        {"subject": "a", "compatibilityLevel": "NONE", "normalize": None, "alias": None},
    ),
    ({"keytype": "MODE", "subject": None, "magic": 0}, {"mode": "READWRITE"}),
    ({"keytype": "CONTEXT", "tenant": "default", "context": ".", "magic": 0}, {"context": "."}),
]  # fmt: skip
KARAPACE = json.loads((Path(__file__).parent / "karapace.json").read_text(encoding="utf-8"))


def filled(data_dir, records):
    """Make a data directory whose `_schemas` has these keys and values."""
    with Broker(data_dir=data_dir) as broker:
        broker.create_topic("_schemas", config={"cleanup.policy": "compact"})
        for key, value in records:
            text = None if value is None else value.encode()
            broker.produce("_schemas", text, key=key.encode())


def comparable(answer):
    """Return an answer of which only what has a meaning is left: not the order of names."""
    if isinstance(answer, list):
        return sorted(answer)
    if "schema" in answer:
        return {**answer, "schema": json.loads(answer["schema"])}
    return answer


def test_what_karapace_has_written_is_answered_as_by_karapace(tmp_path):
    filled(tmp_path / "data", KARAPACE["records"])
    with Broker(data_dir=tmp_path / "data", schema_registry=True) as broker:
        client = SchemaRegistryClient(broker.schema_registry_url)
        told = {path: client._ask("GET", path) for path in KARAPACE["answers"]}
        assert {path: comparable(each) for path, each in told.items()} == {
            path: comparable(each) for path, each in KARAPACE["answers"].items()
        }
        assert client.register("new", Schema(SchemaType.AVRO, '"boolean"'))[0] == 12
        assert client.register("again", Schema(SchemaType.AVRO, '"string"'))[0] == 1


def test_the_format_of_confluents_registry_is_read(tmp_path):
    data_dir = tmp_path / "data"
    filled(
        data_dir,
        [
            (json.dumps(key), None if value is None else json.dumps(value))
            for key, value in CONFLUENT
        ],
    )
    with Broker(data_dir=data_dir, schema_registry=True) as broker:
        client = SchemaRegistryClient(broker.schema_registry_url)
        assert client._ask("GET", "/subjects") == ["a", "b", "c", "d", "r"]
        assert client._ask("GET", "/subjects?deletedOnly=true") == ["deleted", "gone"]
        assert [client.latest(each)[0] for each in "abcdr"] == [1, 2, 3, 4, 5]
        assert client.schema(4).references[0][1].text.startswith('{"type":"record"')
        assert client.schema(6).schema.text == '"int"'
        assert client._ask("GET", "/config")["compatibilityLevel"] == "FULL"
        assert client._ask("GET", "/config/a")["compatibilityLevel"] == "NONE"
        assert client.register("a", Schema(SchemaType.AVRO, STRING))[0] == 1
        assert client.register("new", Schema(SchemaType.AVRO, '"bytes"'))[0] == 9
