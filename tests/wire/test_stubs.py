"""The stubs beside the declarations are what the declarations say now."""

import types
from pathlib import Path

import pytest

from kafkalite.wire import stubs
from kafkalite.wire.codec import Codec
from kafkalite.wire.primitives import Bool, Float64, Int32, Uuid
from kafkalite.wire.schema import (
    ArrayOf,
    Bytes,
    Message,
    Records,
    String,
    nullable,
    optional,
    structure,
)

MODULES = list(stubs.declaring_modules())


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_stubs_are_current(module):
    """If this fails: python -m kafkalite.wire.stubs."""
    stub = Path(module.__file__).with_suffix(".pyi")
    text = stubs.stub_of(module)
    assert (stub.read_text() if stub.exists() else "") == text


def test_messages_and_stored_records_have_stubs():
    names = {module.__name__ for module in MODULES}
    assert {"kafkalite.wire.messages.fetch", "kafkalite.wire.stored.group_metadata"} <= names


def declare():
    module = types.ModuleType(__name__)
    inner = structure("Inner", "flag" / Bool, "share" / Float64)
    empty = structure("Empty")
    outer = structure(
        "Outer",
        "id" / Uuid,
        "inners" / nullable(ArrayOf(inner)),
        "name" / optional(String),
        "raw" / Bytes,
        "sizes" / ArrayOf(Int32),
        "batches" / Records,
    )
    module.Inner, module.Outer, module.Empty = inner, outer, empty
    module.OUTER = Codec(outer, versions=(0, 1), flexible_from=None)
    module.INNER = Message(inner, versions=(0, 1), flexible_from=None)
    module.LIMIT = 5
    return module


def test_a_stub_has_typed_attributes_and_keyword_constructors():
    records = "bytes | bytearray | memoryview | Sized | None"
    assert (
        stubs.stub_of(declare())
        == f"""\
# Written by kafkalite.wire.stubs from the declarations; do not edit.

from collections.abc import Sized
from uuid import UUID

from kafkalite.wire.codec import Codec
from kafkalite.wire.schema import Message, Structure

class Inner(Structure):
    flag: bool
    share: float
    def __init__(
        self,
        *,
        flag: bool = ...,
        share: float = ...,
    ) -> None: ...

class Outer(Structure):
    id: UUID
    inners: list[Inner] | None
    name: str | None
    raw: bytes
    sizes: list[int]
    batches: {records}
    def __init__(
        self,
        *,
        id: UUID = ...,
        inners: list[Inner] | None = ...,
        name: str | None = ...,
        raw: bytes = ...,
        sizes: list[int] = ...,
        batches: {records} = ...,
    ) -> None: ...

class Empty(Structure):
    def __init__(
        self,
    ) -> None: ...

OUTER: Codec[Outer]
INNER: Message[Inner]
"""
    )


def test_a_module_without_declarations_has_no_stub():
    assert stubs.stub_of(types.ModuleType("empty")) == ""


def test_all_stubs_are_written_by_one_command(monkeypatch, tmp_path):
    module = declare()
    module.__file__ = str(tmp_path / "declared.py")
    nothing = types.ModuleType("nothing")
    nothing.__file__ = str(tmp_path / "nothing.py")
    monkeypatch.setattr(stubs, "declaring_modules", lambda: [module, nothing])
    stubs.main()
    assert [path.name for path in tmp_path.iterdir()] == ["declared.pyi"]
    assert (tmp_path / "declared.pyi").read_text() == stubs.stub_of(module)
