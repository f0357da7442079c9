"""Writes encoders: see `lowering` for the method."""

import struct
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from typing import Any, Final

from construct import Construct, Struct

from kafkalite.wire.lowering import CACHED_COUNT_MAX, Chunk, SourceWriter, has_records
from kafkalite.wire.primitives import (
    ArrayLeaf,
    NullableStruct,
    RecordsLeaf,
    StringLeaf,
    TaggedFields,
    UuidLeaf,
    format_of,
    unsigned_varint,
)
from kafkalite.wire.schema import TAGGED_FIELDS, Structure, default_of

Encode = Callable[[Any], list[Chunk]]
EncodeInSteps = Callable[[Any], Generator[None, None, list[Chunk]]]

JOIN_SIZE_MAX: Final = 16 * 1024
"""Records below this are copied into their neighbours: one chunk less costs more than 16 KiB."""

_NULL_STRUCT: Final = {-1: b"\xff", 0: b"\0"}
_VARINTS: Final = [unsigned_varint(value) for value in range(128)]


STEP_ELEMENTS: Final = 512
"""Elements between two steps of an encoder that goes in steps."""


def lower_encode(message: Struct) -> Encode:
    """Return encode(message) -> chunks, in which only big or foreign records stand alone."""
    return _lower(message, in_steps=False)


def lower_encode_in_steps(message: Struct) -> EncodeInSteps:
    """Return the same as a generator, whose value are the chunks: others' turn is at each step."""
    return _lower(message, in_steps=True)


def _lower(message: Struct, *, in_steps: bool) -> Callable[[Any], Any]:
    writer = _EncodeWriter(in_steps=in_steps)
    separate = has_records(message)
    writer.line(1, "out = []")
    writer.line(1, "w = out.append")
    if in_steps:
        writer.line(1, "step = 0")
        writer.line(1, "yield")
    if separate:
        writer.line(1, "chunks = []")
    writer.structure(message, 1, "x")
    writer.flush(1)
    if separate:
        writer.line(1, "if out: chunks.append(join(out))")
        writer.line(1, "return chunks")
    else:
        writer.line(1, "return [join(out)]")
    return writer.function("encode", "x", message.record.__name__)


class _Packers(dict[int, Callable[..., bytes]]):
    """Encoders of an array of n numbers of one format with its count in front."""

    def __init__(self, fmt: str, *, compact: bool) -> None:
        super().__init__()
        self.fmt = fmt
        self.compact = compact

    def __missing__(self, count: int) -> Callable[..., bytes]:
        prefix = unsigned_varint(count + 1) if self.compact else struct.pack(">i", count)
        fixed = struct.Struct(f">{len(prefix)}s{count}{self.fmt}")
        pack = partial(fixed.pack, prefix)
        if count <= CACHED_COUNT_MAX:
            self[count] = pack
        return pack


class _EncodeWriter(SourceWriter):
    """Writes appends, by `w`, to the list `out` of byte strings."""

    def __init__(self, *, in_steps: bool = False) -> None:
        super().__init__()
        self.in_steps = in_steps
        self.namespace.update(
            join=b"".join,
            varint=unsigned_varint,
            varints=_VARINTS,
            add_records=_add_records,
            tag_section=_tag_section,
        )

    def structure(self, message: Struct, indent: int, source: str) -> None:
        """Write a structure; what is fixed at its end is left in the run."""
        for member in message.subcons:
            if member.name == TAGGED_FIELDS:
                self.tags(member.subcon, message.record, indent, source)
            else:
                self.leaf(member.subcon, indent, f"{source}.{member.name}")

    def packed(self, run: Sequence[tuple[str, str]]) -> str:
        """Return the source of the bytes of a run; "x" in a format is a zero byte."""
        fixed = struct.Struct(">" + "".join(fmt for fmt, _ in run))
        values = ", ".join(value for fmt, value in run if fmt != "x")
        if not values:
            return repr(bytes(fixed.size))
        return f"{self.bind('pack', fixed.pack)}({values})"

    def flush(self, indent: int) -> None:
        """Write the waiting run."""
        run, self.run = self.run, []
        if run:
            self.line(indent, f"w({self.packed(run)})")

    def leaf(self, leaf: Construct, indent: int, source: str) -> None:
        """Write one leaf; a fixed one only joins the run."""
        if isinstance(leaf, UuidLeaf):
            self.run.append(("16s", f"{source}.bytes"))
        elif fmt := format_of(leaf):
            self.run.append((fmt, source))
        elif isinstance(leaf, NullableStruct):
            self.flush(indent)
            inner = self.name("x")
            self.line(indent, f"{inner} = {source}")
            self.line(indent, f"if {inner} is None: w({_NULL_STRUCT[leaf.null]!r})")
            self.line(indent, "else:")
            self.run.append(("b", "1"))
            self.structure(leaf.struct, indent + 1, inner)
            self.flush(indent + 1)
        elif isinstance(leaf, Struct):
            inner = self.name("x")
            self.line(indent, f"{inner} = {source}")
            self.structure(leaf, indent, inner)
        elif isinstance(leaf, ArrayLeaf):
            self.array(leaf, indent, source)
        else:
            self.text(leaf, indent, source)

    def length(self, leaf: Any, indent: int, count: str) -> None:
        """Write the run with the length prefix behind it."""
        if not leaf.compact:
            self.run.append((leaf.plain_prefix.fmtstr[1:], count))
            self.flush(indent)
            return
        run, self.run = self.run, []
        if not run:
            self.line(indent, f"w(varints[{count}] if {count} < 128 else varint({count}))")
            return
        self.line(indent, f"if {count} < 128: w({self.packed([*run, ('B', count)])})")
        self.line(indent, f"else: w({self.packed(run)}); w(varint({count}))")

    def text(self, leaf: Any, indent: int, source: str) -> None:
        """Write a string, bytes or records."""
        value, count = self.name("v"), self.name("n")
        self.line(indent, f"{value} = {source}")
        body = indent
        if leaf.nullable:
            self.line(indent, f"if {value} is None: {count} = {0 if leaf.compact else -1}")
            self.line(indent, "else:")
            body += 1
        if isinstance(leaf, StringLeaf):
            self.line(body, f"{value} = {value}.encode()")
        self.line(body, f"{count} = len({value}){' + 1' if leaf.compact else ''}")
        self.length(leaf, indent, count)
        if isinstance(leaf, RecordsLeaf):
            self.line(indent, f"if {value} is not None: add_records({value}, out, chunks)")
        elif leaf.nullable:
            self.line(indent, f"if {value}: w({value})")
        else:
            self.line(indent, f"w({value})")

    def array(self, leaf: ArrayLeaf, indent: int, source: str) -> None:
        """Write an array."""
        fmt = format_of(leaf.element)
        if len(fmt) == 1:
            self.numbers(leaf, fmt, indent, source)
            return
        elements, count, element = self.name("l"), self.name("n"), self.name("x")
        self.line(indent, f"{elements} = {source}")
        length = f"len({elements}){' + 1' if leaf.compact else ''}"
        if leaf.nullable:
            self.line(
                indent, f"if {elements} is None: {elements}, {count} = (), {leaf.compact - 1}"
            )
            self.line(indent, f"else: {count} = {length}")
        else:
            self.line(indent, f"{count} = {length}")
        self.length(leaf, indent, count)
        self.line(indent, f"for {element} in {elements}:")
        if isinstance(leaf.element, Struct):
            self.structure(leaf.element, indent + 1, element)
        else:
            self.leaf(leaf.element, indent + 1, element)
        self.flush(indent + 1)
        if self.in_steps:
            self.line(indent + 1, "step += 1")
            self.line(indent + 1, f"if not step & {STEP_ELEMENTS - 1}: yield")

    def numbers(self, leaf: ArrayLeaf, fmt: str, indent: int, source: str) -> None:
        """Write an array of numbers and its count in one call."""
        self.flush(indent)
        numbers = self.name("v")
        packers = self.bind("packers", _Packers(fmt, compact=leaf.compact))
        self.line(indent, f"{numbers} = {source}")
        written = f"w({packers}[len({numbers})](*{numbers}))"
        if leaf.nullable:
            null = b"\0" if leaf.compact else b"\xff\xff\xff\xff"
            self.line(indent, f"if {numbers} is None: w({null!r})")
            self.line(indent, f"else: {written}")
        else:
            self.line(indent, written)

    def tags(self, tags: TaggedFields, record: type[Structure], indent: int, source: str) -> None:
        """Write the tag section: one zero byte where every tagged field has its default."""
        if not tags.known:
            self.run.append(("x", ""))
            return
        body, conditions = _EncodeWriter(), []
        body.line(1, "found = []")
        for tag, member in tags.known.items():
            assert not has_records(member.subcon), "records in a tag could not stand alone"
            encode = body.name("encode")
            value = _EncodeWriter()
            value.line(1, "out = []; w = out.append")
            value.leaf(member.subcon, 1, f"x.{member.name}")
            value.flush(1)
            value.line(1, "return join(out)")
            body.nested(encode, "x", value)
            default = default_of(record, member.name)
            body.line(1, f"if {body.differs('x', member.name, default)}:")
            body.line(2, f"found.append(({tag}, {encode}(x)))")
            conditions.append(self.differs(source, member.name, default))
        body.line(1, "return tag_section(found)")
        name = self.name("tags")
        self.nested(name, "x", body)
        run, self.run = self.run, []
        self.line(indent, f"if {' or '.join(conditions)}:")
        if run:
            self.line(indent + 1, f"w({self.packed(run)})")
        self.line(indent + 1, f"w({name}({source}))")
        self.line(indent, f"else: w({self.packed([*run, ('x', '')])})")

    def differs(self, source: str, name: str, default: Any) -> str:
        """Return the source of "this tagged field is not at its default"."""
        return differs_source(f"{source}.{name}", default, lambda: self.bind("default", default))


def differs_source(value: str, default: Any, bind: Callable[[], str]) -> str:
    """Return the source of "this value is not the default"; `bind` names one without a literal."""
    if default is None:
        return f"{value} is not None"
    if isinstance(default, list):
        return f"{value} != []"  # null, where it is allowed, is not the default
    if isinstance(default, bool | int | str | bytes):
        return f"{value} != {default!r}"
    bound = bind()
    return f"({value} is not {bound} and {value} != {bound})"


def _tag_section(found: Iterable[tuple[int, bytes]]) -> bytes:
    values = list(found)
    parts = [unsigned_varint(len(values))]
    for tag, value in values:
        parts += (unsigned_varint(tag), unsigned_varint(len(value)), value)
    return b"".join(parts)


def _add_records(records: Chunk, out: list[Any], chunks: list[Chunk]) -> None:
    """Put records behind what was written: copied if small, else as a chunk of their own."""
    size = len(records)
    if size < JOIN_SIZE_MAX and isinstance(records, bytes | bytearray | memoryview):
        out.append(records)
    elif size:
        chunks.append(b"".join(out))
        out.clear()
        chunks.append(records)
