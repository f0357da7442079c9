"""Text of schemas: whether it is one, its canonical form, and what gets on with what.

Avro is left to Apache's own library, Protobuf to protoc; both are imported when the first
such schema comes (the extra `registry`).
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kafkalite.registry import json_schema, protobuf
from kafkalite.registry.errors import check_characters, invalid_schema
from kafkalite.registry.model import Schema, SchemaType

if TYPE_CHECKING:
    from avro.schema import Schema as AvroSchema

TEXT_MAX_BYTES: Final = 1024 * 1024
TOO_DEEP: Final = "nested too deeply"
REMEMBERED: Final = 64
"""Texts that were read, and pairs that were compared: of a request, for the one that follows."""

MISSING_AVRO: Final = "Avro needs a library: pip install 'kafkalite[registry]'"

Resolved = Sequence[tuple[str, Schema]]
"""Schemas that one refers to, by the name under which it does, each after what it needs itself."""

_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING_OR_GAP: Final = re.compile(
    r""" "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | (?:\s|//[^\n]*|/\*.*?\*/)+ """,
    re.DOTALL | re.VERBOSE,
)


def canonical(schema: Schema, references: Resolved, *, normalize: bool = False) -> Schema:
    """Return a schema in the form by which two that are the same are known to be.

    Args:
        schema: as a client sent it.
        references: the schemas that it refers to.
        normalize: sort what has no order, too.

    Raises:
        RegistryError: INVALID_SCHEMA.
    """
    if len(schema.text) > TEXT_MAX_BYTES:
        raise invalid_schema(f"longer than {TEXT_MAX_BYTES} bytes")
    try:
        return _canonical(schema, tuple(references), normalize)
    except RecursionError:
        raise invalid_schema(TOO_DEEP) from None


@lru_cache(maxsize=REMEMBERED)
def _canonical(
    schema: Schema, references: tuple[tuple[str, Schema], ...], normalize: bool
) -> Schema:
    match schema.schema_type:
        case SchemaType.AVRO:
            parse_avro(schema, references)
            text = _compact(_load(schema.text), sort=normalize)
        case SchemaType.JSON:
            said = _load(schema.text)
            json_schema.check(said)
            text = _compact(said, sort=normalize)
        case SchemaType.PROTOBUF:
            protobuf.check(schema.text, texts_of(references))
            text = _plain_protobuf(schema.text)
    check_characters(text)
    return Schema(schema.schema_type, text, schema.references)


def incompatibilities(
    reader: Schema, reader_references: Resolved, writer: Schema, writer_references: Resolved
) -> list[str]:
    """Return why `reader` cannot read what was written with `writer`; empty if it can.

    Raises:
        RegistryError: INVALID_SCHEMA, of either.
    """
    try:
        found = _incompatibilities(
            reader, tuple(reader_references), writer, tuple(writer_references)
        )
    except RecursionError:
        raise invalid_schema(TOO_DEEP) from None
    return [*found]


@lru_cache(maxsize=REMEMBERED)
def _incompatibilities(
    reader: Schema,
    reader_references: tuple[tuple[str, Schema], ...],
    writer: Schema,
    writer_references: tuple[tuple[str, Schema], ...],
) -> list[str]:
    if reader.schema_type is not writer.schema_type:
        return [f"{reader.schema_type.value} cannot read {writer.schema_type.value}"]
    match reader.schema_type:
        case SchemaType.AVRO:
            return _avro_incompatibilities(
                parse_avro(reader, reader_references), parse_avro(writer, writer_references)
            )
        case SchemaType.JSON:
            return json_schema.incompatibilities(
                _bundled(reader, reader_references), _bundled(writer, writer_references)
            )
        case SchemaType.PROTOBUF:
            return protobuf.incompatibilities(
                protobuf.descriptors(reader.text, texts_of(reader_references)),
                protobuf.descriptors(writer.text, texts_of(writer_references)),
            )


def _bundled(schema: Schema, references: Resolved) -> Any:
    others = [(name, _load(each.text)) for name, each in references]
    return json_schema.bundled(_load(schema.text), others)


def formatted(schema: Schema, references: Resolved, form: str) -> str:
    """Return a schema's text in one of Confluent's formats; as it is if it has no such form.

    "serialized" is a Protobuf descriptor in base64, "resolved" an Avro schema that has all that it
    refers to in it.

    Raises:
        RegistryError: INVALID_SCHEMA, it was stored by something that checks less.
    """
    match schema.schema_type, form:
        case SchemaType.PROTOBUF, "serialized":
            return protobuf.serialized(schema.text, texts_of(references))
        case SchemaType.AVRO, "resolved":
            parsed: Any = parse_avro(schema, references)
            return _compact(parsed.to_json(), sort=False)
        case _:
            return schema.text


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise invalid_schema(TOO_DEEP) from None
    except ValueError as error:
        # Avro's primitive types are names, and may come without quotes.
        if re.fullmatch(r"[a-z]+", text.strip()):
            return text.strip()
        raise invalid_schema(f"no JSON: {error}") from None


def _compact(said: Any, *, sort: bool) -> str:
    try:
        return json.dumps(
            said, ensure_ascii=False, separators=(",", ":"), sort_keys=sort, allow_nan=False
        )
    except ValueError as error:
        raise invalid_schema(f"no JSON: {error}") from None


# --- Avro ----------------------------------------------------------------------------------------


@lru_cache(maxsize=REMEMBERED)
def _parsed(text: str, before: tuple[str, ...]) -> "AvroSchema":
    try:
        from avro.errors import AvroException
        from avro.name import Names
        from avro.schema import make_avsc_object
    except ImportError:
        raise invalid_schema(MISSING_AVRO) from None
    names = Names(validate_names=True)
    try:
        for each in before:
            make_avsc_object(_load(each), names)
        return make_avsc_object(_load(text), names)
    except (AvroException, RecursionError, TypeError, KeyError, ValueError) as error:
        raise invalid_schema(str(error) or type(error).__name__) from None


def parse_avro(schema: Schema, references: Resolved) -> "AvroSchema":
    """Return an Avro schema as Apache's library has it.

    Raises:
        RegistryError: INVALID_SCHEMA.
    """
    return _parsed(schema.text, tuple(each.text for _, each in references))


def _avro_incompatibilities(reader: "AvroSchema", writer: "AvroSchema") -> list[str]:
    from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType

    checker: Any = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
    result = checker.get_compatibility(reader, writer)
    if result.compatibility is SchemaCompatibilityType.compatible:
        return []
    kinds = ", ".join(sorted({str(kind.value) for kind in result.incompatibilities}))
    places = ", ".join(sorted(result.locations))
    told = [*sorted(result.messages)] or ["the schemas do not match"]
    return [f"{each} ({kinds} at {places})" for each in told]


# --- Protobuf ------------------------------------------------------------------------------------


def texts_of(references: Resolved) -> tuple[tuple[str, str], ...]:
    """Return (name, text) of the schemas that one refers to."""
    return tuple((name, each.text) for name, each in references)


def _plain_protobuf(text: str) -> str:
    """Return .proto text without comments, with one space or line end where there were several."""
    return _STRING_OR_GAP.sub(_plain_gap, text).strip() + "\n"


def _plain_gap(found: re.Match[str]) -> str:
    if found[0].startswith(('"', "'")):
        return found[0]
    return "\n" if "\n" in _COMMENT.sub("", found[0]) else " "
