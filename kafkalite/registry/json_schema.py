"""JSON Schema: whether something is one, and whether one reads what fits another.

Checked are types, properties and their content model (open, closed, or by a schema), required
properties, enums, constants, bounds of numbers, lengths and counts, items, and combinations as far
as they say the same in both. What is not understood must be equal.
"""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from kafkalite.registry.errors import invalid_schema

TYPES: Final = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
COMBINATIONS: Final = ("allOf", "anyOf", "oneOf", "not")
DEPTH_MAX: Final = 64
_BUNDLE: Final = "referred to "

LOWER_BOUNDS: Final = (
    "minimum",
    "exclusiveMinimum",
    "minLength",
    "minItems",
    "minProperties",
)
UPPER_BOUNDS: Final = (
    "maximum",
    "exclusiveMaximum",
    "maxLength",
    "maxItems",
    "maxProperties",
)
DEFINITIONS: Final = ("definitions", "$defs")
WITHOUT_MEANING: Final = frozenset(
    {"title", "description", "$id", "$schema", "$comment", "default", "examples", "deprecated",
     "readOnly", "writeOnly", "id", *DEFINITIONS}
)  # fmt: skip
UNDERSTOOD: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "enum", "const", "items", "$ref",
     *LOWER_BOUNDS, *UPPER_BOUNDS, *COMBINATIONS, *WITHOUT_MEANING}
)  # fmt: skip


def check(said: Any, depth: int = 0) -> None:
    """Refuse what is no JSON Schema.

    Raises:
        RegistryError: INVALID_SCHEMA.
    """
    if isinstance(said, bool):
        return
    if not isinstance(said, Mapping):
        raise invalid_schema("a JSON Schema is an object, true or false")
    if depth > DEPTH_MAX:
        raise invalid_schema(f"nested more than {DEPTH_MAX} levels deep")
    types = said.get("type")
    for each in types if isinstance(types, list) else [types]:
        if each is not None and (not isinstance(each, str) or each not in TYPES):
            raise invalid_schema(f"there is no type {each!r}")
    _check_kind(said, "required", list)
    if not all(isinstance(each, str) for each in said.get("required", ())):
        raise invalid_schema("required has names of properties")
    _check_kind(said, "enum", list)
    for name in ("properties", "patternProperties", *DEFINITIONS):
        _check_kind(said, name, Mapping)
        for each in said.get(name, {}).values():
            check(each, depth + 1)
    for name in ("allOf", "anyOf", "oneOf"):
        _check_kind(said, name, list)
        for each in said.get(name, ()):
            check(each, depth + 1)
    for name in ("additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
        if name in said:
            check(said[name], depth + 1)
    items = said.get("items", ())
    for each in items if isinstance(items, list | tuple) else [items]:
        check(each, depth + 1)


def _check_kind(said: Mapping[str, Any], name: str, kind: type) -> None:
    if name in said and not isinstance(said[name], kind):
        raise invalid_schema(f"{name} has the wrong type")


def incompatibilities(reader: Any, writer: Any) -> list[str]:
    """Return why values that fit `writer` may not fit `reader`; empty if they all do."""
    return _Comparison(reader, writer).compare(reader, writer, "#", 0)


def bundled(said: Any, references: Collection[tuple[str, Any]]) -> Any:
    """Return a schema with those that it refers to by name among its own definitions."""
    others = {name: f"{_BUNDLE}{index}" for index, (name, _) in enumerate(references)}
    if not others or not isinstance(said, Mapping):
        return said
    whole = dict(_with_local_references(said, "#", others))
    whole["$defs"] = {
        **whole.get("$defs", {}),
        **{
            others[name]: _with_local_references(other, f"#/$defs/{others[name]}", others)
            for name, other in references
        },
    }
    return whole


def _with_local_references(said: Any, own: str, others: Mapping[str, str]) -> Any:
    if isinstance(said, list):
        return [_with_local_references(each, own, others) for each in said]
    if not isinstance(said, Mapping):
        return said
    found = {name: _with_local_references(each, own, others) for name, each in said.items()}
    reference = said.get("$ref")
    if isinstance(reference, str):
        name, _, pointer = reference.partition("#")
        if name in others:
            found["$ref"] = f"#/$defs/{others[name]}{pointer}"
        elif not name:
            found["$ref"] = f"{own}{pointer}"
    return found


class _Comparison:
    def __init__(self, reader: Any, writer: Any) -> None:
        self._reader = reader
        self._writer = writer
        self._seen: set[tuple[int, int]] = set()

    def compare(self, reader: Any, writer: Any, path: str, depth: int) -> list[str]:
        """Return what of `writer` does not fit `reader`."""
        if depth > DEPTH_MAX:
            return [f"{path}: nested too deeply to be compared"]
        reader = _referred(reader, self._reader)
        writer = _referred(writer, self._writer)
        if reader is True or reader == {} or reader == writer or writer is False:
            return []
        if reader is False:
            return [f"{path}: nothing is allowed any more"]
        if (id(reader), id(writer)) in self._seen:
            return []
        self._seen.add((id(reader), id(writer)))
        if writer is True:
            writer = {}
        found: list[str] = []
        for compare in (self._types, self._values, self._bounds, self._combinations):
            found += compare(reader, writer, path)
        found += self._objects(reader, writer, path, depth)
        found += self._items(reader, writer, path, depth)
        for name in sorted((reader.keys() | writer.keys()) - UNDERSTOOD):
            if name in reader and reader[name] != writer.get(name):
                found.append(f"{path}/{name}: differs, and is not compared further")
        return found

    def _types(self, reader: Mapping[str, Any], writer: Mapping[str, Any], path: str) -> list[str]:
        if "type" not in reader:
            return []
        accepted = _types_of(reader)
        if "number" in accepted:
            accepted |= {"integer"}
        lost = _types_of(writer) - accepted
        if not lost:
            return []
        return [f"{path}/type: {', '.join(sorted(lost))} was allowed and is not any more"]

    def _values(self, reader: Mapping[str, Any], writer: Mapping[str, Any], path: str) -> list[str]:
        accepted = _constants(reader)
        if accepted is None:
            return []
        written = _constants(writer)
        if written is None:
            return [f"{path}/enum: any value was allowed, and only some are now"]
        known = {*map(_key, accepted)}
        lost = [each for each in written if _key(each) not in known]
        return [f"{path}/enum: {lost[0]!r} was allowed and is not any more"] if lost else []

    def _bounds(self, reader: Mapping[str, Any], writer: Mapping[str, Any], path: str) -> list[str]:
        narrower: list[tuple[tuple[str, ...], Callable[[Any, Any], bool]]] = [
            (LOWER_BOUNDS, lambda new, old: new > old),
            (UPPER_BOUNDS, lambda new, old: new < old),
        ]
        found = []
        for names, is_narrower in narrower:
            for name in names:
                new, old = reader.get(name), writer.get(name)
                if not isinstance(new, int | float) or isinstance(new, bool):
                    continue
                if not isinstance(old, int | float) or is_narrower(new, old):
                    found.append(f"{path}/{name}: is narrower than before")
        return found

    def _combinations(
        self, reader: Mapping[str, Any], writer: Mapping[str, Any], path: str
    ) -> list[str]:
        found = []
        for name in COMBINATIONS:
            new: Any = reader.get(name)
            old: Any = writer.get(name)
            if new is None or new == old:
                continue
            is_wider = (
                name in ("anyOf", "oneOf") and isinstance(new, list) and isinstance(old, list)
            )
            if is_wider and {*map(_key, old)} <= {*map(_key, new)}:
                continue
            is_weaker = name == "allOf" and isinstance(new, list) and isinstance(old, list)
            if is_weaker and {*map(_key, new)} <= {*map(_key, old)}:
                continue
            found.append(f"{path}/{name}: differs")
        return found

    def _objects(
        self, reader: Mapping[str, Any], writer: Mapping[str, Any], path: str, depth: int
    ) -> list[str]:
        if "object" not in _types_of(writer):
            return []
        required = {*writer.get("required", ())}
        found = [
            f"{path}/required: {name!r} is required, and was not"
            for name in reader.get("required", ())
            if name not in required
            and "default" not in _mapping(reader.get("properties", {}).get(name))
        ]
        known, written = reader.get("properties", {}), writer.get("properties", {})
        rest = reader.get("additionalProperties", True)
        written_rest = writer.get("additionalProperties", True)
        for name, each in written.items():
            at = f"{path}/properties/{name}"
            if name in known:
                found += self.compare(known[name], each, at, depth + 1)
            elif rest is False:
                found.append(f"{at}: was known, and no other properties are allowed")
            elif rest is not True:
                found += self.compare(rest, each, at, depth + 1)
        for name, each in known.items():
            # What an open writer may have put there, of whatever kind.
            if name not in written and written_rest is not False:
                at = f"{path}/properties/{name}"
                found += self.compare(each, written_rest, at, depth + 1)
        if rest is not True:
            at = f"{path}/additionalProperties"
            found += self.compare(rest, written_rest, at, depth + 1)
        return found

    def _items(
        self, reader: Mapping[str, Any], writer: Mapping[str, Any], path: str, depth: int
    ) -> list[str]:
        if "items" not in reader or "array" not in _types_of(writer):
            return []
        new, old = reader["items"], writer.get("items", True)
        if isinstance(new, list) or isinstance(old, list):
            return [] if new == old else [f"{path}/items: differs"]
        return self.compare(new, old, f"{path}/items", depth + 1)


def _types_of(said: Mapping[str, Any]) -> set[str]:
    types = said.get("type")
    if types is None:
        return set(TYPES)
    return set(types) if isinstance(types, list) else {types}


def _constants(said: Mapping[str, Any]) -> list[Any] | None:
    if "const" in said:
        return [said["const"]]
    values: list[Any] | None = said.get("enum")
    return values


def _key(value: Any) -> str:
    """Return the same text for values that are the same in JSON: 1 is 1.0, and not true."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True)


def _mapping(said: Any) -> Mapping[str, Any]:
    return said if isinstance(said, Mapping) else {}


def _referred(said: Any, root: Any) -> Any:
    """Return what a local `$ref` stands for; others stand for themselves."""
    for _ in range(DEPTH_MAX):
        reference = said.get("$ref") if isinstance(said, Mapping) else None
        if not isinstance(reference, str) or not reference.startswith("#"):
            return said
        found: Any = root
        for part in reference.removeprefix("#").strip("/").split("/"):
            if part:
                name = part.replace("~1", "/").replace("~0", "~")
                found = found.get(name) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping | bool):
            return said
        said = found
    return said
