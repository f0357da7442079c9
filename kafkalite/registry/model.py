"""State of the registry: schemas by id, subjects with their versions, settings.

State changes in `replay` alone, by the records of the topic `_schemas` as Confluent's registry
writes them, so that either opens what the other wrote.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from kafkalite.registry.errors import (
    RegistryError,
    RegistryErrorCode,
    invalid_schema,
    schema_not_found,
    subject_not_found,
    version_not_found,
)

GLOBAL: Final = None
"""The subject of settings that hold for all that have none of their own."""

LATEST: Final = "latest"
VERSION_MAX: Final = 2**31 - 1


class SchemaType(StrEnum):
    """Languages of schemas."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class Compatibility(StrEnum):
    """Which versions of a subject a new one must get on with, and in which direction."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether all earlier versions count, not the last alone."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def is_backward(self) -> bool:
        """Whether the new schema must read what was written with earlier ones."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_forward(self) -> bool:
        """Whether earlier schemas must read what is written with the new one."""
        return self.value.startswith(("FORWARD", "FULL"))


class Mode(StrEnum):
    """Changes that are allowed to a subject."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    IMPORT = "IMPORT"


@dataclass(slots=True, frozen=True, order=True)
class Reference:
    """A schema that another one uses under `name`."""

    name: str
    subject: str
    version: int


@dataclass(slots=True, frozen=True)
class Schema:
    """One schema; `text` as its writer wrote it, but for what has no meaning."""

    schema_type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(slots=True)
class Version:
    """One version of a subject."""

    subject: str
    version: int
    schema_id: int
    is_deleted: bool = False


@dataclass(slots=True, frozen=True)
class SchemaKey:
    """Key of a record that tells a version."""

    subject: str
    version: int


@dataclass(slots=True, frozen=True)
class ConfigKey:
    """Key of a record that tells a compatibility."""

    subject: str | None


@dataclass(slots=True, frozen=True)
class ModeKey:
    """Key of a record that tells a mode."""

    subject: str | None


@dataclass(slots=True, frozen=True)
class DeleteSubjectKey:
    """Key of a record that tells that a subject's versions up to one are deleted softly."""

    subject: str


@dataclass(slots=True, frozen=True)
class ClearSubjectKey:
    """Key of a record that tells that a subject is gone."""

    subject: str


@dataclass(slots=True, frozen=True)
class NoopKey:
    """Key of a record that others write, without a value, to find the end of the topic.

    Here its value keeps the highest id when the last version that has it is deleted for good.
    """


RegistryKey = SchemaKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | NoopKey


@dataclass(slots=True, frozen=True)
class SchemaValue:
    """A version as it is stored."""

    schema_id: int
    schema: Schema
    is_deleted: bool = False


RegistryValue = SchemaValue | Compatibility | Mode | int | None
"""By the kind of key; an int is the last version that DeleteSubjectKey deletes, or NoopKey's id."""


@dataclass(slots=True)
class RegistryState:
    """All that the topic says.

    Invariant: `schemas` has the ids of versions and no others, `_ids` each of them under its
    schema, `_users` the versions that have it, and `_referrers` the ids that refer to a version.
    """

    schemas: dict[int, Schema] = field(default_factory=dict)
    subjects: dict[str, dict[int, Version]] = field(default_factory=dict)
    compatibilities: dict[str | None, Compatibility] = field(default_factory=dict)
    modes: dict[str | None, Mode] = field(default_factory=dict)
    _ids: dict[Schema, dict[int, None]] = field(default_factory=dict)
    _users: dict[int, set[tuple[str, int]]] = field(default_factory=dict)
    _referrers: dict[tuple[str, int], dict[int, None]] = field(default_factory=dict)
    last_id: int = 0

    # --- Replay ----------------------------------------------------------------------------------

    def replay(self, key: RegistryKey, value: RegistryValue) -> None:
        """Make a record part of the state; one that makes no sense is passed over."""
        match key:
            case SchemaKey():
                self._replay_version(key, value)
            case ConfigKey():
                _set_or_forget(self.compatibilities, key.subject, value, Compatibility)
            case ModeKey():
                _set_or_forget(self.modes, key.subject, value, Mode)
            case DeleteSubjectKey():
                if isinstance(value, int):
                    for version in self.subjects.get(key.subject, {}).values():
                        if version.version <= value:
                            version.is_deleted = True
            case ClearSubjectKey():
                for version in self.subjects.pop(key.subject, {}).values():
                    self._forget(version)
            case NoopKey():
                if isinstance(value, int):
                    self.last_id = max(self.last_id, value)

    def _replay_version(self, key: SchemaKey, value: RegistryValue) -> None:
        versions = self.subjects.setdefault(key.subject, {})
        before = versions.pop(key.version, None)
        if isinstance(value, SchemaValue):
            schema_id = value.schema_id
            versions[key.version] = Version(key.subject, key.version, schema_id, value.is_deleted)
            schema = self.schemas.setdefault(schema_id, value.schema)
            self._ids.setdefault(schema, {})[schema_id] = None
            self._users.setdefault(schema_id, set()).add((key.subject, key.version))
            for each in schema.references:
                self._referrers.setdefault((each.subject, each.version), {})[schema_id] = None
            self.last_id = max(self.last_id, schema_id)
        if before is not None and before.schema_id != getattr(value, "schema_id", None):
            self._forget(before)
        if not versions:
            del self.subjects[key.subject]

    def _forget(self, version: Version) -> None:
        """Give up a version's schema if it was the last to have it."""
        schema_id = version.schema_id
        users = self._users[schema_id]
        users.discard((version.subject, version.version))
        if users:
            return
        del self._users[schema_id]
        schema = self.schemas.pop(schema_id)
        _discard(self._ids, schema, schema_id)
        for each in schema.references:
            _discard(self._referrers, (each.subject, each.version), schema_id)

    # --- Looking up ------------------------------------------------------------------------------

    def id_of(self, schema: Schema) -> int | None:
        """Return the id that a schema has, under any subject."""
        return next(iter(self._ids.get(schema, ())), None)

    def schema(self, schema_id: int) -> Schema:
        """Return a schema by its id.

        Raises:
            RegistryError: SCHEMA_NOT_FOUND.
        """
        found = self.schemas.get(schema_id)
        if found is None:
            raise RegistryError(RegistryErrorCode.SCHEMA_NOT_FOUND, f"Schema {schema_id} not found")
        return found

    def subject_names(self, *, deleted: bool = False, prefix: str = "") -> list[str]:
        """Return the names of subjects, sorted; of deleted ones only if told to."""
        return sorted(
            name
            for name, versions in self.subjects.items()
            if name.startswith(prefix)
            and (deleted or any(not each.is_deleted for each in versions.values()))
        )

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Return a subject's versions in their order; empty if there is no such subject."""
        return [
            each
            for _, each in sorted(self.subjects.get(subject, {}).items())
            if deleted or not each.is_deleted
        ]

    def existing_versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Return a subject's versions in their order.

        Raises:
            RegistryError: SUBJECT_NOT_FOUND.
        """
        found = self.versions(subject, deleted=deleted)
        if not found:
            raise subject_not_found(subject)
        return found

    def version(self, subject: str, wanted: str, *, deleted: bool = False) -> Version:
        """Return one version of a subject, by its number, or "latest" or "-1".

        Raises:
            RegistryError: SUBJECT_NOT_FOUND, VERSION_NOT_FOUND, INVALID_VERSION.
        """
        number = parse_version(wanted)
        versions = self.existing_versions(subject, deleted=deleted)
        if number is None:
            return versions[-1]
        for each in versions:
            if each.version == number:
                return each
        raise version_not_found(number)

    def version_of(self, subject: str, schema: Schema, *, deleted: bool = False) -> Version:
        """Return the latest version of a subject that is this schema.

        Raises:
            RegistryError: SUBJECT_NOT_FOUND, SCHEMA_NOT_FOUND.
        """
        schema_id = self.id_of(schema)
        for each in reversed(self.existing_versions(subject, deleted=deleted)):
            if each.schema_id == schema_id:
                return each
        raise schema_not_found()

    def versions_with(self, schema_id: int, *, deleted: bool = False) -> list[Version]:
        """Return the versions that are this schema, by subject."""
        users = sorted(self._users.get(schema_id, ()))
        found = [self.subjects[subject][version] for subject, version in users]
        return [each for each in found if deleted or not each.is_deleted]

    def referenced_by(self, subject: str, version: int) -> list[int]:
        """Return the ids of the schemas in use that refer to a version, in their order."""
        referrers = self._referrers.get((subject, version), ())
        return [each for each in sorted(referrers) if self.versions_with(each)]

    def resolve(self, references: Sequence[Reference]) -> Iterator[tuple[str, Schema]]:
        """Yield the schemas that are referred to, each after those that it refers to itself.

        Raises:
            RegistryError: INVALID_SCHEMA, a reference to nothing, or more than REFERENCES_MAX.
        """
        seen: set[Reference] = set()
        yield from self._resolve(references, seen)

    def _resolve(
        self, references: Sequence[Reference], seen: set[Reference]
    ) -> Iterator[tuple[str, Schema]]:
        for reference in references:
            if reference in seen:
                continue
            seen.add(reference)
            if len(seen) > REFERENCES_MAX:
                raise RegistryError(
                    RegistryErrorCode.INVALID_SCHEMA, f"more than {REFERENCES_MAX} references"
                )
            version = self.subjects.get(reference.subject, {}).get(reference.version)
            if version is None:
                raise RegistryError(
                    RegistryErrorCode.INVALID_SCHEMA,
                    f"No schema reference found for subject '{reference.subject}' "
                    f"and version {reference.version}",
                )
            schema = self.schemas[version.schema_id]
            yield from self._resolve(schema.references, seen)
            yield reference.name, schema

    def compatibility(self, subject: str) -> Compatibility:
        """Return what holds for a subject."""
        return self.compatibilities.get(
            subject, self.compatibilities.get(GLOBAL, Compatibility.BACKWARD)
        )

    def mode(self, subject: str) -> Mode:
        """Return what may be done to a subject."""
        return self.modes.get(subject, self.modes.get(GLOBAL, Mode.READWRITE))


REFERENCES_MAX: Final = 1_000


def parse_version(text: str) -> int | None:
    """Return a version's number; None for the latest.

    Raises:
        RegistryError: INVALID_VERSION.
    """
    if text in (LATEST, "-1"):
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= VERSION_MAX:
        raise RegistryError(
            RegistryErrorCode.INVALID_VERSION,
            f"The specified version '{text}' is not a valid version id. Allowed values are between "
            f'[1, 2^31-1] and the string "latest"',
        )
    return int(text)


def schema_json(version: Version, schema: Schema) -> dict[str, Any]:
    """Return a version as the API answers it."""
    return {
        "subject": version.subject,
        "version": version.version,
        "id": version.schema_id,
        **type_and_references(schema),
        "schema": schema.text,
    }


def type_and_references(schema: Schema) -> dict[str, Any]:
    """Return what is told of a schema beside its text, where it is not Avro's nothing."""
    told: dict[str, Any] = {}
    if schema.schema_type is not SchemaType.AVRO:
        told["schemaType"] = schema.schema_type.value
    if schema.references:
        told["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in schema.references
        ]
    return told


def read_references(said: object) -> tuple[Reference, ...]:
    """Return the references that JSON says.

    Raises:
        RegistryError: INVALID_SCHEMA: it says none.
    """
    if said is None:
        return ()
    if not isinstance(said, list):
        raise invalid_schema("references is a list")
    found = []
    for each in said:
        if not isinstance(each, Mapping):
            raise invalid_schema("a reference is an object")
        name, subject, version = (each.get(part) for part in ("name", "subject", "version"))
        if not (isinstance(name, str) and isinstance(subject, str) and isinstance(version, int)):
            raise invalid_schema("a reference has name, subject and version")
        found.append(Reference(name, subject, version))
    return tuple(found)


def _discard(found: dict[Any, dict[int, None]], key: object, schema_id: int) -> None:
    """Take an id out of those that are kept under a key, which goes with the last one."""
    there = found.get(key, {})
    there.pop(schema_id, None)
    if not there:
        found.pop(key, None)


def _set_or_forget(
    settings: dict[Any, Any], subject: str | None, value: object, kind: type
) -> None:
    if isinstance(value, kind):
        settings[subject] = value
    else:
        settings.pop(subject, None)
