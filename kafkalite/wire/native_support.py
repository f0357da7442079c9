"""Functions that the modules written by `native` call; they are compiled with them."""

from typing import Any, Final

from librt.strings import BytesWriter, write_i16_be, write_i32_be
from mypy_extensions import i16, i32, i64, u8

from kafkalite.wire.decoding import (
    lower_decode,
    refuse_elements,
    refuse_length,
    refuse_tag,
    refuse_tags,
)
from kafkalite.wire.encoding import JOIN_SIZE_MAX
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.primitives import TAGS_MAX, VARINT_BYTES_MAX

MISFIT: Final = "a number that its field cannot hold"

_large: dict[tuple[str, int], Any] = {}


def large(codec: Any, version: int) -> Any:
    """Return the decoder that copies nothing, made when it is first wanted."""
    key = (codec.record.__name__, version)
    decode = _large.get(key)
    if decode is None:
        decode = _large[key] = lower_decode(codec.at(version))
    return decode


def get_i8(f: bytes, p: i64) -> i64:
    """Return a signed byte."""
    value: i64 = f[p]
    return value - 256 if value > 127 else value


def get_u16(f: bytes, p: i64) -> i64:
    """Return an unsigned number of two bytes."""
    high: i64 = f[p]
    low: i64 = f[p + 1]
    return high << 8 | low


def get_u32(f: bytes, p: i64) -> i64:
    """Return an unsigned number of four bytes."""
    return get_u16(f, p) << 16 | get_u16(f, p + 2)


def get_varint(f: bytes, p: i64, first: i64) -> tuple[i64, i64]:
    """Return (value, position after it) of a varint; its first byte, >= 128, is before `p`."""
    value: i64 = first & 127
    shift: i64 = 7
    while shift < 7 * VARINT_BYTES_MAX:
        byte: i64 = f[p]
        p += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, p
        shift += 7
    raise MalformedMessage(f"varint longer than {VARINT_BYTES_MAX} bytes")


def get_tag(f: bytes, p: i64, end: i64) -> tuple[i64, i64, i64]:
    """Return (tag, first byte of its value, end of its value)."""
    tag: i64 = f[p]
    p += 1
    if tag > 127:
        tag, p = get_varint(f, p, tag)
    size: i64 = f[p]
    p += 1
    if size > 127:
        size, p = get_varint(f, p, size)
    if size > end - p:
        refuse_length(f"tag {tag}", size, end - p)
    return tag, p, p + size


def check_tags(count: i64) -> None:
    """Refuse more tags than there may be (rule 254)."""
    if count > TAGS_MAX:
        refuse_tags(count)


def skip_tags(f: bytes, p: i64, end: i64, count: i64) -> i64:
    """Return the position after a tag section of which no tag is known (rule 13)."""
    if count > 127:
        count, p = get_varint(f, p, count)
    check_tags(count)
    while count > 0:
        _, _, p = get_tag(f, p, end)
        count -= 1
    return p


def refuse(label: str, length: i64, left: i64) -> None:
    """Raise for a length that does not fit."""
    refuse_length(label, length, left)


def too_many(label: str) -> None:
    """Raise for more array elements than one message may have."""
    refuse_elements(label)


def misfit(label: str, excess: i64) -> None:
    """Raise for a field that does not end where its tag does."""
    refuse_tag(label, excess)


def cut_short() -> None:
    """Raise for bytes that are not there."""
    raise IndexError("index out of range")


def put_i8(w: BytesWriter, value: i64) -> None:
    """Write a signed byte."""
    if value < -128 or value > 127:
        raise OverflowError(MISFIT)
    w.append(u8(value & 255))


def put_u8(w: BytesWriter, value: i64) -> None:
    """Write an unsigned byte."""
    if value < 0 or value > 255:
        raise OverflowError(MISFIT)
    w.append(u8(value))


def put_i16(w: BytesWriter, value: i64) -> None:
    """Write a signed number of two bytes."""
    if value < -32768 or value > 32767:
        raise OverflowError(MISFIT)
    write_i16_be(w, i16(value))


def put_u16(w: BytesWriter, value: i64) -> None:
    """Write an unsigned number of two bytes."""
    if value < 0 or value > 65535:
        raise OverflowError(MISFIT)
    w.append(u8(value >> 8))
    w.append(u8(value & 255))


def put_i32(w: BytesWriter, value: i64) -> None:
    """Write a signed number of four bytes."""
    if value < -2147483648 or value > 2147483647:
        raise OverflowError(MISFIT)
    write_i32_be(w, i32(value))


def put_u32(w: BytesWriter, value: i64) -> None:
    """Write an unsigned number of four bytes."""
    if value < 0 or value > 4294967295:
        raise OverflowError(MISFIT)
    put_u16(w, value >> 16)
    put_u16(w, value & 65535)


def put_varint(w: BytesWriter, value: i64) -> None:
    """Write an unsigned varint."""
    while value > 127:
        w.append(u8(value & 127 | 128))
        value >>= 7
    w.append(u8(value))


def put_tag(tag: i64, value: bytes, w: BytesWriter) -> None:
    """Write one tag with its value."""
    put_varint(w, tag)
    put_varint(w, len(value))
    w.write(value)


def put(value: Any, w: BytesWriter) -> None:
    """Write anything bytes-like."""
    w.write(bytes(value))


def add_records(records: Any, w: BytesWriter, chunks: list[Any]) -> None:
    """Put records behind what was written: copied if small, else as a chunk of their own."""
    size: i64 = len(records)
    if size < JOIN_SIZE_MAX and isinstance(records, bytes | bytearray | memoryview):
        w.write(bytes(records))
    elif size:
        chunks.append(w.getvalue())
        w.truncate(0)
        chunks.append(records)
