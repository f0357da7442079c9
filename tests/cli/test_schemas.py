"""`consume` and `produce` with a schema registry."""

import json

import pytest

from kafkalite import Broker
from kafkalite.cli.main import run as run_command
from kafkalite.registry import values
from tests.registry.harness import record

pytestmark = pytest.mark.slow

PROTO = """syntax = "proto3";
message Order { int32 id = 1; }
message Customer { string name = 1; }
"""


@pytest.fixture(scope="module")
def shared_broker():
    with Broker(schema_registry=True) as broker:
        yield broker


@pytest.fixture
def broker(shared_broker):
    shared_broker.reset()
    return shared_broker


@pytest.fixture
def run(broker, monkeypatch, capsysbinary):
    """Run a command line; return what it printed, or its complaint if it fails."""
    monkeypatch.setenv("KAFKALITE_BOOTSTRAP", broker.bootstrap)
    monkeypatch.setenv("KAFKALITE_SCHEMA_REGISTRY", broker.schema_registry_url)

    def call(*arguments, fails=False):
        capsysbinary.readouterr()
        code = run_command([*map(str, arguments)])
        printed = capsysbinary.readouterr()
        assert (code != 0) is fails, printed
        return (printed.err if fails else printed.out).decode()

    return call


def file_with(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_avro_keys_and_values_are_json_on_the_command_line(broker, run, tmp_path):
    schema = file_with(tmp_path, "order.avsc", record("a", name="Order"))
    key = file_with(tmp_path, "key.avsc", '"long"')
    options = ("--value-schema", schema, "--key-schema", key)
    run("produce", "orders", "-m", '{"a":"é"}', "-k", "7", *options)
    written = broker.records("orders")[0]
    assert values.unframe(written.value).payload == b"\x04\xc3\xa9"
    assert values.unframe(written.key).payload == b"\x0e"
    assert run("consume", "orders") == '{"a":"é"}\n'
    assert run("consume", "orders", "-F", "key-value") == '7\t{"a":"é"}\n'
    assert "key=7  {" in run("consume", "orders", "-F", "long")
    line = json.loads(run("consume", "orders", "-F", "json"))
    assert (line["key"], line["value"]) == (7, {"a": "é"})


def test_what_json_was_printed_is_written_back_byte_for_byte(broker, run, tmp_path):
    proto = file_with(tmp_path, "order.proto", PROTO)
    run(
        "produce", "orders", "-m", '{"name":"x"}', "-k", "plain",
        "--value-schema", proto, "--value-protobuf", "Customer",
    )  # fmt: skip
    lines = run("consume", "orders", "-F", "json")
    again = ("--value-subject", "orders-value", "--value-protobuf", "Customer")
    lines_file = file_with(tmp_path, "lines", lines)
    run("produce", "copy", lines_file, "-F", "json", *again)
    first, second = broker.records("orders")[0], broker.records("copy")[0]
    assert (first.key, first.value) == (second.key, second.value)
    assert first.key == b"plain"


def test_the_latest_schema_of_the_subject_is_taken(broker, run, tmp_path):
    schema = file_with(tmp_path, "order.json", '{"required":["id"]}')
    run("produce", "orders", "-m", '{"id":1}', "--value-schema", schema)
    run("produce", "orders", file_with(tmp_path, "lines", '{"id":2}\n{"id":3}\n'))
    assert run("consume", "orders").splitlines() == ['{"id":1}', '{"id":2}', '{"id":3}']
    lines = file_with(tmp_path, "keys", 'k1:{"id":4}\n')
    run("produce", "orders", lines, "-K", ":")
    assert broker.records("orders")[-1].key == b"k1"


def test_a_tombstone_stays_one(broker, run, tmp_path):
    schema = file_with(tmp_path, "order.avsc", record("a"))
    lines = file_with(tmp_path, "lines", '{"key":"k","value":null}\n')
    run("produce", "orders", lines, "-F", "json", "--value-schema", schema)
    assert broker.records("orders")[0].value is None
    assert run("consume", "orders") == "null\n"


def test_a_value_that_does_not_fit_is_refused_with_its_line(broker, run, tmp_path):
    schema = file_with(tmp_path, "order.avsc", record("a"))
    lines = file_with(tmp_path, "lines", '{"a":"x"}\n{"a":1}\n')
    said = run("produce", "orders", lines, "--value-schema", schema, fails=True)
    assert "line 2: $.a: 1 is not text" in said
    assert "--message: no JSON" in run("produce", "orders", "-m", "x", fails=True)
    assert len(broker.records("orders")) == 1


def test_a_schema_that_breaks_readers_is_refused_before_anything_is_written(broker, run, tmp_path):
    run("produce", "o", "-m", '{"a":"x"}', "--value-schema",
        file_with(tmp_path, "1.avsc", record("a")))  # fmt: skip
    said = run("produce", "o", "-m", '{"a":"x","b":"y"}', "--value-schema",
               file_with(tmp_path, "2.avsc", record("a", "b")), fails=True)  # fmt: skip
    assert "incompatible" in said
    assert "(409)" in said
    assert len(broker.records("o")) == 1


def test_a_key_that_only_looks_as_if_it_had_a_schema_is_left_alone(broker, run):
    broker.produce("orders", b"plain", key=(5).to_bytes(8, "big"))
    assert run("consume", "orders", "-F", "key-value").encode() == bytes(7) + b"\x05\tplain\n"


def test_a_value_without_its_schema_names_the_record(broker, run):
    broker.produce("orders", values.frame(99, b"x"))
    said = run("consume", "orders", fails=True)
    assert "orders-0 offset 0: value with schema 99" in said
    assert "Schema 99 not found (40403)" in said


def test_mistakes_are_told_plainly(run, tmp_path, monkeypatch):
    said = run("produce", "orders", "-m", "1", fails=True)
    assert "Subject 'orders-value' not found" in said
    assert "name a file" in said
    xsd = file_with(tmp_path, "order.xsd", "")
    assert "ends in .avsc" in run("produce", "orders", "-m", "1", "--value-schema", xsd, fails=True)
    avsc = file_with(tmp_path, "order.avsc", '"string"')
    wrong = ("--value-schema", avsc, "--value-protobuf", "X")
    assert "Protobuf" in run("produce", "orders", "-m", "1", *wrong, fails=True)
    for url, why in (("here", "is no URL"), ("http://127.0.0.1:9", "refused")):
        assert why in run("produce", "x", "-m", "1", "--schema-registry", url, fails=True)
    monkeypatch.delenv("KAFKALITE_SCHEMA_REGISTRY")
    said = run("produce", "x", "-m", "1", "--value-schema", avsc, fails=True)
    assert "--value-schema needs --schema-registry" in said
