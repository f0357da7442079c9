"""Writes decoders: see `lowering` for the method."""

import struct
from collections.abc import Callable, Generator
from typing import Any, Final, NoReturn

from construct import Construct, Struct

from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.lowering import CACHED_COUNT_MAX, SourceWriter, has_records
from kafkalite.wire.primitives import (
    STRING_SIZE_MAX,
    TAGS_MAX,
    ArrayLeaf,
    NullableStruct,
    RecordsLeaf,
    StringLeaf,
    TaggedFields,
    UuidLeaf,
    format_of,
    read_unsigned_varint,
    rest_of_varint,
    size_min,
    uuid_from_bytes,
)
from kafkalite.wire.schema import TAGGED_FIELDS, Structure

Decode = Callable[[Any, int], Any]
DecodeInSteps = Callable[[Any, int], Generator[None, None, Any]]

ELEMENTS_MAX: Final = 2**20
"""Array elements in one message. Without a limit, 100 MiB of empty strings would become gigabytes
of objects; with it, what a request can hold stays within about 300 MiB."""


STEP_ELEMENTS: Final = 512
"""Elements between two steps of a decoder that goes in steps."""


def lower_decode(message: Struct) -> Decode:
    """Return decode(buffer, position) -> message.

    It raises MalformedMessage, struct.error or IndexError on bad input, and ignores bytes after
    the message as Kafka does.
    """
    return _lower(message, in_steps=False)


def lower_decode_in_steps(message: Struct) -> DecodeInSteps:
    """Return the same as a generator, whose value is the message: others' turn is at each step."""
    return _lower(message, in_steps=True)


def _lower(message: Struct, *, in_steps: bool) -> Callable[[Any, int], Any]:
    writer = _DecodeWriter(in_steps=in_steps)
    # Slices of bytes are cheaper than slices of a memoryview; but records must not be copied.
    if has_records(message):
        writer.line(1, "if type(b) is not memoryview: b = memoryview(b)")
    else:
        writer.line(1, "if type(b) is not bytes: b = bytes(b)")
    writer.line(1, "end = len(b)")
    writer.line(1, f"left = {ELEMENTS_MAX}")
    if in_steps:
        writer.line(1, "mark = left")
        writer.line(1, "yield")
    writer.structure(message, 1, "x")
    writer.line(1, "return x")
    return writer.function("decode", "b, p", message.record.__name__)


class _DecodeWriter(SourceWriter):
    """Writes reads from buffer `b` at position `p`, of which `end` is the size."""

    def __init__(self, *, in_steps: bool = False) -> None:
        super().__init__()
        self.in_steps = in_steps
        self.after_run: list[str] = []
        self.namespace.update(
            new=object.__new__,
            rest_of_varint=rest_of_varint,
            refuse=refuse_length,
            too_many=refuse_elements,
            misfit=refuse_tag,
            uuid_from_bytes=uuid_from_bytes,
            skip_tags=_skip_tags,
            read_tag=_read_tag,
        )

    def structure(self, message: Struct, indent: int, target: str) -> None:
        """Read a structure into a new object named `target`."""
        record: type[Structure] = message.record
        self.line(indent, f"{target} = new({self.bind('C', record)})")
        read = {member.name for member in message.subcons if member.name != TAGGED_FIELDS}
        for field in record.FIELDS:
            if field.name not in read:
                default = field.default_value()
                source = "[]" if isinstance(default, list) else self.constant(default)
                self.line(indent, f"{target}.{field.name} = {source}")
        for member in message.subcons:
            if member.name == TAGGED_FIELDS:
                self.tags(member.subcon, record, indent, target)
            else:
                label = f"{record.__name__}.{member.name}"
                self.leaf(member.subcon, indent, f"{target}.{member.name}", label)
        self.flush(indent)

    def constant(self, value: Any) -> str:
        if value is None or isinstance(value, bool | int | str | bytes):
            return repr(value)
        return self.bind("default", value)

    def flush(self, indent: int) -> None:
        """Read the waiting run in one call."""
        run, self.run = self.run, []
        if len(run) == 1 and run[0][0] == "B":
            self.line(indent, f"{run[0][1]} = b[p]; p += 1")
        elif run:
            fixed = struct.Struct(">" + "".join(fmt for fmt, _ in run))
            targets = ", ".join(target for _, target in run)
            unpack = self.bind("unpack", fixed.unpack_from)
            self.line(indent, f"{targets}, = {unpack}(b, p); p += {fixed.size}")
        for text in self.after_run:
            self.line(indent, text)
        self.after_run.clear()

    def leaf(self, leaf: Construct, indent: int, target: str, label: str) -> None:
        """Read one leaf into `target`; a fixed one only joins the run."""
        if isinstance(leaf, UuidLeaf):
            raw = self.name("u")
            self.run.append(("16s", raw))
            self.after_run.append(f"{target} = uuid_from_bytes({raw})")
        elif fmt := format_of(leaf):
            self.run.append((fmt, target))
        elif isinstance(leaf, NullableStruct):
            present = self.name("n")
            self.run.append(("b", present))
            self.flush(indent)
            inner = self.name("x")
            self.line(indent, f"if {present} <= {leaf.null}: {target} = None")
            self.line(indent, "else:")
            self.structure(leaf.struct, indent + 1, inner)
            self.line(indent + 1, f"{target} = {inner}")
        elif isinstance(leaf, Struct):
            self.flush(indent)
            inner = self.name("x")
            self.structure(leaf, indent, inner)
            self.line(indent, f"{target} = {inner}")
        elif isinstance(leaf, ArrayLeaf):
            self.array(leaf, indent, target, label)
        else:
            self.text(leaf, indent, target, label)

    def length(self, leaf: Any, indent: int) -> str:
        """Read a length prefix into a variable, -1 being null; return the variable."""
        count = self.name("n")
        if leaf.compact:
            self.run.append(("B", count))
            self.flush(indent)
            self.line(indent, f"if {count} > 127: {count}, p = rest_of_varint(b, p, {count})")
            self.line(indent, f"{count} -= 1")
        else:
            self.run.append((leaf.plain_prefix.fmtstr[1:], count))
            self.flush(indent)
        return count

    def text(self, leaf: Construct, indent: int, target: str, label: str) -> None:
        """Read a string, bytes or records."""
        count = self.length(leaf, indent)
        refusal = f"refuse({label!r}, {count}, end - p)"
        misfits = "e > end"
        if isinstance(leaf, StringLeaf) and leaf.compact:
            misfits += f" or {count} > {STRING_SIZE_MAX}"
        if leaf.nullable:
            self.line(indent, f"if {count} < 0: {target} = None")
            self.line(indent, "else:")
            indent += 1
            self.line(indent, f"e = p + {count}")
            self.line(indent, f"if {misfits}: {refusal}")
        else:
            self.line(indent, f"e = p + {count}")
            self.line(indent, f"if {count} < 0 or {misfits}: {refusal}")
        if isinstance(leaf, StringLeaf):
            value = "str(b[p:e], 'utf-8', 'replace')"
        else:
            value = "b[p:e]" if isinstance(leaf, RecordsLeaf) else "bytes(b[p:e])"
        self.line(indent, f"{target} = {value}; p = e")

    def array(self, leaf: ArrayLeaf, indent: int, target: str, label: str) -> None:
        """Read an array into a list."""
        count = self.length(leaf, indent)
        size = size_min(leaf.element)
        scaled = count if size == 1 else f"{count} * {size}"
        refusal = f"refuse({label!r}, {count}, end - p)"
        if leaf.nullable:
            self.line(indent, f"if {count} < 0: {target} = None")
            self.line(indent, "else:")
            indent += 1
            self.line(indent, f"if {scaled} > end - p: {refusal}")
        else:
            self.line(indent, f"if {count} < 0 or {scaled} > end - p: {refusal}")
        self.line(indent, f"left -= {count}")
        self.line(indent, f"if left < 0: too_many({label!r})")
        fmt = format_of(leaf.element)
        if len(fmt) == 1:
            unpackers = self.bind("unpackers", _Unpackers(fmt))
            self.line(indent, f"{target} = list({unpackers}[{count}](b, p)); p += {scaled}")
            return
        elements, element = self.name("l"), self.name("x")
        self.line(indent, f"{target} = {elements} = []")
        self.line(indent, f"for _ in range({count}):")
        if isinstance(leaf.element, Struct):
            self.structure(leaf.element, indent + 1, element)
        else:
            self.leaf(leaf.element, indent + 1, element, label)
            self.flush(indent + 1)
        self.line(indent + 1, f"{elements}.append({element})")
        if self.in_steps:
            self.line(indent + 1, f"if left < mark or not len({elements}) & {STEP_ELEMENTS - 1}:")
            self.line(indent + 2, f"mark = left - {STEP_ELEMENTS}; yield")

    def tags(self, tags: TaggedFields, record: type[Structure], indent: int, target: str) -> None:
        """Read the tag section; only a structure that knows tags gets a function for it."""
        count = self.name("n")
        self.run.append(("B", count))
        self.flush(indent)
        if not tags.known:
            self.line(indent, f"if {count}: p = skip_tags(b, p, end, {count})")
            return
        body = _DecodeWriter()
        body.line(1, "if n > 127: n, p = rest_of_varint(b, p, n)")
        body.line(1, "if n > tags_max: too_many_tags(n)")
        body.namespace.update(tags_max=TAGS_MAX, too_many_tags=refuse_tags)
        body.line(1, f"left = {ELEMENTS_MAX}")
        body.line(1, "for _ in range(n):")
        body.line(2, "tag, p, tag_end = read_tag(b, p, end)")
        word = "if"
        for tag, member in tags.known.items():
            label = f"{record.__name__}.{member.name}"
            body.line(2, f"{word} tag == {tag}:")
            body.leaf(member.subcon, 3, f"x.{member.name}", label)
            body.flush(3)
            body.line(3, f"if p != tag_end: misfit({label!r}, p - tag_end)")
            word = "elif"
        body.line(2, "else: p = tag_end")
        body.line(1, "return p")
        name = self.name("tags")
        self.nested(name, "x, b, p, end, n", body)
        self.line(indent, f"if {count}: p = {name}({target}, b, p, end, {count})")


def refuse_length(label: str, length: int, left: int) -> NoReturn:
    """Raise for a length that does not fit what is left, or its kind."""
    if length < 0:
        raise MalformedMessage(f"{label}: null where none is allowed")
    if length <= left:
        raise MalformedMessage(
            f"{label}: a string of {length} bytes; {STRING_SIZE_MAX} are allowed"
        )
    raise MalformedMessage(f"{label}: length {length} does not fit the {left} bytes left")


def refuse_elements(label: str) -> NoReturn:
    """Raise for too many array elements."""
    raise MalformedMessage(f"{label}: more than {ELEMENTS_MAX} array elements in one message")


def refuse_tag(label: str, excess: int) -> NoReturn:
    """Raise for a tagged field that does not end where its tag does."""
    raise MalformedMessage(f"{label}: ends {excess:+} bytes from the end of its tag")


def refuse_tags(count: int) -> NoReturn:
    """Raise for too many tags (rule 254)."""
    raise MalformedMessage(f"a section of {count} tags; {TAGS_MAX} are allowed")


def _read_tag(buffer: Any, position: int, end: int) -> tuple[int, int, int]:
    """Return (tag, first byte of its value, end of its value)."""
    tag, position = read_unsigned_varint(buffer, position)
    size, position = read_unsigned_varint(buffer, position)
    if size > end - position:
        refuse_length(f"tag {tag}", size, end - position)
    return tag, position, position + size


def _skip_tags(buffer: Any, position: int, end: int, count: int) -> int:
    """Return the position after a tag section of which no tag is known (rule 13)."""
    if count > 127:
        count, position = rest_of_varint(buffer, position, count)
    if count > TAGS_MAX:
        refuse_tags(count)
    for _ in range(count):
        _, _, position = _read_tag(buffer, position, end)
    return position


class _Unpackers(dict[int, Callable[..., tuple[Any, ...]]]):
    """`unpack_from` for n numbers of one format, made when first needed."""

    def __init__(self, fmt: str) -> None:
        super().__init__()
        self.fmt = fmt

    def __missing__(self, count: int) -> Callable[..., tuple[Any, ...]]:
        unpack = struct.Struct(f">{count}{self.fmt}").unpack_from
        if count <= CACHED_COUNT_MAX:
            self[count] = unpack
        return unpack
