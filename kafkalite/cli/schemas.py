"""Records with schemas for `consume` and `produce`: what becomes of their keys and values."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from kafkalite.cli.rendering import JsonText
from kafkalite.client.consumer import ConsumedRecord
from kafkalite.registry.client import SchemaRegistryClient, SchemaRegistryError
from kafkalite.registry.model import Schema, SchemaType
from kafkalite.registry.values import Framed, ResolvedSchema, decode, encode, frame, unframe

ENDINGS: Final = {
    ".avsc": SchemaType.AVRO,
    ".json": SchemaType.JSON,
    ".proto": SchemaType.PROTOBUF,
}


def client_of(url: str) -> SchemaRegistryClient:
    """Return a client of the registry at `url`; refuse what is no URL."""
    try:
        return SchemaRegistryClient(url)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


class Decoder:
    """Turns keys and values that were written with a schema into JSON.

    A key of any kind may look like one that was: it is left as it is where it does not fit. A value
    that cannot be read is an error.
    """

    def __init__(self, registry: SchemaRegistryClient) -> None:
        self._registry = registry

    def decoded(self, record: ConsumedRecord) -> ConsumedRecord:
        """Return a record with JSON for what was written with a schema.

        Raises:
            ClickException: its value cannot be read.
        """
        return replace(record, key=self._key(record.key), value=self._value(record))

    def _key(self, key: bytes | None) -> bytes | None:
        framed = unframe(key)
        if framed is None:
            return key
        try:
            return self._text(framed)
        except ValueError:
            return key
        except SchemaRegistryError as error:
            if error.code == 0:
                raise click.ClickException(str(error)) from None
            return key

    def _value(self, record: ConsumedRecord) -> bytes | None:
        framed = unframe(record.value)
        if framed is None:
            return record.value
        try:
            return self._text(framed)
        except (ValueError, SchemaRegistryError) as error:
            raise click.ClickException(
                f"{record.topic}-{record.partition} offset {record.offset}: value with schema "
                f"{framed.schema_id}: {error}"
            ) from None

    def _text(self, framed: Framed) -> JsonText:
        value = decode(self._registry.schema(framed.schema_id), framed.payload)
        return JsonText(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


@dataclass(slots=True, frozen=True, kw_only=True)
class Encoder:
    """Turns JSON into keys or values of one schema."""

    schema_id: int
    known: ResolvedSchema
    message: str = ""

    def encode(self, value: Any) -> bytes | None:
        """Return the bytes of a JSON value; None, a tombstone, for null.

        Raises:
            ValueError: it does not fit the schema.
        """
        if value is None:
            return None
        return frame(self.schema_id, encode(self.known, value, self.message))

    def encode_text(self, text: bytes) -> bytes | None:
        """Return the bytes of JSON text.

        Raises:
            ValueError: it is none, or does not fit the schema.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"no JSON: {error}") from None
        return self.encode(value)


def encoder_of(
    registry: SchemaRegistryClient, subject: str, schema_file: Path | None, message: str
) -> Encoder:
    """Return an encoder by a schema's file, which is registered, or by the subject's latest."""
    try:
        if schema_file is None:
            schema_id, known = registry.latest(subject)
        else:
            schema_id, known = registry.register(subject, read_schema_file(schema_file))
    except SchemaRegistryError as error:
        hint = ""
        if error.code // 100 == 404 and schema_file is None:
            hint = "; name a file with the schema, or another subject"
        raise click.ClickException(f"{error}{hint}") from None
    encoder = Encoder(schema_id=schema_id, known=known, message=message)
    if message and known.schema.schema_type is not SchemaType.PROTOBUF:
        raise click.UsageError("A message is named of Protobuf schemas only.")
    return encoder


def read_schema_file(path: Path) -> Schema:
    """Return the schema in a file; its type is that of the name's ending."""
    kind = ENDINGS.get(path.suffix)
    if kind is None:
        raise click.UsageError(f"{path}: a schema's file ends in {', '.join(ENDINGS)}.")
    try:
        return Schema(kind, path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path}: {error}") from None
