"""Protobuf: .proto text to descriptors, whether one message type reads another's, values as JSON.

Text is compiled by protoc, a module of grpcio-tools; values are read by Google's own library.
Both are in the extra `registry`, and imported by the first schema of this type.
"""

import ast
import base64
import binascii
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Final

from kafkalite.registry.errors import invalid_schema

MISSING: Final = "Protobuf needs libraries: pip install 'kafkalite[registry]'"
WELL_KNOWN: Final = "google/protobuf/"

_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]{8,}")
_NAME = re.compile(r"[\w./-]{1,255}")

_KINDS: Final = (
    {"int32", "int64", "uint32", "uint64", "bool", "enum"},
    {"sint32", "sint64"},
    {"string", "bytes"},
    {"fixed32", "sfixed32"},
    {"fixed64", "sfixed64"},
)
"""Types that have the same bytes on the wire, and may take each other's place."""

Texts = tuple[tuple[str, str], ...]
"""(name, text) of the files that one may import, each after those that it imports itself."""


def check(text: str, references: Texts) -> None:
    """Refuse what is no .proto file, nor the descriptor of one in base64.

    Raises:
        RegistryError: INVALID_SCHEMA.
    """
    file = descriptors(text, references)[-1]
    if _serialized(text) is not None:
        _pool(text, references)  # protoc has not seen it
    if not file.message_type and not file.enum_type:
        raise invalid_schema("no message is defined")


@lru_cache(maxsize=256)
def descriptors(text: str, references: Texts) -> Sequence[Any]:
    """Return file descriptors, each after those that it imports; the last one is `text`'s own.

    Raises:
        RegistryError: INVALID_SCHEMA.
    """
    try:
        from google.protobuf import descriptor_pb2
    except ImportError:
        raise invalid_schema(MISSING) from None
    serialized = _serialized(text)
    if serialized is not None:
        files = [descriptor_pb2.FileDescriptorProto.FromString(serialized)]
        for name, other in reversed(references):
            inner = _serialized(other)
            if inner is None:
                files = [*descriptors(other, _before(references, name)), *files]
                continue
            found = descriptor_pb2.FileDescriptorProto.FromString(inner)
            found.name = name
            files.insert(0, found)
        return _unique([*_well_known(files), *files])
    main = "schema.proto"
    while any(name == main for name, _ in references):
        main = f"_{main}"
    with tempfile.TemporaryDirectory(prefix="kafkalite-proto-") as folder:
        for name, content in (*references, (main, text)):
            path = Path(folder, _safe(name))
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
            except OSError:  # the name is that of a folder of another one
                raise invalid_schema(f"{name!r} is no name of a file beside others") from None
        made = _compiled(folder, main)
    return [descriptor_pb2.FileDescriptorProto.FromString(each) for each in made]


def _compiled(folder: str, main: str) -> list[bytes]:
    """Return the serialized descriptors of a file and of those that it imports, before it."""
    try:
        import grpc_tools
        from grpc_tools import _protoc_compiler as protoc
    except ImportError:
        raise invalid_schema(MISSING) from None
    own = Path(grpc_tools.__file__).with_name("_proto")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as an import that is not used
        try:
            made = protoc.get_protos(main.encode(), [folder.encode(), bytes(own)])
        except protoc.ProtocErrors as error:
            raise invalid_schema(_complaint(error)) from None
    return [_serialized_in(code) for _, code in made]


def _serialized_in(code: bytes) -> bytes:
    """Return the descriptor that generated Python code hands to Google's library."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(func=ast.Attribute(attr="AddSerializedFile"), args=[ast.Constant(value)]):
                assert isinstance(value, bytes)
                return value
    raise AssertionError("protoc's code has no descriptor")


def _before(references: Texts, name: str) -> Texts:
    names = [each for each, _ in references]
    return references[: names.index(name)]


def _unique(files: Sequence[Any]) -> Sequence[Any]:
    return [*{file.name: file for file in files}.values()]


def _well_known(files: Sequence[Any]) -> Iterator[Any]:
    """Yield Google's own files that are imported."""
    wanted = sorted({
        name for file in files for name in file.dependency if name.startswith(WELL_KNOWN)
    })  # fmt: skip
    if wanted:
        imports = "".join(f'import "{name}";\n' for name in wanted)
        yield from descriptors(f'syntax = "proto3";\n{imports}message Nothing {{}}\n', ())[:-1]


def _serialized(text: str) -> bytes | None:
    """Return the descriptor that a text is in base64, as some serializers send it."""
    if not _BASE64.fullmatch(text):
        return None
    from google.protobuf import descriptor_pb2
    from google.protobuf.message import DecodeError

    try:
        data = base64.b64decode(text, validate=False)
        file = descriptor_pb2.FileDescriptorProto.FromString(data)
    except (binascii.Error, ValueError, DecodeError):
        return None
    return data if file.message_type or file.enum_type or file.dependency else None


def _safe(name: str) -> str:
    """Return the name of an imported file, which must be one.

    Raises:
        RegistryError: INVALID_SCHEMA.
    """
    path = PurePosixPath(name)
    if not _NAME.fullmatch(name) or path.is_absolute() or ".." in path.parts:
        raise invalid_schema(f"{name!r} is no name of a file to import")
    return name


def _complaint(error: Exception) -> str:
    """Return the first of protoc's complaints that tells a place, else the first."""
    found = re.findall(r"^(\S+?):(-?\d+):(-?\d+) error: (.*)$", str(error), re.MULTILINE)
    for _, line, column, message in found:
        if int(line) >= 0:
            return f"{message} (line {int(line) + 1}, column {int(column) + 1})"
    return found[0][3] if found else str(error)


def serialized(text: str, references: Texts) -> str:
    """Return a schema's file descriptor in base64: the registry's `format=serialized`."""
    file = descriptors(text, references)[-1]
    return base64.b64encode(file.SerializeToString()).decode()


# --- Compatibility -------------------------------------------------------------------------------


def incompatibilities(reader: Sequence[Any], writer: Sequence[Any]) -> list[str]:
    """Return why the `reader`'s files misread what is written by the `writer`'s; empty if not.

    By the rules of the wire format, as Confluent's registry has them: what goes by number on the
    wire keeps its meaning, and a required field is neither added nor taken away.
    """
    new, old = _Types(reader), _Types(writer)
    found: list[str] = []
    for name, message in old.own():
        other = new.messages.get(new.package + name)
        if other is None:
            found.append(f"{name[1:]}: message is not there any more")
        else:
            found += _message_changes(name[1:], other, message, new, old)
    return found


class _Types:
    """All types of some files by their full names."""

    def __init__(self, files: Sequence[Any]) -> None:
        self.files = files
        self.messages: dict[str, Any] = {}
        self.package = _package(files[-1])
        for file in files:
            for name, message in _messages(_package(file), file.message_type):
                self.messages[name] = message

    def own(self) -> Iterator[tuple[str, Any]]:
        """Yield (name without package, message) of the last file."""
        for name, message in _messages("", self.files[-1].message_type):
            if not message.options.map_entry:
                yield name, message


def _package(file: Any) -> str:
    return f".{file.package}" if file.package else ""


def _messages(prefix: str, messages: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for message in messages:
        name = f"{prefix}.{message.name}"
        yield name, message
        yield from _messages(name, message.nested_type)


def _message_changes(name: str, new: Any, old: Any, news: _Types, olds: _Types) -> list[str]:
    found: list[str] = []
    after = {field.number: field for field in new.field}
    before = {field.number: field for field in old.field}
    for number, field in before.items():
        at = f"{name}.{field.name} ({number})"
        other = after.get(number)
        if other is None:
            if field.label == field.LABEL_REQUIRED:
                found.append(f"{at}: is required, and was taken away")
            elif _oneof(old, field) is not None and _oneof(old, field) in _oneofs(new):
                found.append(f"{at}: was taken out of its oneof")
            continue
        found += _field_changes(at, other, field, news, olds)
    found += [
        f"{name}.{field.name} ({number}): is required, and was not there"
        for number, field in after.items()
        if number not in before and field.label == field.LABEL_REQUIRED
    ]
    for oneof, numbers in _oneofs(new).items():
        moved = [n for n in numbers if n in before and _oneof(old, before[n]) is None]
        if len(moved) > 1:
            found.append(f"{name}.{oneof}: several fields were moved into this oneof")
    return found


def _field_changes(at: str, new: Any, old: Any, news: _Types, olds: _Types) -> list[str]:
    kind, former = _kind(new), _kind(old)
    is_same = kind == former or any({kind, former} <= group for group in _KINDS)
    if not is_same:
        return [f"{at}: was {former}, and is {kind}"]
    found = []
    if kind == "message":
        was, now = _relative(old.type_name, olds.package), _relative(new.type_name, news.package)
        if was != now and not _are_maps(new, old, news, olds):
            found.append(f"{at}: was {was}, and is {now}")
    is_repeated, was_repeated = (f.label == f.LABEL_REPEATED for f in (new, old))
    if is_repeated is not was_repeated and kind not in ("string", "bytes", "message"):
        found.append(f"{at}: is {'' if is_repeated else 'not '}repeated, and was otherwise")
    if (new.label == new.LABEL_REQUIRED) is not (old.label == old.LABEL_REQUIRED):
        found.append(f"{at}: whether it is required has changed")
    return found


def _are_maps(new: Any, old: Any, news: _Types, olds: _Types) -> bool:
    entries = news.messages.get(new.type_name), olds.messages.get(old.type_name)
    return all(entry is not None and entry.options.map_entry for entry in entries)


def _kind(field: Any) -> str:
    from google.protobuf import descriptor_pb2

    name: str = descriptor_pb2.FieldDescriptorProto.Type.Name(field.type)
    return name.removeprefix("TYPE_").lower()


def _relative(type_name: str, package: str) -> str:
    return type_name.removeprefix(f"{package}.").lstrip(".")


def _oneof(message: Any, field: Any) -> str | None:
    """Return the name of the oneof that a field is in; `optional` of proto3 is none."""
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    name: str = message.oneof_decl[field.oneof_index].name
    return name


def _oneofs(message: Any) -> Mapping[str, list[int]]:
    found: dict[str, list[int]] = {}
    for field in message.field:
        name = _oneof(message, field)
        if name is not None:
            found.setdefault(name, []).append(field.number)
    return found


# --- Values --------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _pool(text: str, references: Texts) -> Any:
    """Return a pool with all files."""
    from google.protobuf import descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    for file in descriptors(text, references):
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except TypeError as error:
            raise invalid_schema(str(error)) from None
    return pool


def message_names(text: str, references: Texts) -> list[str]:
    """Return the names of a file's own messages, without its package, in their order."""
    types = _Types(descriptors(text, references))
    return [name[1:] for name, _ in types.own()]


def indexes_of(text: str, references: Texts, name: str) -> list[int]:
    """Return where a message stands in its file: index in the file, then in each message.

    Its name is with the package or without; "" is the first one.

    Raises:
        ValueError: there is none.
    """
    file = descriptors(text, references)[-1]
    parts = name.removeprefix(f"{file.package}.").split(".") if name else []
    if not parts:
        return [0]
    messages: Any = file.message_type
    found: list[int] = []
    for part in parts:
        messages = _without_maps(messages)
        names = [message.name for message in messages]
        if part not in names:
            known = ", ".join(message_names(text, references))
            raise ValueError(f"there is no message {name!r}; there are {known}")
        found.append(names.index(part))
        messages = messages[found[-1]].nested_type
    return found


def _without_maps(messages: Sequence[Any]) -> list[Any]:
    """Return the messages that somebody wrote: Java's serializers count no entries of maps."""
    return [message for message in messages if not message.options.map_entry]


def message_class(text: str, references: Texts, indexes: Sequence[int]) -> Any:
    """Return the class of the message that stands there.

    Raises:
        ValueError: there is none.
        RegistryError: INVALID_SCHEMA.
    """
    from google.protobuf import message_factory

    pool = _pool(text, references)
    file = descriptors(text, references)[-1]
    messages: Any = file.message_type
    path = [file.package] if file.package else []
    for index in indexes:
        messages = _without_maps(messages)
        if not 0 <= index < len(messages):
            raise ValueError(f"the schema has no message at {[*indexes]}")
        path.append(messages[index].name)
        messages = messages[index].nested_type
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(".".join(path)))


def decode(text: str, references: Texts, indexes: Sequence[int], data: bytes) -> Any:
    """Return a message's JSON, its fields by their names in the schema.

    Raises:
        ValueError: the data are no such message.
    """
    from google.protobuf import json_format
    from google.protobuf.message import DecodeError

    message = message_class(text, references, indexes)()
    try:
        message.ParseFromString(data)
        return json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (DecodeError, TypeError, json_format.Error, OverflowError) as error:
        name = message.DESCRIPTOR.full_name
        raise ValueError(f"no Protobuf message {name}: {error}") from None


def encode(text: str, references: Texts, indexes: Sequence[int], value: Any) -> bytes:
    """Return the message that JSON says.

    Raises:
        ValueError: it does not fit.
    """
    from google.protobuf import json_format

    message = message_class(text, references, indexes)()
    try:
        json_format.ParseDict(value, message)
        data: bytes = message.SerializeToString()
    except (json_format.Error, TypeError, AttributeError, ValueError) as error:
        raise ValueError(str(error).replace("\n", " ")) from None
    return data
