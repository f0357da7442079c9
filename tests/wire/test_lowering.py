"""What writers of decoders and encoders share."""

import pytest

from kafkalite.wire.lowering import SourceWriter, has_records
from kafkalite.wire.primitives import Int8
from kafkalite.wire.schema import ArrayOf, Message, Records, String, optional, structure

Inner = structure("Inner", "records" / Records)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (["a" / Int8, "b" / String], False),
        (["a" / Int8, "records" / Records], True),
        (["inners" / ArrayOf(Inner)], True),
        (["inner" / optional(Inner)], True),
        (["numbers" / ArrayOf(Int8)], False),
    ],
)
def test_records_are_found_wherever_they_are(members, expected):
    struct = Message(structure("Made", *members), versions=(0, 0), flexible_from=0).at(0)
    assert has_records(struct) is expected


def test_names_are_used_once():
    writer = SourceWriter()
    assert len({writer.name("x"), writer.name("x"), writer.bind("x", 1)}) == 3


def test_written_lines_become_a_function_that_sees_bound_objects():
    writer = SourceWriter()
    body = SourceWriter()
    body.line(1, "return value + 1")
    writer.nested("more", "value", body)
    writer.line(1, "if value:")
    writer.line(2, f"return more({writer.bind('limit', 10)})")
    assert writer.function("choose", "value", "test")(True) == 11


def test_a_traceback_names_the_message():
    writer = SourceWriter()
    writer.line(1, "return code")
    function = writer.function("decode", "code", "FetchRequest")
    assert function.__code__.co_filename == "<decode FetchRequest>"
