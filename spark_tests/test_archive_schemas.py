"""The archive's typed columns, by a schema registry."""

import pytest

from kafkalite import Broker
from kafkalite.pipeline.archive import ArchiveJob, archive, read_archive, read_decoded
from kafkalite.pipeline.errors import PipelineError
from kafkalite.registry.client import SchemaRegistryClient
from kafkalite.registry.model import Reference, Schema, SchemaType
from kafkalite.registry.values import encode, frame


@pytest.fixture(scope="module")
def shared():
    with Broker(schema_registry=True) as broker:
        yield broker


class Topic:
    def __init__(self, broker, spark, folder):
        self.broker, self.spark, self.folder = broker, spark, folder
        self.registry = SchemaRegistryClient(broker.schema_registry_url)

    def write(self, kind, text, value, *, key=None, references=(), subject="orders-value"):
        schema = Schema(SchemaType(kind), text, references)
        schema_id, known = self.registry.register(subject, schema)
        data = value if isinstance(value, bytes) else encode(known, value)
        self.broker.produce("orders", frame(schema_id, data), key=key)
        return schema_id

    def archive(self, *topics):
        url = self.broker.schema_registry_url
        job = ArchiveJob(
            bootstrap=self.broker.bootstrap,
            output=str(self.folder),
            topics=topics or ("orders",),
            schema_registry=url,
        )
        return archive(self.spark, job)

    def rows(self):
        return read_decoded(self.spark, str(self.folder)).orderBy("offset").collect()

    def type_of(self, column):
        return read_decoded(self.spark, str(self.folder)).schema[column].dataType.simpleString()


@pytest.fixture
def topic(shared, spark, tmp_path):
    shared.reset()
    return Topic(shared, spark, tmp_path / "archive")


def avro(*fields):
    return f'{{"type":"record","name":"Order","fields":[{",".join(fields)}]}}'


ID = '{"name":"id","type":"long"}'
AT = '{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}}'
NOTE = '{"name":"note","type":["null","string"],"default":null}'


def test_avro_becomes_columns_and_a_later_schema_adds_one(topic):
    value = {"id": 7, "at": "2026-01-01T00:00:00+00:00"}
    first = topic.write("AVRO", avro(ID, AT), value)
    topic.archive()
    assert topic.type_of("value_data") == "struct<id:bigint,at:timestamp>"
    second = topic.write("AVRO", avro(ID, AT, NOTE), {**value, "note": "x"})
    topic.write("AVRO", avro(ID, AT), value)
    assert topic.archive().records == 2
    one, two, three = topic.rows()
    assert (one.value_schema_id, two.value_schema_id) == (first, second)
    assert (one.value_data.id, one.value_data.note) == (7, None)
    assert (two.value_data.note, three.value_data.note) == ("x", None)
    assert one.value_data["at"].year == 2026
    assert [row.value_problem for row in (one, two, three)] == [None] * 3
    assert topic.type_of("value_data") == "struct<id:bigint,at:timestamp,note:string>"
    assert read_archive(topic.spark, str(topic.folder)).count() == 3


def test_protobuf_and_keys(topic):
    imported = 'syntax = "proto3"; package l; message Line { string article = 1; }'
    topic.registry.register("line", Schema(SchemaType.PROTOBUF, imported))
    proto = (
        'syntax = "proto3"; package shop; import "line.proto"; '
        "message Order { int32 id = 1; l.Line line = 2; map<string, int64> counts = 3; }"
    )
    key_id, key = topic.registry.register("orders-key", Schema(SchemaType.AVRO, '"string"'))
    topic.write(
        "PROTOBUF",
        proto,
        {"id": 7, "line": {"article": "pen"}, "counts": {"a": 1}},
        key=frame(key_id, encode(key, "k")),
        references=(Reference("line.proto", "line", 1),),
    )
    topic.broker.produce("orders", b"plain", key=b"plain")
    topic.archive()
    one, two = topic.rows()
    assert (one.value_data.id, one.value_data.line.article) == (7, "pen")
    assert one.value_data.counts == {"a": 1}
    assert (one.key_data, one.key_problem) == ("k", None)
    assert (two.value_data, two.value_problem) == (None, "no schema")
    assert (two.value, two.key_data) == (b"plain", None)


def test_json_schema_and_what_cannot_be_read(topic):
    text = (
        '{"type":"object","properties":{"id":{"type":"integer"},"any":{},'
        '"tags":{"type":"array","items":{"type":["null","string"]}}}}'
    )
    value = {"id": 7, "any": {"x": 1}, "tags": ["a", None]}
    topic.write("JSON", text, value)
    topic.write("JSON", text, b"no JSON")
    topic.archive()
    one, two = topic.rows()
    assert topic.type_of("value_data") == "struct<id:bigint,any:string,tags:array<string>>"
    assert (one.value_data.id, one.value_data.any) == (7, '{"x":1}')
    assert one.value_data.tags == ["a", None]
    assert "not of schema" in two.value_problem


def test_what_the_latest_schema_does_not_read_is_kept_as_bytes(topic):
    url = topic.broker.schema_registry_url
    SchemaRegistryClient(url)._ask("PUT", "/config/orders-value", {"compatibility": "NONE"})
    old = topic.write("AVRO", avro(ID), {"id": 7})
    topic.write("AVRO", avro(ID.replace("long", "string")), {"id": "x"})
    topic.write("AVRO", '"int"', 3, subject="elsewhere")
    topic.broker.produce("orders", frame(9_999, b"x"))
    topic.archive()
    one, two, three, four = topic.rows()
    assert f"schema {old} does not fit the latest" in one.value_problem
    assert one.value.endswith(b"\x0e")
    assert two.value_data.id == "x"
    assert "does not fit" in three.value_problem
    assert four.value_problem == "schema 9999 is not in the registry"
    topic.write("AVRO", avro(ID), {"id": 8})
    topic.registry._ask("DELETE", "/subjects/orders-value/versions/2")
    with pytest.raises(PipelineError, match=r"value_data\.id as STRING, and .* it is BIGINT"):
        topic.archive()


def test_mistakes_are_told_before_anything_is_written(topic):
    topic.broker.create_topic("orders")
    with pytest.raises(PipelineError, match="neither orders-key nor orders-value"):
        topic.archive()
    topic.broker.create_topic("other")
    with pytest.raises(PipelineError, match="one topic"):
        topic.archive("orders", "other")
    assert not topic.folder.exists()
