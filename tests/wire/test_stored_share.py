"""Stored records of share groups and share states, against what Apache Kafka 4.3.1 wrote."""

import base64
import json
from pathlib import Path
from uuid import UUID

import pytest

from kafkalite.wire.schema import ArrayOf
from kafkalite.wire.stored import share_group, share_state

ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "testdata/share_records.tsv").read_text().splitlines()
]
"""Name, key and value in hexadecimal digits, "-" for a tombstone, and what Kafka's classes read."""

CODECS = {
    codec.record.__name__: codec
    for module in (share_group, share_state)
    for name, codec in vars(module).items()
    if name.isupper()
}


def as_json(value, shape):
    if isinstance(shape, ArrayOf):
        return [as_json(element, shape.element) for element in value]
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if not hasattr(value, "FIELDS"):
        return value
    shown = {}
    for field in value.FIELDS:
        member = getattr(value, field.name)
        if field.tag is None or member != field.default_value():
            name = "".join(word.capitalize() for word in field.name.split("_"))
            shown[name] = as_json(member, field.shape)
    return shown


def test_every_kind_was_recorded():
    assert {f"{row[0]}{half}" for row in ROWS for half in ("Key", "Value")} == CODECS.keys()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1][:40]}-{row[2][:40]}")
def test_record_is_kafkas_to_the_byte(row):
    name, key_hex, value_hex, decoded_text = row
    key, value = json.loads(decoded_text)
    for half, text, decoded in (("Key", key_hex, key), ("Value", value_hex, value)):
        if text == "-":
            continue
        codec, raw = CODECS[name + half], bytes.fromhex(text)
        version, message = codec.decode_versioned(raw)
        assert codec.encode_versioned(version, message) == raw
        assert as_json(message, codec.record) == decoded
