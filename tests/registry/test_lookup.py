"""Schemas that are asked for once, and again only after a while if they were not there."""

import trio

from kafkalite.registry.errors import schema_not_found
from kafkalite.registry.lookup import KNOWN_MAX, RETRY_S, SchemaLookup
from kafkalite.registry.values import ResolvedSchema, frame
from tests.registry.harness import avro


class Asked:
    def __init__(self):
        self.ids = []
        self.missing = set()

    async def __call__(self, schema_id):
        self.ids.append(schema_id)
        if schema_id in self.missing:
            raise schema_not_found()
        return ResolvedSchema(avro('"long"'))


async def test_each_schema_is_asked_for_once(autojump_clock):
    asked = Asked()
    lookup = SchemaLookup(asked)
    await lookup.load(frame(1, b"\x02"), frame(1, b"\x04"), b"other", None)
    await lookup.load(frame(1, b"\x06"))
    assert asked.ids == [1]
    assert lookup.decode(frame(1, b"\x04")) == (1, "avro", 2, "")
    assert lookup.decode(b"other") is None
    assert lookup.decode(frame(2, b"")).problem == "the schema was not asked for"


async def test_what_was_not_there_is_asked_for_again_after_a_while(autojump_clock):
    asked = Asked()
    asked.missing = {1}
    lookup = SchemaLookup(asked)
    for _ in range(3):
        await lookup.load(frame(1, b"\x02"))
    assert asked.ids == [1]
    assert "not found" in lookup.decode(frame(1, b"\x02")).problem
    asked.missing = set()
    await trio.sleep(RETRY_S)
    await lookup.load(frame(1, b"\x02"))
    assert lookup.decode(frame(1, b"\x02")).value == 1


async def test_so_many_are_kept_and_no_more():
    asked = Asked()
    lookup = SchemaLookup(asked)
    for schema_id in range(KNOWN_MAX + 1):
        await lookup.load(frame(schema_id, b"\x02"))
    assert lookup.decode(frame(0, b"\x02")).problem
    assert lookup.decode(frame(KNOWN_MAX, b"\x02")).value == 1
