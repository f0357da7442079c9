"""Declarations become classes with Kafka's defaults, and plain constructs of one version."""

import construct
import pytest

from kafkalite.types import ZERO_UUID
from kafkalite.wire.messages.fetch import PartitionData
from kafkalite.wire.primitives import (
    ArrayLeaf,
    Bool,
    Float64,
    Int8,
    Int16,
    Int32,
    NullableStruct,
    StringLeaf,
    TaggedFields,
    Uuid,
)
from kafkalite.wire.schema import (
    TAGGED_FIELDS,
    ArrayOf,
    Bytes,
    Message,
    Records,
    String,
    Structure,
    default,
    from_container,
    nullable,
    optional,
    since,
    structure,
    tagged,
    to_container,
    until,
)
from tests.wire.samples import CODECS, name_of

Inner = structure("Inner", "number" / default(Int32, -1))
Outer = structure(
    "Outer",
    "flag" / Bool,
    "real" / Float64,
    "number" / default(Int16, 9),
    "text" / String,
    "raw" / Bytes,
    "batches" / nullable(Records),
    "topic_id" / Uuid,
    "inners" / nullable(ArrayOf(Inner)),
    "inner" / since(2, tagged(0, Inner)),
    "cursor" / optional(Inner),
    "old" / until(1, Int8, default=3),
    "middle" / since(1, Int8, until=2, default=4),
    "late_null" / nullable(String, since=2),
    "early_null" / nullable(String, until=1, default="x"),
)
OUTER = Message(Outer, versions=(0, 3), flexible_from=2)


def names_at(version):
    return [member.name for member in OUTER.at(version).subcons]


def leaf_at(version, name):
    return next(member.subcon for member in OUTER.at(version).subcons if member.name == name)


def test_unset_attributes_have_kafkas_defaults():
    made = Outer()
    assert made == Outer(
        flag=False,
        real=0.0,
        number=9,
        text="",
        raw=b"",
        batches=None,
        topic_id=ZERO_UUID,
        inners=[],
        inner=Inner(number=-1),
        cursor=None,
        old=3,
        middle=4,
        late_null="",
        early_null="x",
    )


def test_each_instance_has_lists_of_its_own():
    first, second = Outer(), Outer()
    first.inners.append(Inner())
    assert second.inners == []
    assert Outer(inners=None).inners is None


def test_the_default_of_a_structure_cannot_be_changed_by_accident():
    """It is shared by all, since making it anew would cost more than encoding what holds it."""
    made = Outer()
    assert made.inner is Outer().inner
    with pytest.raises(AttributeError, match="assign a new one instead"):
        made.inner.number = 5
    made.inner = Inner(number=5)
    made.inner.number = 6
    assert Outer().inner == Inner() == Inner.default_instance()
    assert repr(Outer().inner) == "Inner(number=-1)"
    assert Outer().inner.default_instance() is Inner.default_instance()


def test_unknown_attributes_are_refused():
    with pytest.raises(TypeError):
        Outer(unknown=1)
    with pytest.raises(AttributeError):
        Outer().unknown = 1


def test_messages_are_equal_by_value_within_a_class():
    assert Inner(number=1) == Inner(number=1)
    assert Inner(number=1) != Inner(number=2)
    assert Inner() != structure("Inner", "number" / default(Int32, -1))()
    assert Inner() != 1
    with pytest.raises(TypeError):
        hash(Inner())


def test_messages_are_readable():
    assert repr(Inner(number=2)) == "Inner(number=2)"
    assert Inner.__module__ == __name__


def test_a_structure_may_be_empty():
    empty = structure("Empty")
    assert empty() == empty()
    assert isinstance(empty(), Structure)


def test_fields_outside_the_version_are_gone():
    assert "middle" not in names_at(0)
    assert "middle" in names_at(2)
    assert "middle" not in names_at(3)
    assert "old" in names_at(1)
    assert "old" not in names_at(2)


def test_null_is_allowed_in_its_range_only():
    assert [leaf_at(v, "late_null").nullable for v in (1, 2)] == [False, True]
    assert [leaf_at(v, "early_null").nullable for v in (1, 2)] == [True, False]


def test_leaves_are_compact_and_tags_appear_in_flexible_versions():
    assert not leaf_at(1, "text").compact
    assert leaf_at(2, "text").compact
    assert TAGGED_FIELDS not in names_at(1)
    assert names_at(2)[-1] == TAGGED_FIELDS
    assert list(leaf_at(2, TAGGED_FIELDS).known) == [0]


@pytest.mark.parametrize("version", [-1, 4])
def test_there_is_no_construct_outside_the_versions(version):
    with pytest.raises(ValueError, match="Outer has versions 0 to 3"):
        OUTER.at(version)


def kinds_in(node):
    if isinstance(node, construct.Renamed):
        node = node.subcon
    yield type(node)
    for child in getattr(node, "subcons", ()):
        yield from kinds_in(child)
    if isinstance(node, ArrayLeaf):
        yield from kinds_in(node.element)
    if isinstance(node, NullableStruct):
        yield from kinds_in(node.struct)
    if isinstance(node, TaggedFields):
        for field in node.known.values():
            yield from kinds_in(field)


@pytest.mark.parametrize("case", CODECS, ids=name_of)
def test_the_construct_of_a_version_has_no_condition_in_it(case):
    _, codec, version = case
    struct = codec.at(version)
    assert type(struct) is construct.Struct
    leaves = set(kinds_in(struct)) - {construct.Struct, construct.FormatField, type(construct.Flag)}
    assert all(leaf.__module__ == "kafkalite.wire.primitives" for leaf in leaves)


def test_a_message_becomes_a_container_and_back():
    for version in range(4):
        struct = OUTER.at(version)
        message = Outer(inners=None, cursor=Inner(number=3))
        raw = struct.build(to_container(message, struct))
        assert from_container(struct.parse(raw), struct) == message
    message = Outer(inner=Inner(number=2), inners=[Inner(number=4)], batches=b"b")
    raw = OUTER.at(3).build(to_container(message, OUTER.at(3)))
    assert from_container(OUTER.at(3).parse(raw), OUTER.at(3)) == message


def test_shapes_are_named_in_construct_style():
    member = "name" / since(3, String)
    assert isinstance(member, construct.Renamed)
    assert StringLeaf is type(leaf_at(0, "text"))


def test_kafkas_structures_are_those_of_its_json():
    assert PartitionData().records is None
    assert PartitionData().aborted_transactions == []
