"""Records of `_schemas`, as Confluent's registry and Karapace write them."""

import json

import pytest

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.registry.codec import RegistryCodec
from kafkalite.registry.model import (
    ClearSubjectKey,
    Compatibility,
    ConfigKey,
    DeleteSubjectKey,
    Mode,
    ModeKey,
    NoopKey,
    Reference,
    Schema,
    SchemaKey,
    SchemaType,
    SchemaValue,
)

CODEC = RegistryCodec()
NONSENSE = (b"[]", b'"x"', b"5", b'{"subject":"s","version":1,"id":Infinity,"schema":"x"}')
"""Values that any client may write to the topic."""

AVRO = Schema(SchemaType.AVRO, '"string"')


@pytest.mark.parametrize(
    ("key", "value", "key_text", "value_text"),
    [
        (
            SchemaKey("s", 1),
            SchemaValue(7, AVRO),
            '{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            '{"subject":"s","version":1,"id":7,"schema":"\\"string\\"","deleted":false}',
        ),
        (
            SchemaKey("ü", 2),
            SchemaValue(
                8, Schema(SchemaType.JSON, "{}", (Reference("n", "t", 3),)), is_deleted=True
            ),
            '{"keytype":"SCHEMA","subject":"ü","version":2,"magic":1}',
            '{"subject":"ü","version":2,"id":8,"schemaType":"JSON","references":[{"name":"n",'
            '"subject":"t","version":3}],"schema":"{}","deleted":true}',
        ),
        (
            ConfigKey(None),
            Compatibility.FULL,
            '{"keytype":"CONFIG","subject":null,"magic":0}',
            '{"compatibilityLevel":"FULL"}',
        ),
        (
            ModeKey("s"),
            Mode.IMPORT,
            '{"keytype":"MODE","subject":"s","magic":0}',
            '{"mode":"IMPORT"}',
        ),
        (
            DeleteSubjectKey("s"),
            3,
            '{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}',
            '{"subject":"s","version":3}',
        ),
        (
            ClearSubjectKey("s"),
            None,
            '{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}',
            None,
        ),
        (NoopKey(), None, '{"keytype":"NOOP","magic":0}', None),
        (NoopKey(), 9, '{"keytype":"NOOP","magic":0}', '{"lastId":9}'),
    ],
)
def test_records_are_written_and_read(key, value, key_text, value_text):
    written = CODEC.encode(StoredRecord(key, value))
    assert written == (key_text.encode(), None if value_text is None else value_text.encode())
    again = CODEC.decode(*written)
    assert (again.key, again.value) == (key, value)


def test_what_karapace_writes_is_read():
    key = b'{"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}'
    value = (
        b'{"subject":"orders-value","version":1,"id":1,"schema":"{\\"type\\":\\"int\\"}",'
        b'"deleted":false,"md5":"x","metadata":null,"ruleSet":null}'
    )
    assert CODEC.decode(key, value).value.schema_id == 1
    assert CODEC.decode(key, b"").value is None, "it has no tombstones"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"no json", b"{}"),
        (b'{"keytype":"CONTEXT"}', b"{}"),
        (b"[]", b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1}', b"{}"),
        (
            b'{"keytype":"SCHEMA","subject":"s","version":1}',
            b'{"id":1,"schema":"x","schemaType":1}',
        ),
        (b'{"keytype":"MODE","subject":null}', b'{"mode":"SLEEPY"}'),
        (b'{"keytype":"SCHEMA"}', None),
        *(
            (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', value)
            for value in NONSENSE
        ),
        (b'{"keytype":"CONFIG","subject":[1],"magic":0}', b'{"compatibilityLevel":"NONE"}'),
        (json.dumps({"keytype": "NOOP"}).encode()[:-1], None),
    ],
)
def test_what_is_not_understood_is_passed_over(key, value):
    assert CODEC.decode(key, value) is None
