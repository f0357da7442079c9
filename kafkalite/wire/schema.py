"""One declaration per message for all its versions, in construct's operator style.

    FetchPartition = structure(
        "FetchPartition",
        "partition" / Int32,
        "current_leader_epoch" / since(9, Int32, default=-1),
        "fetch_offset" / Int64,
        ...
    )

`structure` returns a slotted class whose attributes have Kafka's defaults. `Message(class,
versions=..., flexible_from=...).at(version)` is an ordinary `construct.Struct` without any
condition in it: fields outside the version are gone, and compact or plain leaves are picked.

The modifiers `since`, `until`, `nullable`, `optional`, `tagged` and `default` may be nested; each
wraps a shape: a leaf of `primitives`, `String`, `Bytes`, `Records`, `ArrayOf(shape)`, or another
structure.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar

from construct import Construct, Renamed, Struct

from kafkalite.types import ZERO_UUID
from kafkalite.wire.primitives import (
    ArrayLeaf,
    Bool,
    BytesLeaf,
    Float64,
    NullableStruct,
    RecordsLeaf,
    StringLeaf,
    TaggedFields,
    UuidLeaf,
)

LATEST: Final = 0x7FFF
"""The end of an open version range: versions are int16 on the wire."""

TAGGED_FIELDS: Final = "tagged_fields"
"""Name of the tag section in the Struct of a flexible version."""

_UNSET: Final = object()

Shape: TypeAlias = Any
"""A construct or a class of structure; construct has no types, so it cannot be said better."""


class TextShape(Construct):  # type: ignore[misc]
    """A shape whose encoding depends on the version: `leaf` says which leaf it becomes."""

    def __init__(self, leaf: type[StringLeaf | BytesLeaf], kind: str, unset: Any) -> None:
        super().__init__()
        self.leaf = leaf
        self.kind = kind
        self.unset = unset


String: Final = TextShape(StringLeaf, "str", "")
Bytes: Final = TextShape(BytesLeaf, "bytes", b"")
Records: Final = TextShape(RecordsLeaf, "records", None)


class ArrayOf(Construct):  # type: ignore[misc]
    """An array; its element is a leaf, a shape, or a structure."""

    def __init__(self, element: Shape) -> None:
        super().__init__()
        self.element = element


class _Modified(Construct):  # type: ignore[misc]
    """A shape with what the modifiers around it have said."""

    def __init__(self, shape: Shape, **said: Any) -> None:
        super().__init__()
        inner = isinstance(shape, _Modified)
        self.shape: Shape = shape.shape if inner else shape
        self.said: dict[str, Any] = {**shape.said, **said} if inner else said


def since(first: int, shape: Shape, *, until: int = LATEST, default: Any = _UNSET) -> Construct:
    """Declare a field that exists from version `first` to `until`, both inclusive."""
    return _Modified(shape, first=first, last=until, **_given(default))


def until(last: int, shape: Shape, *, default: Any = _UNSET) -> Construct:
    """Declare a field that exists up to version `last`, inclusive."""
    return _Modified(shape, last=last, **_given(default))


def default(shape: Shape, value: Any) -> Construct:
    """Declare what the attribute holds where nothing else was said or received."""
    return _Modified(shape, default=value)


def nullable(
    shape: Shape, *, since: int = 0, until: int = LATEST, default: Any = _UNSET
) -> Construct:
    """Declare a field that may be None, in all versions or in a range of them.

    Its default is still that of the shape (an empty string or list), as in Kafka.
    """
    return _Modified(shape, nullable_first=since, nullable_last=until, **_given(default))


def optional(shape: Shape) -> Construct:
    """Declare a field that may be None and is so by default."""
    return nullable(shape, default=None)


def tagged(tag: int, shape: Shape, *, default: Any = _UNSET) -> Construct:
    """Declare a field of the tag section: written only if it differs from its default."""
    return _Modified(shape, tag=tag, **_given(default))


def _given(value: Any) -> dict[str, Any]:
    return {} if value is _UNSET else {"default": value}


@dataclass(slots=True, frozen=True, kw_only=True)
class Field:
    """One attribute of a structure. Version ranges are inclusive at both ends."""

    name: str
    shape: Shape
    first: int = 0
    last: int = LATEST
    nullable_first: int = LATEST
    nullable_last: int = -1
    tag: int | None = None
    default: Any = _UNSET

    def exists_at(self, version: int) -> bool:
        """Say whether the version has this field."""
        return self.first <= version <= self.last

    def is_nullable_at(self, version: int) -> bool:
        """Say whether the version allows null here."""
        return self.nullable_first <= version <= self.nullable_last

    def default_value(self) -> Any:
        """Return Kafka's default: of an array a fresh list, of a structure a shared frozen one."""
        if self.default is not _UNSET:
            return self.default
        shape = self.shape
        if isinstance(shape, type) and issubclass(shape, Structure):
            return shape.default_instance()
        if isinstance(shape, ArrayOf):
            return []
        if isinstance(shape, TextShape):
            return shape.unset
        if isinstance(shape, UuidLeaf):
            return ZERO_UUID
        return _number_default(shape)


def _number_default(leaf: Construct) -> bool | int | float:
    if leaf is Bool:
        return False
    return 0.0 if leaf is Float64 else 0


class Structure:
    """Base of message classes: slots, keyword construction, equality and a readable form."""

    __slots__ = ()
    FIELDS: ClassVar[tuple[Field, ...]] = ()
    RECORD: ClassVar[type["Structure"]]
    """The class itself, also on the frozen twin that serves as a default."""
    DEFAULT: ClassVar["Structure"]

    def __init__(self, **values: Any) -> None:
        # Code for 180 classes would cost a broker 30 ms at its start, so each class makes its own
        # __init__ when it is first called.
        record = type(self).RECORD
        record.__init__ = _make_init(record)  # type: ignore[method-assign]
        record.__init__(self, **values)

    @classmethod
    def default_instance(cls) -> "Structure":
        """Return the one default of this structure, which refuses to be changed.

        A field of structure type holds it until another instance is assigned: Fetch has three of
        them per partition, and making them afresh would cost more than encoding the partition.
        """
        record = cls.RECORD
        if "DEFAULT" not in record.__dict__:
            twin = {"__slots__": (), "__setattr__": _refuse_to_change}
            default: Structure = object.__new__(type(record.__name__, (record,), twin))
            for field in record.FIELDS:
                object.__setattr__(default, field.name, field.default_value())
            record.DEFAULT = default
        return record.DEFAULT

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Structure) or other.RECORD is not self.RECORD:
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.FIELDS)
        return f"{type(self).__name__}({values})"


AnyStructure = TypeVar("AnyStructure", bound=Structure)


def _refuse_to_change(self: Structure, name: str, value: Any) -> None:
    message = f"this {type(self).__name__} is the default shared by all; assign a new one instead"
    raise AttributeError(message)


def structure(name: str, *members: Renamed) -> Any:
    """Make the class of a structure from its fields, in the order they have on the wire."""
    fields = tuple(_field(member) for member in members)
    record = type(
        name,
        (Structure,),
        {
            "__slots__": tuple(field.name for field in fields),
            "__module__": sys._getframe(1).f_globals["__name__"],  # noqa: SLF001 - as namedtuple does
            "FIELDS": fields,
        },
    )
    record.RECORD = record  # type: ignore[attr-defined]
    return record


def _field(member: Renamed) -> Field:
    shape = member.subcon
    if isinstance(shape, _Modified):
        return Field(name=member.name, shape=shape.shape, **shape.said)
    return Field(name=member.name, shape=shape)


def _make_init(record: type[Structure]) -> Callable[..., None]:
    """Write the __init__ of a class: keywords only, each with its default."""
    namespace: dict[str, Any] = {"FRESH": _UNSET}
    parameters, lines = [], []
    for number, field in enumerate(record.FIELDS):
        value = field.default_value()
        if isinstance(value, list):
            parameters.append(f"{field.name}=FRESH")
            lines.append(f"self.{field.name} = [] if {field.name} is FRESH else {field.name}")
        else:
            namespace[f"default{number}"] = value
            parameters.append(f"{field.name}=default{number}")
            lines.append(f"self.{field.name} = {field.name}")
    head = (
        f"def __init__(self, *, {', '.join(parameters)}):" if parameters else "def __init__(self):"
    )
    source = head + "".join(f"\n    {line}" for line in lines or ["pass"])
    exec(compile(source, f"<{record.__name__}.__init__>", "exec"), namespace)
    init: Callable[..., None] = namespace["__init__"]
    return init


class Message(Generic[AnyStructure]):
    """A structure that stands alone on the wire, with the versions it has.

    Attributes:
        versions: first and last version, both inclusive.
        flexible_from: first version with compact leaves and tag sections; None if there is none.
    """

    def __init__(
        self,
        record: type[AnyStructure],
        *,
        versions: tuple[int, int],
        flexible_from: int | None,
    ) -> None:
        self.record = record
        self.versions = versions
        self.flexible_from = flexible_from

    def is_flexible(self, version: int) -> bool:
        """Say whether the version has compact leaves and tag sections (KIP-482)."""
        return self.flexible_from is not None and version >= self.flexible_from

    def at(self, version: int) -> Struct:
        """Return the construct of one version; its Structs carry their class as `record`."""
        first, last = self.versions
        if not first <= version <= last:
            name = self.record.__name__
            raise ValueError(f"{name} has versions {first} to {last}, not {version}")
        return _struct_at(self.record, version, flexible=self.is_flexible(version))


def _struct_at(record: type[Structure], version: int, *, flexible: bool) -> Struct:
    members: list[Construct] = []
    tags: dict[int, Construct] = {}
    for field in record.FIELDS:
        if not field.exists_at(version):
            continue
        is_nullable = field.is_nullable_at(version)
        leaf = _leaf_at(field.shape, version, flexible, is_nullable)
        if field.tag is not None and isinstance(leaf, NullableStruct):
            leaf = NullableStruct(leaf.struct, null=0)
        member = field.name / leaf
        if field.tag is None:
            members.append(member)
        else:
            tags[field.tag] = member
    if flexible:
        members.append(TAGGED_FIELDS / TaggedFields(tags))
    struct = Struct(*members)
    struct.record = record
    return struct


def _leaf_at(shape: Shape, version: int, flexible: bool, is_nullable: bool) -> Construct:
    if isinstance(shape, type):
        struct = _struct_at(shape, version, flexible=flexible)
        return NullableStruct(struct) if is_nullable else struct
    if isinstance(shape, ArrayOf):
        element = _leaf_at(shape.element, version, flexible, False)
        return ArrayLeaf(element, compact=flexible, nullable=is_nullable)
    if isinstance(shape, TextShape):
        return shape.leaf(compact=flexible, nullable=is_nullable)
    return shape


def to_container(value: Any, struct: Construct) -> Any:
    """Turn a message into what its `at(version)` builds from; the oracle's way in."""
    leaf = struct.subcon if isinstance(struct, Renamed) else struct
    if value is None:
        return None
    if isinstance(leaf, NullableStruct):
        return to_container(value, leaf.struct)
    if isinstance(leaf, ArrayLeaf):
        return [to_container(element, leaf.element) for element in value]
    if not isinstance(leaf, Struct):
        return value
    container = {
        member.name: to_container(getattr(value, member.name), member)
        for member in leaf.subcons
        if member.name != TAGGED_FIELDS
    }
    for tags in (m.subcon for m in leaf.subcons if m.name == TAGGED_FIELDS):
        container[TAGGED_FIELDS] = {
            member.name: to_container(getattr(value, member.name), member)
            for member in tags.known.values()
            if getattr(value, member.name) != default_of(leaf.record, member.name)
        }
    return container


def from_container(container: Any, struct: Construct) -> Any:
    """Turn what `at(version)` parsed into a message; the oracle's way out."""
    leaf = struct.subcon if isinstance(struct, Renamed) else struct
    if container is None:
        return None
    if isinstance(leaf, NullableStruct):
        return from_container(container, leaf.struct)
    if isinstance(leaf, ArrayLeaf):
        return [from_container(element, leaf.element) for element in container]
    if not isinstance(leaf, Struct):
        return container
    values = {}
    for member in leaf.subcons:
        if member.name == TAGGED_FIELDS:
            known = {field.name: field for field in member.subcon.known.values()}
            found: Mapping[str, Any] = container[TAGGED_FIELDS]
            values.update({name: from_container(v, known[name]) for name, v in found.items()})
        else:
            values[member.name] = from_container(container[member.name], member)
    return leaf.record(**values)


def default_of(record: type[Structure], name: str) -> Any:
    """Return the default of a field by its name."""
    return _defaults(record.FIELDS)[name]


def _defaults(fields: Iterable[Field]) -> dict[str, Any]:
    return {field.name: field.default_value() for field in fields}
