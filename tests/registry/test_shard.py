"""The registry's decisions, each replayed from what it wrote."""

import pytest

from kafkalite.registry.codec import RegistryCodec
from kafkalite.registry.errors import RegistryError, RegistryErrorCode
from kafkalite.registry.model import Compatibility, Mode, Reference, Schema, SchemaType
from kafkalite.registry.shard import (
    CheckCompatibility,
    DeleteSubject,
    DeleteVersion,
    LookUp,
    SetCompatibility,
    SetMode,
    read_schema,
)
from tests.registry.harness import OPTIONAL_B, Registry, avro, json_schema, record

Code = RegistryErrorCode


@pytest.fixture
def registry():
    return Registry()


def refused(registry, event):
    with pytest.raises(RegistryError) as refusal:
        registry.ask(event)
    return refusal.value.code


def check(registry, text, subject="s", version=None):
    event = CheckCompatibility(subject=subject, schema=avro(text), version=version, verbose=True)
    return registry.ask(event)


def test_the_same_schema_has_the_same_id_under_any_subject(registry):
    assert registry.register("s", record("a")) == (1, 1)
    assert registry.register("s", record("a")) == (1, 1)
    assert registry.register("t", record("a")) == (1, 1)
    assert registry.register("t", record("a", OPTIONAL_B)) == (2, 2)


def test_blanks_have_no_meaning_and_order_has_none_if_normalized(registry):
    assert registry.register("s", ' { "type" : "string" } ') == (1, 1)
    assert registry.register("s", '{"type":"string"}') == (1, 1)
    assert registry.register("n", '{"type":"string","doc":"x"}', normalize=True) == (2, 1)
    assert registry.register("n", '{"doc":"x","type":"string"}', normalize=True) == (2, 1)
    assert registry.register("p", "string") == (3, 1)


def test_an_incompatible_schema_is_refused_with_the_reason(registry):
    registry.register("s", record("a"))
    with pytest.raises(RegistryError, match="incompatible with an earlier schema") as refusal:
        registry.register("s", record("a", "b"))
    assert refusal.value.code is Code.INCOMPATIBLE_SCHEMA
    assert refusal.value.code.http_status == 409
    assert "oldSchemaVersion: 1" in refusal.value.message


@pytest.mark.parametrize(
    ("compatibility", "wider", "narrower"),
    [
        (Compatibility.NONE, True, True),
        (Compatibility.BACKWARD, False, True),
        (Compatibility.FORWARD, True, False),
        (Compatibility.FULL, False, False),
    ],
)
def test_compatibility_has_a_direction(registry, compatibility, wider, narrower):
    registry.ask(SetCompatibility(subject=None, compatibility=compatibility))
    registry.register("s", record("a", "c"))
    assert check(registry, record("a", "b", "c"))["is_compatible"] is wider
    assert check(registry, record("a"))["is_compatible"] is narrower
    assert check(registry, record("a", OPTIONAL_B, "c"))["is_compatible"] is True


def test_transitive_compatibility_looks_at_all_versions(registry):
    registry.ask(SetCompatibility(subject="s", compatibility=Compatibility.NONE))
    registry.register("s", '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}')
    registry.register("s", record("a"))
    registry.ask(SetCompatibility(subject="s", compatibility=Compatibility.BACKWARD))
    assert check(registry, record("a", OPTIONAL_B))["is_compatible"]
    registry.ask(SetCompatibility(subject="s", compatibility=Compatibility.BACKWARD_TRANSITIVE))
    answer = check(registry, record("a", OPTIONAL_B))
    assert not answer["is_compatible"]
    assert answer["messages"][-1] == "oldSchemaVersion: 1"
    assert not check(registry, record("a"), version="1")["is_compatible"]
    assert check(registry, record("a"), version="latest")["is_compatible"]


def test_a_subject_that_is_not_there_is_compatible_with_anything(registry):
    assert check(registry, record("a")) == {"is_compatible": True, "messages": []}


def test_a_schema_is_looked_up(registry):
    registry.register("s", record("a"))
    found = registry.ask(LookUp(subject="s", schema=avro(record("a"))))
    assert (found["id"], found["version"], found["subject"]) == (1, 1, "s")
    other = LookUp(subject="s", schema=avro(record("b")))
    assert refused(registry, other) is Code.SCHEMA_NOT_FOUND
    other = LookUp(subject="t", schema=avro(record("a")))
    assert refused(registry, other) is Code.SUBJECT_NOT_FOUND


def test_versions_are_deleted_softly_first_and_their_id_goes_with_the_last(registry):
    """After compaction it would be gone too: what is answered does not depend on that."""
    registry.register("s", record("a"))
    registry.register("s", record("a", OPTIONAL_B))
    gone = DeleteVersion(subject="s", version="1", permanent=True)
    assert refused(registry, gone) is Code.VERSION_NOT_SOFT_DELETED
    assert registry.ask(DeleteVersion(subject="s", version="1")) == 1
    again = DeleteVersion(subject="s", version="1")
    assert refused(registry, again) is Code.VERSION_SOFT_DELETED
    state = registry.shard.state
    assert [v.version for v in state.versions("s")] == [2]
    assert [v.version for v in state.versions("s", deleted=True)] == [1, 2]
    assert registry.ask(gone) == 1
    assert [v.version for v in state.versions("s", deleted=True)] == [2]
    with pytest.raises(RegistryError) as error:
        state.schema(1)
    assert error.value.code is Code.SCHEMA_NOT_FOUND
    missing = DeleteVersion(subject="s", version="9")
    assert refused(registry, missing) is Code.VERSION_NOT_FOUND


def test_a_deleted_schema_comes_back_with_its_id_and_a_new_version(registry):
    registry.register("s", record("a"))
    assert registry.ask(DeleteSubject(subject="s")) == [1]
    assert refused(registry, DeleteSubject(subject="s")) is Code.SUBJECT_SOFT_DELETED
    assert registry.register("s", record("a")) == (1, 2)


def test_a_subject_is_deleted_for_good_only_after_it_was_softly(registry):
    registry.register("s", record("a"))
    registry.ask(SetCompatibility(subject="s", compatibility=Compatibility.FULL))
    forever = DeleteSubject(subject="s", permanent=True)
    assert refused(registry, forever) is Code.SUBJECT_NOT_SOFT_DELETED
    registry.ask(DeleteSubject(subject="s"))
    assert registry.ask(forever) == [1]
    assert refused(registry, forever) is Code.SUBJECT_NOT_FOUND
    assert registry.shard.state.compatibility("s") is Compatibility.BACKWARD
    assert registry.register("s", record("a")) == (2, 1)


def test_a_schema_refers_to_others_and_keeps_them(registry):
    registry.register("inner", record("x", name="Inner"))
    outer = avro(record('{"name":"i","type":"Inner"}'), ("Inner", "inner", 1))
    assert registry.register("outer", outer) == (2, 1)
    gone = DeleteVersion(subject="inner", version="1")
    assert refused(registry, gone) is Code.REFERENCE_EXISTS
    assert refused(registry, DeleteSubject(subject="inner")) is Code.REFERENCE_EXISTS
    assert registry.shard.state.referenced_by("inner", 1) == [2]
    assert check(registry, record("a"), "outer")["is_compatible"] is False
    with pytest.raises(RegistryError, match="No schema reference found"):
        registry.register("other", avro(outer.text, ("Inner", "inner", 7)))
    with pytest.raises(RegistryError, match="Invalid schema"):
        registry.register("other", avro(outer.text))


def test_a_subject_that_may_only_be_read_is_not_written(registry):
    registry.register("s", record("a"))
    registry.ask(SetMode(subject="s", mode=Mode.READONLY))
    with pytest.raises(RegistryError, match="READONLY"):
        registry.register("s", record("a", OPTIONAL_B))
    assert refused(registry, DeleteSubject(subject="s")) is Code.OPERATION_NOT_PERMITTED
    registry.ask(SetMode(subject="s", mode=None))
    assert registry.register("s", record("a", OPTIONAL_B)) == (2, 2)


def test_schemas_are_imported_with_their_ids(registry):
    with pytest.raises(RegistryError, match="not in import mode"):
        registry.register("s", record("a"), schema_id=77)
    registry.ask(SetMode(subject="s", mode=Mode.IMPORT))
    with pytest.raises(RegistryError, match="IMPORT"):
        registry.register("s", record("a"))
    assert registry.register("s", record("a"), schema_id=77, version=5) == (77, 5)
    with pytest.raises(RegistryError, match="Overwrite"):
        registry.register("s", record("b"), schema_id=77)
    assert registry.register("t", record("c")) == (78, 1)
    full = SetMode(subject=None, mode=Mode.IMPORT)
    assert refused(registry, full) is Code.OPERATION_NOT_PERMITTED
    assert registry.ask(SetMode(subject=None, mode=Mode.IMPORT, force=True)) is Mode.IMPORT


def test_a_setting_that_is_not_there_cannot_be_taken_away(registry):
    event = SetCompatibility(subject="s", compatibility=None)
    assert refused(registry, event) is Code.SUBJECT_COMPATIBILITY_NOT_CONFIGURED


@pytest.mark.parametrize(
    "schema",
    [
        avro("nonsense"),
        avro('{"type":"record"}'),
        avro('{"type":"record","name":"R","fields":[{"name":"a","type":"Missing"}]}'),
        avro("[" * 100_000),
        avro('"' + "x" * 2_000_000),
        json_schema('{"type":"strin"}'),
        json_schema("3"),
        json_schema('{"properties":[]}'),
        json_schema('{"not":' * 200 + "{}" + "}" * 200),
        Schema(SchemaType.PROTOBUF, "hello"),
    ],
)
def test_what_is_no_schema_is_refused(registry, schema):
    with pytest.raises(RegistryError) as refusal:
        registry.register("s", schema)
    assert refusal.value.code is Code.INVALID_SCHEMA


def test_text_in_quotes_stays_what_it_is(registry):
    text = "syntax = 'proto3';  // one\noption java_package = 'http://a  b';  /* two */\n"
    text += 'message M { /* " */ string a = 1; }\noption java_outer_classname = "/* \\" */";'
    schema_id, _ = registry.register("s", Schema(SchemaType.PROTOBUF, text))
    plain = "syntax = 'proto3';\noption java_package = 'http://a  b';\n"
    plain += 'message M { string a = 1; }\noption java_outer_classname = "/* \\" */";\n'
    assert registry.shard.state.schema(schema_id).text == plain


def test_a_schema_is_there_as_long_as_any_version_has_it(registry):
    for subject in ("s", "t"):
        assert registry.register(subject, record("a"))[0] == 1
    state = registry.shard.state
    for subject, left in (("s", ["t"]), ("t", [])):
        registry.ask(DeleteSubject(subject=subject))
        registry.ask(DeleteSubject(subject=subject, permanent=True))
        assert [each.subject for each in state.versions_with(1, deleted=True)] == left
    assert state == type(state)(last_id=1)


@pytest.mark.parametrize(
    "text", ['{"type":"record","name":"R","doc":"\\ud800","fields":[]}', '{"type":"int","x":1e999}']
)
def test_what_nobody_could_store_is_refused(registry, text):
    with pytest.raises(RegistryError) as error:
        registry.register("s", text)
    assert error.value.code is Code.INVALID_SCHEMA


@pytest.mark.parametrize("part", ["name", "subject"])
def test_halves_of_characters_are_refused_in_references_too(part):
    said = {"name": "n", "subject": "s", "version": 1, part: "\ud800"}
    with pytest.raises(RegistryError, match="half a character"):
        read_schema({"schema": '"int"', "references": [said]})


def test_protobuf_is_the_same_whatever_its_comments(registry):
    first = Schema(SchemaType.PROTOBUF, 'syntax = "proto3";\nmessage A { // x\n  int32 b = 1;\n}')
    second = Schema(
        SchemaType.PROTOBUF, 'syntax = "proto3";\nmessage A {\n int32  b = 1; /* y */ \n}'
    )
    assert registry.register("s", first) == registry.register("s", second) == (1, 1)
    third = Schema(SchemaType.PROTOBUF, 'syntax = "proto3"; message A { bool b = 1; }')
    assert registry.register("s", third) == (2, 2)
    fourth = Schema(SchemaType.PROTOBUF, 'syntax = "proto3"; message A { string b = 1; }')
    with pytest.raises(RegistryError, match="was bool, and is string"):
        registry.register("s", fourth)


def test_a_type_reads_only_its_own_kind(registry):
    registry.register("s", record("a"))
    with pytest.raises(RegistryError, match="JSON cannot read AVRO"):
        registry.register("s", json_schema('{"type":"object"}'))


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"schema": ""},
        {"schema": 3},
        {"schema": "x", "schemaType": "XML"},
        {"schema": "x", "references": 3},
        {"schema": "x", "references": [3]},
        {"schema": "x", "references": [{"name": "n"}]},
    ],
)
def test_a_body_without_a_schema_is_refused(said):
    with pytest.raises(RegistryError) as refusal:
        read_schema(said)
    assert refusal.value.code is Code.INVALID_SCHEMA


@pytest.mark.parametrize("whole", [True, False])
def test_an_id_is_never_given_twice_even_if_nothing_is_left_of_its_schema(registry, whole):
    registry.register("kept", record("a"))
    assert registry.register("gone", record("b")) == (2, 1)
    for permanent in (False, True):
        if whole:
            registry.ask(DeleteSubject(subject="gone", permanent=permanent))
        else:
            registry.ask(DeleteVersion(subject="gone", version="1", permanent=permanent))
    # What a compacted log has: the last record of each key, but for those that are deleted.
    newest = {key: value for key, value in registry.log if value is not None}
    dead = {key for key, value in registry.log if value is None}
    after = Registry()
    after.log = [(key, value) for key, value in newest.items() if key not in dead]
    for key, value in after.log:
        after.shard.replay(RegistryCodec().decode(key, value))
    assert after.register("new", record("c")) == (3, 1)


def test_json_schemas_are_compared_with_what_they_refer_to(registry):
    """The text of the reference stays the same; what it stands for does not."""

    def order(version):
        text = '{"properties":{"by":{"$ref":"customer.json#/$defs/one"}}}'
        return Schema(SchemaType.JSON, text, (Reference("customer.json", "customer", version),))

    def customer(kind):
        return json_schema(
            f'{{"$defs":{{"one":{{"$ref":"#/$defs/two"}},"two":{{"type":{kind}}}}}}}'
        )

    registry.ask(SetCompatibility(subject="customer", compatibility=Compatibility.NONE))
    for kind in ('"string"', '["string","null"]', '"integer"'):
        registry.register("customer", customer(kind))
    registry.register("order", order(1))
    registry.register("order", order(2))
    with pytest.raises(RegistryError, match="was allowed and is not any more"):
        registry.register("order", order(3))
