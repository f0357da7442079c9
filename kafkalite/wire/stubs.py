"""Writes the type stubs of modules made of declarations: `python -m kafkalite.wire.stubs`.

Message classes are made at run time, so a type checker cannot see their attributes. The stub beside
each module tells it; a test fails when a stub is not what is written here.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from kafkalite.wire.api import Api
from kafkalite.wire.lowering import Chunk
from kafkalite.wire.primitives import Bool, Float64, UuidLeaf
from kafkalite.wire.schema import ArrayOf, Field, Message, Shape, Structure, TextShape

PACKAGES = ("kafkalite.wire.messages", "kafkalite.wire.stored")

_HEADER = "# Written by kafkalite.wire.stubs from the declarations; do not edit.\n"
_RECORDS = " | ".join(kind.__name__ for kind in Chunk.__args__)


def declaring_modules() -> Iterator[ModuleType]:
    """Return the modules that declare messages."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__):
            yield importlib.import_module(f"{name}.{module.name}")


def stub_of(module: ModuleType) -> str:
    """Return the text of a module's stub, "" if it declares nothing."""
    own = vars(module).items()
    classes = [
        value
        for _, value in own
        if isinstance(value, type)
        and issubclass(value, Structure)
        and value.__module__ == module.__name__
    ]
    blocks = [_class_stub(record) for record in classes]
    constants = [line for name, value in own if (line := _constant_stub(name, value))]
    if not classes:
        return ""
    body = "\n\n".join(blocks) + "\n\n" + "\n".join(constants) + "\n"
    bases = "Message, Structure" if "Message[" in body else "Structure"
    imports = [f"from kafkalite.wire.schema import {bases}"]
    standard = []
    if "memoryview" in body:
        standard.append("from collections.abc import Sized")
    for name in ("Codec", "Api"):
        if f"{name}[" in body:
            imports.insert(0, f"from kafkalite.wire.{name.lower()} import {name}")
    if "UUID" in body:
        standard.append("from uuid import UUID")
    blocks = ["\n".join(lines) for lines in (standard, imports) if lines]
    return _HEADER + "\n" + "\n\n".join(blocks) + "\n\n" + body


def _class_stub(record: type[Structure]) -> str:
    lines = [f"class {record.__name__}(Structure):"]
    lines += [f"    {field.name}: {_type_of(field)}" for field in record.FIELDS]
    lines.append("    def __init__(")
    lines.append("        self,")
    if record.FIELDS:
        lines.append("        *,")
    lines += [f"        {field.name}: {_type_of(field)} = ..." for field in record.FIELDS]
    lines = [line + "," if " = ..." in line else line for line in lines]
    lines.append("    ) -> None: ...")
    return "\n".join(lines)


def _constant_stub(name: str, value: object) -> str:
    if isinstance(value, Api):
        request, response = value.request.record.__name__, value.response.record.__name__
        return f"{name}: Api[{request}, {response}]"
    if isinstance(value, Message):
        return f"{name}: {type(value).__name__}[{value.record.__name__}]"
    return ""


def _type_of(field: Field) -> str:
    kind = _kind_of(field.shape)
    may_be_none = field.nullable_first <= field.nullable_last or field.default_value() is None
    return f"{kind} | None" if may_be_none else kind


def _kind_of(shape: Shape) -> str:
    if isinstance(shape, type):
        return shape.__name__
    if isinstance(shape, ArrayOf):
        return f"list[{_kind_of(shape.element)}]"
    if isinstance(shape, TextShape):
        return _RECORDS if shape.kind == "records" else shape.kind
    if isinstance(shape, UuidLeaf):
        return "UUID"
    if shape is Bool:
        return "bool"
    return "float" if shape is Float64 else "int"


def main() -> None:
    """Write every stub beside its module."""
    for module in declaring_modules():
        assert module.__file__ is not None
        text = stub_of(module)
        if text:
            Path(module.__file__).with_suffix(".pyi").write_text(text)


if __name__ == "__main__":  # pragma: no cover - what it calls is tested
    main()
