"""The registry as clients call it: over HTTP, and by confluent-kafka's own client."""

import base64
import json
import threading
import urllib.error
import urllib.request

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kafkalite.registry import schemas
from kafkalite.testing import Broker
from tests.registry.harness import OPTIONAL_B, record


@pytest.fixture(scope="module")
def shared_broker():
    with Broker(schema_registry=True) as broker:
        yield broker


@pytest.fixture
def broker(shared_broker):
    shared_broker.reset()
    return shared_broker


def call(broker, method, path, body=None):
    request = urllib.request.Request(
        broker.schema_registry_url + path,
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.headers["Content-Type"] == "application/vnd.schemaregistry.v1+json"
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def register(broker, subject, text, **more):
    status, answer = call(broker, "POST", f"/subjects/{subject}/versions", {"schema": text, **more})
    assert status == 200, answer
    return answer["id"]


def test_schemas_are_registered_and_found(broker):
    assert call(broker, "GET", "/subjects") == (200, [])
    assert register(broker, "orders-value", record("a")) == 1
    assert register(broker, "orders-value", record("a", OPTIONAL_B)) == 2
    assert call(broker, "GET", "/subjects") == (200, ["orders-value"])
    assert call(broker, "GET", "/subjects/orders-value/versions") == (200, [1, 2])
    status, found = call(broker, "GET", "/schemas/ids/1")
    assert (status, json.loads(found["schema"])["name"]) == (200, "R")
    assert call(broker, "GET", "/schemas/ids/1/schema")[1]["name"] == "R"
    # Deserializers name the subject that they expect, which need not be the schema's.
    assert call(broker, "GET", "/schemas/ids/1?subject=other")[0] == 200
    status, found = call(broker, "GET", "/subjects/orders-value/versions/latest")
    assert (found["version"], found["id"], found["subject"]) == (2, 2, "orders-value")
    assert call(broker, "GET", "/subjects/orders-value/versions/1/schema")[1]["name"] == "R"
    found = call(broker, "POST", "/subjects/orders-value", {"schema": record("a")})[1]
    assert found["version"] == 1
    versions = [{"subject": "orders-value", "version": 2}]
    assert call(broker, "GET", "/schemas/ids/2/versions") == (200, versions)
    assert call(broker, "GET", "/schemas/ids/2/subjects") == (200, ["orders-value"])
    assert len(call(broker, "GET", "/schemas")[1]) == 2
    assert len(call(broker, "GET", "/schemas?latestOnly=true")[1]) == 1
    assert call(broker, "GET", "/subjects?subjectPrefix=x") == (200, [])


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/subjects/x/versions", None, 40401),
        ("GET", "/subjects/x/versions/1", None, 40401),
        ("GET", "/subjects/s/versions/9", None, 40402),
        ("GET", "/subjects/s/versions/zero", None, 42202),
        ("GET", "/subjects/s/versions/0", None, 42202),
        ("GET", "/schemas/ids/99", None, 40403),
        ("POST", "/subjects/s", {"schema": record("zzz")}, 40403),
        ("POST", "/subjects/s/versions", {"schema": "{"}, 42201),
        ("POST", "/subjects/s/versions", {}, 42201),
        ("POST", "/subjects/s/versions", {"schema": record("a", "b")}, 409),
        ("GET", "/config/s", None, 40408),
        ("PUT", "/config", {"compatibility": "SOME"}, 42203),
        ("GET", "/mode/s", None, 40409),
        ("PUT", "/mode", {"mode": "SLEEP"}, 42204),
        ("PUT", "/mode", {"mode": "IMPORT"}, 42205),
        ("DELETE", "/subjects/s?permanent=true", None, 40405),
        ("DELETE", "/subjects/s/versions/1?permanent=true", None, 40407),
        ("DELETE", "/subjects/x", None, 40401),
    ],
)
def test_refusals_have_the_codes_that_clients_know(broker, method, path, body, code):
    register(broker, "s", record("a"))
    status, answer = call(broker, method, path, body)
    assert (status, answer["error_code"]) == (int(str(code)[:3]), code)
    assert answer["message"]


def test_compatibility_is_set_and_tested(broker):
    assert call(broker, "GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
    assert call(broker, "PUT", "/config", {"compatibility": "full"})[1] == {"compatibility": "FULL"}
    assert call(broker, "PUT", "/config/s", {"compatibility": "NONE"})[0] == 200
    assert call(broker, "GET", "/config/s")[1] == {"compatibilityLevel": "NONE"}
    assert call(broker, "DELETE", "/config/s")[1] == {"compatibility": "NONE"}
    assert call(broker, "GET", "/config/s?defaultToGlobal=true")[1] == {
        "compatibilityLevel": "FULL"
    }
    register(broker, "s", record("a"))
    path = "/compatibility/subjects/s/versions/latest?verbose=true"
    status, answer = call(broker, "POST", path, {"schema": record("a", "b")})
    assert (status, answer["is_compatible"]) == (200, False)
    assert answer["messages"]
    answer = call(broker, "POST", "/compatibility/subjects/s/versions", {"schema": record("a")})[1]
    assert answer == {"is_compatible": True}


def test_modes_are_set(broker):
    assert call(broker, "PUT", "/mode/s", {"mode": "READONLY"})[1] == {"mode": "READONLY"}
    status, answer = call(broker, "POST", "/subjects/s/versions", {"schema": record("a")})
    assert (status, answer["error_code"]) == (422, 42205)
    assert call(broker, "GET", "/mode/s")[1] == {"mode": "READONLY"}
    assert call(broker, "DELETE", "/mode/s")[1] == {"mode": "READONLY"}
    assert call(broker, "GET", "/mode")[1] == {"mode": "READWRITE"}


def test_deleting_is_soft_first(broker):
    register(broker, "s", record("a"))
    assert call(broker, "DELETE", "/subjects/s") == (200, [1])
    assert call(broker, "GET", "/subjects") == (200, [])
    assert call(broker, "GET", "/subjects?deleted=true") == (200, ["s"])
    assert call(broker, "GET", "/subjects?deletedOnly=true") == (200, ["s"])
    assert call(broker, "GET", "/schemas/ids/1")[0] == 200
    assert call(broker, "DELETE", "/subjects/s?permanent=true") == (200, [1])


def test_probes_are_answered(broker):
    assert call(broker, "GET", "/") == (200, {})
    assert call(broker, "GET", "") == (200, {})
    assert call(broker, "GET", "/schemas/types")[1] == ["AVRO", "JSON", "PROTOBUF"]
    assert call(broker, "GET", "/contexts") == (200, ["."])
    assert call(broker, "GET", "/v1/metadata/id")[0] == 200
    assert call(broker, "GET", "/v1/metadata/version")[0] == 200


def test_schemas_outlive_a_restart(tmp_path):
    with Broker(schema_registry=True, data_dir=tmp_path) as broker:
        register(broker, "s", record("a"))
        call(broker, "PUT", "/config", {"compatibility": "NONE"})
        records = broker.records("_schemas")
        assert json.loads(records[0].key) == {
            "keytype": "SCHEMA",
            "subject": "s",
            "version": 1,
            "magic": 1,
        }
    with Broker(schema_registry=True, data_dir=tmp_path) as broker:
        assert call(broker, "GET", "/subjects/s/versions") == (200, [1])
        assert call(broker, "GET", "/config")[1] == {"compatibilityLevel": "NONE"}
        assert register(broker, "s", record("b")) == 2


def test_without_the_setting_there_is_none():
    with Broker(http=True) as broker:
        assert call(broker, "GET", "/subjects")[0] == 404


def test_schemas_are_told_in_the_format_that_is_asked_for(broker):
    proto = 'syntax = "proto3"; message A { int32 a = 1; }'
    schema_id = register(broker, "p", proto, schemaType="PROTOBUF")
    for path in (f"/schemas/ids/{schema_id}", "/subjects/p/versions/latest"):
        text = call(broker, "GET", f"{path}?format=serialized")[1]["schema"]
        assert FileDescriptorProto.FromString(base64.b64decode(text)).message_type[0].name == "A"
        assert "message A" in call(broker, "GET", path)[1]["schema"]
    register(broker, "inner", record("x", name="Inner"))
    reference = {"name": "Inner", "subject": "inner", "version": 1}
    outer = '{"type":"array","items":"Inner"}'
    schema_id = register(broker, "outer", outer, references=[reference])
    text = call(broker, "GET", f"/schemas/ids/{schema_id}?format=resolved")[1]["schema"]
    assert json.loads(text)["items"]["fields"][0]["name"] == "x"
    assert call(broker, "GET", f"/schemas/ids/{schema_id}")[1]["schema"] == outer


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/schemas/ids/%C2%B2", 404),
        ("/subjects/s/versions/%C2%B2", 422),
        ("/subjects?limit=--5", 200),
    ],
)
def test_numbers_are_written_in_plain_digits(broker, path, status):
    register(broker, "s", '"int"')
    assert call(broker, "GET", path)[0] == status


def test_ids_that_no_record_could_name_are_not_imported(broker):
    call(broker, "PUT", "/mode/s", {"mode": "IMPORT"})
    said = {"schema": '"int"', "id": 2**31, "version": 1}
    assert call(broker, "POST", "/subjects/s/versions", said)[1]["error_code"] == 42205
    assert call(broker, "POST", "/subjects/s/versions", {**said, "id": 2**31 - 1})[0] == 200


def test_schemas_are_read_and_compared_by_threads(broker, monkeypatch):
    """Large ones take seconds, in which the broker serves others."""
    threads, real = set(), schemas.parse_avro

    def parse_avro(*arguments):
        threads.add(threading.current_thread())
        return real(*arguments)

    monkeypatch.setattr(schemas, "parse_avro", parse_avro)
    loop = broker.call_in_broker(threading.current_thread)
    register(broker, "t", record("only", name="Thread"))
    body = {"schema": record("only", OPTIONAL_B, name="Thread")}
    assert call(broker, "POST", "/compatibility/subjects/t/versions/1", body)[1]["is_compatible"]
    register(broker, "t", body["schema"])
    assert call(broker, "POST", "/subjects/t", body)[0] == 200
    assert call(broker, "GET", "/subjects/t/versions/2?format=resolved")[0] == 200
    assert threads
    assert loop not in threads
