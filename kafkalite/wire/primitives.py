"""The leaves that messages are made of, as bounded construct fields.

Each leaf parses and builds one Kafka primitive type in one of its encodings (plain or compact,
nullable or not). construct's own VarInt, PascalString and PrefixedArray are not used: they accept
unbounded or quadratic input. Here a varint has at most five bytes, and a length is compared with
the bytes that are left before anything of that length is made.

construct's interpreter over these leaves is the oracle; `lowering` makes the code that serves.
"""

# construct's own protocol between its fields is `_parse` and `_build`.
# ruff: noqa: SLF001

import io
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from construct import (
    Construct,
    Flag,
    Float64b,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    stream_read,
    stream_write,
)

from kafkalite.wire.errors import MalformedMessage

Int8 = Int8sb
Int16 = Int16sb
Int32 = Int32sb
Int64 = Int64sb
UInt16 = Int16ub
UInt32 = Int32ub
Float64 = Float64b
Bool = Flag

Buffer = bytes | bytearray | memoryview

STRING_SIZE_MAX: Final = 2**15 - 1
"""Bytes of a string: what int16 can say, and by Kafka's rule compact ones are no longer either."""

TAGS_MAX = 1_000
"""Tags of one section (rule 254). Nobody sends more than three; a hundred megabytes of empty ones
would keep everybody waiting for seconds."""

VARINT_BYTES_MAX = 5
"""Kafka's varint carries 32 bits (KIP-482)."""


def unsigned_varint(value: int) -> bytes:
    """Return the seven-bits-per-byte form of a value >= 0 (KIP-482)."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Return (value, position after it); IndexError at the end of the buffer."""
    first = buffer[position]
    if first < 128:
        return first, position + 1
    return rest_of_varint(buffer, position + 1, first)


def rest_of_varint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Go on with a varint whose first byte (>= 128) stands before `position`."""
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise MalformedMessage(f"varint longer than {VARINT_BYTES_MAX} bytes")


@lru_cache(maxsize=4096)
def uuid_from_bytes(raw: bytes) -> UUID:
    """Return the UUID of 16 bytes.

    Cached because a broker sees the same few topic ids in every request, and UUID's constructor
    costs as much as decoding the rest of a small request.
    """
    return UUID(bytes=raw)


def _remaining(stream: io.BytesIO) -> int:
    return len(stream.getbuffer()) - stream.tell()


def _take(stream: io.BytesIO, size: int, path: str) -> bytes:
    if size > _remaining(stream):
        raise MalformedMessage(f"{path}: {size} bytes announced, {_remaining(stream)} left")
    taken: bytes = stream_read(stream, size, path)
    return taken


class UnsignedVarint(Construct):  # type: ignore[misc]
    """An unsigned varint of at most five bytes."""

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> int:
        value = 0
        for shift in range(0, 7 * VARINT_BYTES_MAX, 7):
            byte: int = stream_read(stream, 1, path)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise MalformedMessage(f"{path}: varint longer than {VARINT_BYTES_MAX} bytes")

    def _build(self, obj: int, stream: io.BytesIO, context: Any, path: str) -> int:
        encoded = unsigned_varint(obj)
        stream_write(stream, encoded, len(encoded), path)
        return obj


_VARINT = UnsignedVarint()


class UuidLeaf(Construct):  # type: ignore[misc]
    """Sixteen bytes, in Python a `uuid.UUID`."""

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> UUID:
        return UUID(bytes=stream_read(stream, 16, path))

    def _build(self, obj: UUID, stream: io.BytesIO, context: Any, path: str) -> UUID:
        stream_write(stream, obj.bytes, 16, path)
        return obj


Uuid = UuidLeaf()


class _Sized(Construct):  # type: ignore[misc]
    """Something that follows its length: a varint of length + 1 if compact, else an integer."""

    plain_prefix: Construct

    def __init__(self, *, compact: bool, nullable: bool) -> None:
        super().__init__()
        self.compact = compact
        self.nullable = nullable

    def _parse_length(self, stream: io.BytesIO, context: Any, path: str) -> int:
        """Return the length, -1 for an allowed null."""
        prefix = _VARINT if self.compact else self.plain_prefix
        length: int = prefix._parse(stream, context, path)
        if self.compact:
            length -= 1
        if length >= 0:
            return length
        if not self.nullable:
            raise MalformedMessage(f"{path}: null where none is allowed")
        return -1

    def _build_length(self, length: int, stream: io.BytesIO, context: Any, path: str) -> None:
        if self.compact:
            _VARINT._build(length + 1, stream, context, path)
        else:
            self.plain_prefix._build(length, stream, context, path)

    def _build_null(self, stream: io.BytesIO, context: Any, path: str) -> None:
        if not self.nullable:
            raise ValueError(f"{path}: None where none is allowed")
        self._build_length(-1, stream, context, path)


class BytesLeaf(_Sized):
    """Opaque bytes, in Python `bytes`."""

    plain_prefix = Int32sb

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> bytes | None:
        length = self._parse_length(stream, context, path)
        return None if length < 0 else _take(stream, length, path)

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        if obj is None:
            self._build_null(stream, context, path)
        else:
            self._build_length(len(obj), stream, context, path)
            stream_write(stream, bytes(obj), len(obj), path)
        return obj


class RecordsLeaf(BytesLeaf):
    """Record batches: a slice of the receive buffer, or a region of a file on the way out."""


class StringLeaf(_Sized):
    """UTF-8 text. Invalid sequences become U+FFFD, as Java's String does, instead of an error."""

    plain_prefix = Int16sb

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> str | None:
        length = self._parse_length(stream, context, path)
        if length > STRING_SIZE_MAX:
            raise MalformedMessage(f"{path}: a string of {length} bytes")
        return None if length < 0 else _take(stream, length, path).decode("utf-8", "replace")

    def _build(self, obj: str | None, stream: io.BytesIO, context: Any, path: str) -> Any:
        if obj is None:
            self._build_null(stream, context, path)
        else:
            encoded = obj.encode()
            self._build_length(len(encoded), stream, context, path)
            stream_write(stream, encoded, len(encoded), path)
        return obj


class ArrayLeaf(_Sized):
    """A counted sequence of one leaf or Struct, in Python a list."""

    plain_prefix = Int32sb

    def __init__(self, element: Construct, *, compact: bool, nullable: bool) -> None:
        super().__init__(compact=compact, nullable=nullable)
        self.element = element
        self.element_size_min = size_min(element)

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> list[Any] | None:
        count = self._parse_length(stream, context, path)
        if count < 0:
            return None
        if count * self.element_size_min > _remaining(stream):
            raise MalformedMessage(f"{path}: {count} elements cannot be in what is left")
        return [self.element._parse(stream, context, path) for _ in range(count)]

    def _build(self, obj: Sequence[Any] | None, stream: io.BytesIO, context: Any, path: str) -> Any:
        if obj is None:
            self._build_null(stream, context, path)
            return obj
        self._build_length(len(obj), stream, context, path)
        for element in obj:
            self.element._build(element, stream, context, path)
        return obj


class NullableStruct(Construct):  # type: ignore[misc]
    """A Struct after one byte that says whether it is there: 1, or `null` (rule 14).

    Null is -1, but in a tag section 0.
    """

    def __init__(self, struct: Construct, *, null: int = -1) -> None:
        super().__init__()
        self.struct = struct
        self.null = null

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        present = Int8sb._parse(stream, context, path) > self.null
        return self.struct._parse(stream, context, path) if present else None

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        Int8sb._build(self.null if obj is None else 1, stream, context, path)
        if obj is not None:
            self.struct._build(obj, stream, context, path)
        return obj


class TaggedFields(Construct):  # type: ignore[misc]
    """The section of optional fields that ends every flexible structure (KIP-482, rule 13).

    Parses to a dict of the known fields that were there, by name; unknown tags are skipped.
    Builds from such a dict: what is in it is written, in the order of the tags.
    """

    def __init__(self, known: Mapping[int, Construct]) -> None:
        """Take the known fields as named constructs by tag."""
        super().__init__()
        self.known = dict(sorted(known.items()))
        self.flagbuildnone = True

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> dict[str, Any]:
        found = {}
        for _ in range(_VARINT._parse(stream, context, path)):
            tag = _VARINT._parse(stream, context, path)
            raw = _take(stream, _VARINT._parse(stream, context, path), path)
            if tag in self.known:
                field = self.known[tag]
                inner = io.BytesIO(raw)
                found[field.name] = field._parse(inner, context, path)
                if _remaining(inner):
                    raise MalformedMessage(f"{path}: {_remaining(inner)} bytes too many in {tag}")
        return found

    def _build(self, obj: Mapping[str, Any] | None, stream: Any, context: Any, path: str) -> Any:
        values = obj or {}
        present = [(tag, field) for tag, field in self.known.items() if field.name in values]
        _VARINT._build(len(present), stream, context, path)
        for tag, field in present:
            inner = io.BytesIO()
            field._build(values[field.name], inner, context, path)
            _VARINT._build(tag, stream, context, path)
            _VARINT._build(inner.tell(), stream, context, path)
            stream_write(stream, inner.getvalue(), inner.tell(), path)
        return values


def format_of(leaf: Construct) -> str:
    """Return the `struct` format character of a leaf of fixed size, "" for any other leaf."""
    if leaf is Flag:
        return "?"
    if isinstance(leaf, UuidLeaf):
        return "16s"
    fmtstr: str = getattr(leaf, "fmtstr", "")
    return fmtstr[1:]


def size_min(construct: Construct) -> int:
    """Return the least bytes that a leaf or a Struct of leaves can take on the wire, >= 1."""
    if isinstance(construct, NullableStruct | TaggedFields):
        return 1
    if isinstance(construct, _Sized):
        return 1 if construct.compact else int(construct.plain_prefix.sizeof())
    if isinstance(construct, UuidLeaf):
        return 16
    if hasattr(construct, "subcons"):
        return max(1, sum(size_min(member.subcon) for member in construct.subcons))
    return int(construct.sizeof())
