"""Writes modules of decoders and encoders for mypyc to make machine code of (decision 0172).

They do the same as the functions that `decoding` and `encoding` make at run time, and take their
place in the compiled build. What differs are the types: integers are machine words, and librt reads
and writes them without a Python object for each.

    python -m kafkalite.wire.native FOLDER MESSAGES...
"""

import importlib
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from construct import Construct, Struct

from kafkalite.wire.api import Api
from kafkalite.wire.codec import Codec
from kafkalite.wire.decoding import ELEMENTS_MAX
from kafkalite.wire.encoding import differs_source
from kafkalite.wire.lowering import Lines, has_records
from kafkalite.wire.primitives import (
    STRING_SIZE_MAX,
    ArrayLeaf,
    NullableStruct,
    RecordsLeaf,
    StringLeaf,
    TaggedFields,
    UuidLeaf,
    format_of,
    size_min,
)
from kafkalite.wire.schema import TAGGED_FIELDS, Structure, default_of

SUPPORT: Final = [
    "add_records", "check_tags", "cut_short", "get_i8", "get_tag", "get_u16", "get_u32",
    "get_varint", "large", "misfit", "put", "put_i8", "put_i16", "put_i32", "put_tag", "put_u8",
    "put_u16", "put_u32", "put_varint", "refuse", "skip_tags", "too_many",
]  # fmt: skip
"""Functions of `native_support`."""

WHOLE_FRAME_MAX: Final = 64 * 1024
"""A frame with records is copied up to here: that is cheaper than to look at single bytes of it."""

HEAD: Final = '''"""Written by kafkalite.wire.native; do not edit."""

from typing import Any

from librt.strings import BytesWriter, read_f64_be, read_i16_be, read_i32_be, read_i64_be
from librt.strings import write_f64_be, write_i64_be
from mypy_extensions import i64, u8

from kafkalite.wire.native_support import (
{support}
)
from kafkalite.wire.primitives import uuid_from_bytes
from kafkalite.wire.schema import default_of
from {module} import (
{names}
)

new: Any = object.__new__
'''
READ: Final = {
    "b": ("get_i8(f, p)", 1),
    "B": ("f[p]", 1),
    "?": ("f[p] != 0", 1),
    "h": ("read_i16_be(f, p)", 2),
    "H": ("get_u16(f, p)", 2),
    "l": ("read_i32_be(f, p)", 4),
    "L": ("get_u32(f, p)", 4),
    "q": ("read_i64_be(f, p)", 8),
    "d": ("read_f64_be(f, p)", 8),
}
"""What reads a field of each format at `p`, and its size."""
WRITE: Final = {
    "b": "put_i8(w, {})",
    "B": "put_u8(w, {})",
    "?": "w.append(1 if {} else 0)",
    "h": "put_i16(w, {})",
    "H": "put_u16(w, {})",
    "l": "put_i32(w, {})",
    "L": "put_u32(w, {})",
    "q": "write_i64_be(w, {})",
    "d": "write_f64_be(w, {})",
}


class _Function(Lines):
    """The text of one function; those that it calls go into the module."""

    def __init__(self, module: "_Module") -> None:
        super().__init__()
        self.module = module

    def function(self, prefix: str, parameters: str) -> str:
        """Put the function into the module; return its name."""
        return self.module.function(prefix, parameters, self.lines)


class _Module:
    """One module: functions with the same text are there once."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.functions: dict[tuple[str, ...], str] = {}
        self.constants: dict[str, str] = {}

    def function(self, prefix: str, parameters: str, lines: list[str], first: str = "") -> str:
        """Return the name of a function with these lines, and `first` if it is not there yet."""
        key = (prefix, parameters, *lines)
        name = self.functions.get(key)
        if name is None:
            name = self.functions[key] = f"{prefix}_{len(self.functions)}"
            self.text += ["", "", f"def {name}({parameters}:", *filter(None, [first]), *lines]
        return name

    def constant(self, record: type[Structure], field: str) -> str:
        """Return the name of a default that is no literal."""
        source = f"default_of({record.__name__}, {field!r})"
        return self.constants.setdefault(source, f"default_{len(self.constants)}")


class _Decoder(_Function):
    """Reads from bytes `f` at `p`, of which `end` is the size; records are slices of `m`."""

    def structure(self, message: Struct, indent: int, target: str) -> None:
        record: type[Structure] = message.record
        self.line(indent, f"{target}: Any = new({record.__name__})")
        read = {member.name for member in message.subcons if member.name != TAGGED_FIELDS}
        for field in record.FIELDS:
            if field.name not in read:
                default = field.default_value()
                if isinstance(default, list):
                    source = "[]"
                elif default is None or isinstance(default, bool | int | str | bytes):
                    source = repr(default)
                else:
                    source = self.module.constant(record, field.name)
                self.line(indent, f"{target}.{field.name} = {source}")
        for member in message.subcons:
            if member.name == TAGGED_FIELDS:
                self.tags(member.subcon, record, indent, target)
            else:
                label = f"{record.__name__}.{member.name}"
                self.leaf(member.subcon, indent, f"{target}.{member.name}", label)

    def leaf(self, leaf: Construct, indent: int, target: str, label: str) -> None:
        if isinstance(leaf, UuidLeaf):
            self.line(indent, "if p + 16 > end: cut_short()")
            self.line(indent, f"{target} = uuid_from_bytes(f[p:p + 16]); p += 16")
        elif fmt := format_of(leaf):
            source, size = READ[fmt]
            self.line(indent, f"{target} = {source}; p += {size}")
        elif isinstance(leaf, NullableStruct):
            inner = self.name("x")
            present = self.name("n")
            self.line(indent, f"{present}: i64 = get_i8(f, p); p += 1")
            self.line(indent, f"if {present} <= {leaf.null}: {target} = None")
            self.line(indent, "else:")
            self.structure(leaf.struct, indent + 1, inner)
            self.line(indent + 1, f"{target} = {inner}")
        elif isinstance(leaf, Struct):
            inner = self.name("x")
            self.structure(leaf, indent, inner)
            self.line(indent, f"{target} = {inner}")
        elif isinstance(leaf, ArrayLeaf):
            self.array(leaf, indent, target, label)
        else:
            self.text(leaf, indent, target, label)

    def length(self, leaf: Any, indent: int) -> str:
        count = self.name("n")
        if leaf.compact:
            self.line(indent, f"{count}: i64 = f[p]; p += 1")
            self.line(indent, f"if {count} > 127: {count}, p = get_varint(f, p, {count})")
            self.line(indent, f"{count} -= 1")
        else:
            source, size = READ[leaf.plain_prefix.fmtstr[1:]]
            self.line(indent, f"{count}: i64 = i64({source}); p += {size}")
        return count

    def nulls(self, leaf: Any, indent: int, count: str, target: str, misfits: str, say: str) -> int:
        """Write what a null and a length that does not fit come to; return the indentation."""
        if leaf.nullable:
            self.line(indent, f"if {count} < 0: {target} = None")
            self.line(indent, "else:")
            self.line(indent + 1, f"if {misfits}: {say}")
            return indent + 1
        self.line(indent, f"if {count} < 0 or {misfits}: {say}")
        return indent

    def text(self, leaf: Construct, indent: int, target: str, label: str) -> None:
        count = self.length(leaf, indent)
        misfits = f"{count} > end - p"
        if isinstance(leaf, StringLeaf) and leaf.compact:
            misfits += f" or {count} > {STRING_SIZE_MAX}"
        refusal = f"refuse({label!r}, {count}, end - p)"
        indent = self.nulls(leaf, indent, count, target, misfits, refusal)
        if isinstance(leaf, StringLeaf):
            value = f"f[p:p + {count}].decode('utf-8', 'replace')"
        else:
            value = f"{'m' if isinstance(leaf, RecordsLeaf) else 'f'}[p:p + {count}]"
        self.line(indent, f"{target} = {value}; p += {count}")

    def array(self, leaf: ArrayLeaf, indent: int, target: str, label: str) -> None:
        count = self.length(leaf, indent)
        misfits = f"{count} * {size_min(leaf.element)} > end - p"
        refusal = f"refuse({label!r}, {count}, end - p)"
        indent = self.nulls(leaf, indent, count, target, misfits, refusal)
        self.line(indent, f"left -= {count}")
        self.line(indent, f"if left < 0: too_many({label!r})")
        elements, element, index = self.name("l"), self.name("x"), self.name("i")
        self.line(indent, f"{elements}: list[Any] = []")
        self.line(indent, f"{target} = {elements}")
        self.line(indent, f"{index}: i64 = 0")
        self.line(indent, f"while {index} < {count}:")
        self.line(indent + 1, f"{index} += 1")
        if isinstance(leaf.element, Struct):
            self.structure(leaf.element, indent + 1, element)
        else:
            self.line(indent + 1, f"{element}: Any")
            self.leaf(leaf.element, indent + 1, element, label)
        self.line(indent + 1, f"{elements}.append({element})")

    def tags(self, tags: TaggedFields, record: type[Structure], indent: int, target: str) -> None:
        count = self.name("n")
        self.line(indent, f"{count}: i64 = f[p]; p += 1")
        if not tags.known:
            self.line(indent, f"if {count}: p = skip_tags(f, p, end, {count})")
            return
        body = _Decoder(self.module)
        body.line(1, f"left: i64 = {ELEMENTS_MAX}")
        body.line(1, "if n > 127: n, p = get_varint(f, p, n)")
        body.line(1, "check_tags(n)")
        body.line(1, "while n > 0:")
        body.line(2, "n -= 1")
        body.line(2, "tag, p, tag_end = get_tag(f, p, end)")
        word = "if"
        for tag, member in tags.known.items():
            label = f"{record.__name__}.{member.name}"
            body.line(2, f"{word} tag == {tag}:")
            body.leaf(member.subcon, 3, f"x.{member.name}", label)
            body.line(3, f"if p != tag_end: misfit({label!r}, p - tag_end)")
            word = "elif"
        body.line(2, "else: p = tag_end")
        body.line(1, "return p")
        name = body.function("tags", "x: Any, f: bytes, m: Any, p: i64, end: i64, n: i64) -> i64")
        self.line(indent, f"if {count}: p = {name}({target}, f, m, p, end, {count})")


class _Encoder(_Function):
    """Writes to `w`; records that stand alone go to `chunks`."""

    def structure(self, message: Struct, indent: int, source: str) -> None:
        for member in message.subcons:
            if member.name == TAGGED_FIELDS:
                self.tags(member.subcon, message.record, indent, source)
            else:
                self.leaf(member.subcon, indent, f"{source}.{member.name}")

    def leaf(self, leaf: Construct, indent: int, source: str) -> None:
        if isinstance(leaf, UuidLeaf):
            self.line(indent, f"w.write({source}.bytes)")
        elif fmt := format_of(leaf):
            self.line(indent, WRITE[fmt].format(source))
        elif isinstance(leaf, NullableStruct):
            inner = self.name("x")
            self.line(indent, f"{inner}: Any = {source}")
            self.line(indent, f"if {inner} is None: put_i8(w, {leaf.null})")
            self.line(indent, "else:")
            self.line(indent + 1, "w.append(1)")
            self.structure(leaf.struct, indent + 1, inner)
        elif isinstance(leaf, Struct):
            inner = self.name("x")
            self.line(indent, f"{inner}: Any = {source}")
            self.structure(leaf, indent, inner)
        elif isinstance(leaf, ArrayLeaf):
            self.array(leaf, indent, source)
        else:
            self.text(leaf, indent, source)

    def length(self, leaf: Any, indent: int, count: str) -> None:
        if leaf.compact:
            self.line(indent, f"put_varint(w, {count} + 1)")
        else:
            self.line(indent, WRITE[leaf.plain_prefix.fmtstr[1:]].format(count))

    def text(self, leaf: Any, indent: int, source: str) -> None:
        value, count = self.name("v"), self.name("n")
        self.line(indent, f"{value}: Any = {source}")
        if leaf.nullable:
            self.line(indent, f"if {value} is None:")
            self.length(leaf, indent + 1, "-1")
            self.line(indent, "else:")
            indent += 1
        if isinstance(leaf, StringLeaf):
            text, data = self.name("t"), self.name("d")
            self.line(indent, f"{text}: str = {value}")
            self.line(indent, f"{data}: bytes = {text}.encode()")
            self.line(indent, f"{count}: i64 = len({data})")
            self.length(leaf, indent, count)
            self.line(indent, f"w.write({data})")
            return
        self.line(indent, f"{count}: i64 = len({value})")
        self.length(leaf, indent, count)
        written = "add_records({}, w, chunks)" if isinstance(leaf, RecordsLeaf) else "put({}, w)"
        self.line(indent, written.format(value))

    def array(self, leaf: ArrayLeaf, indent: int, source: str) -> None:
        elements, count, element = self.name("l"), self.name("n"), self.name("x")
        self.line(indent, f"{elements}: Any = {source}")
        if leaf.nullable:
            self.line(indent, f"if {elements} is None:")
            self.length(leaf, indent + 1, "-1")
            self.line(indent, "else:")
            indent += 1
        self.line(indent, f"{count}: i64 = len({elements})")
        self.length(leaf, indent, count)
        self.line(indent, f"{element}: Any")
        self.line(indent, f"for {element} in {elements}:")
        if isinstance(leaf.element, Struct):
            if leaf.element.subcons:
                self.structure(leaf.element, indent + 1, element)
            else:
                self.line(indent + 1, "pass")
        else:
            self.leaf(leaf.element, indent + 1, element)

    def tags(self, tags: TaggedFields, record: type[Structure], indent: int, source: str) -> None:
        if not tags.known:
            self.line(indent, "w.append(0)")
            return
        found, conditions = self.name("n"), []
        for member in tags.known.values():
            default = default_of(record, member.name)
            bind = partial(self.module.constant, record, member.name)
            conditions.append(differs_source(f"{source}.{member.name}", default, bind))
        self.line(indent, f"{found}: i64 = 0")
        for condition in conditions:
            self.line(indent, f"if {condition}: {found} += 1")
        self.line(indent, f"put_varint(w, {found})")
        self.line(indent, f"if {found}:")
        for (tag, member), condition in zip(tags.known.items(), conditions, strict=True):
            value = _Encoder(self.module)
            value.line(1, "w = BytesWriter()")
            value.leaf(member.subcon, 1, f"x.{member.name}")
            value.line(1, "return w.getvalue()")
            name = value.function("tag", "x: Any) -> bytes")
            self.line(indent + 1, f"if {condition}: put_tag({tag}, {name}({source}), w)")


def _decoder(module: _Module, codec: Codec[Any], source: str, version: int) -> str:
    writer = _Decoder(module)
    message = codec.at(version)
    first = ""
    if has_records(message):
        first = f"    if len(b) > {WHOLE_FRAME_MAX}: return large({source}, {version})(b, p)"
        writer.line(1, "m: Any = b if type(b) is memoryview else memoryview(b)")
    else:
        writer.line(1, "m: Any = None")
    writer.line(1, "f: bytes = bytes(b)")
    writer.line(1, "end: i64 = len(f)")
    writer.line(1, f"left: i64 = {ELEMENTS_MAX}")
    writer.structure(message, 1, "x")
    writer.line(1, "return x")
    return module.function("decode", "b: Any, p: i64) -> Any", writer.lines, first)


def _encoder(module: _Module, message: Struct) -> str:
    writer = _Encoder(module)
    writer.line(1, "w = BytesWriter()")
    writer.line(1, "chunks: list[Any] = []")
    writer.structure(message, 1, "x")
    writer.line(1, "if len(w): chunks.append(w.getvalue())")
    writer.line(1, "return chunks")
    return writer.function("encode", "x: Any) -> list[Any]")


def codecs_of(module: ModuleType) -> dict[str, Codec[Any]]:
    """Return the codecs that a module of messages declares, by how its source names them."""
    found: dict[str, Codec[Any]] = {}
    for name, value in vars(module).items():
        if isinstance(value, Api):
            found[f"{name}.request"] = value.request
            found[f"{name}.response"] = value.response
        elif isinstance(value, Codec):
            found[name] = value
    return found


def source_of(module: ModuleType) -> str:
    """Return the text of the module with decoders and encoders of another's messages."""
    made = _Module()
    tables: dict[str, list[str]] = {"DECODERS": [], "ENCODERS": []}
    for source, codec in codecs_of(module).items():
        first, last = codec.versions
        for version in range(first, last + 1):
            key = f"    ({codec.record.__name__!r}, {version}): "
            tables["DECODERS"].append(f"{key}{_decoder(made, codec, source, version)},")
            tables["ENCODERS"].append(f"{key}{_encoder(made, codec.at(version))},")
    names = [
        name
        for name, value in vars(module).items()
        if isinstance(value, Api | Codec)
        or (isinstance(value, type) and issubclass(value, Structure) and value is not Structure)
    ]
    parts = [
        HEAD.format(
            module=module.__name__,
            names="\n".join(f"    {name}," for name in names),
            support="\n".join(f"    {name}," for name in SUPPORT),
        )
    ]
    parts += [f"{name}: Any = {source}" for source, name in made.constants.items()]
    parts += made.text
    for name, entries in tables.items():
        parts += ["", f"{name}: dict[tuple[str, int], Any] = {{", *entries, "}"]
    return "\n".join(parts) + "\n"


def main(folder: Path, names: list[str]) -> None:
    """Write a package of modules, one for each module of messages."""
    folder.mkdir()
    (folder / "__init__.py").write_text('"""Written by kafkalite.wire.native."""\n')
    for name in names:
        module = importlib.import_module(f"kafkalite.wire.messages.{name}")
        (folder / f"{name}.py").write_text(source_of(module))


if __name__ == "__main__":  # pragma: no cover - what it calls is tested
    main(Path(sys.argv[1]), sys.argv[2:])
