"""The registry as a coordinator: decides about requests, and is replayed from `_schemas`.

A request is an event with an answer in JSON's types. A `RegistryError` is a refusal, and nothing of
it is written.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafkalite.coordinator.shard import (
    NOTHING,
    Answer_co,
    Event,
    Now,
    RecordCodec,
    Result,
    StoredRecord,
    Ticket,
)
from kafkalite.registry import schemas
from kafkalite.registry.codec import RegistryCodec
from kafkalite.registry.errors import (
    RegistryError,
    RegistryErrorCode,
    check_characters,
    invalid_schema,
)
from kafkalite.registry.model import (
    GLOBAL,
    ClearSubjectKey,
    Compatibility,
    ConfigKey,
    DeleteSubjectKey,
    Mode,
    ModeKey,
    NoopKey,
    RegistryState,
    Schema,
    SchemaKey,
    SchemaType,
    SchemaValue,
    Version,
    read_references,
    schema_json,
    type_and_references,
)

SCHEMAS_TOPIC: Final = "_schemas"
SUBJECT_MAX: Final = 1_024
SUBJECTS_MAX: Final = 100_000
"""Chosen by hand: some hundred times what a developer has; each costs about a kilobyte."""


@dataclass(slots=True, frozen=True, kw_only=True)
class Register(Event[dict[str, Any]]):
    """Make a schema a version of a subject.

    Attributes:
        version, schema_id: of imported schemas (mode IMPORT); None lets the registry choose.
    """

    subject: str
    schema: Schema
    normalize: bool = False
    version: int | None = None
    schema_id: int | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class LookUp(Event[dict[str, Any]]):
    """Find the version of a subject that is a schema."""

    subject: str
    schema: Schema
    normalize: bool = False
    deleted: bool = False


@dataclass(slots=True, frozen=True, kw_only=True)
class CheckCompatibility(Event[dict[str, Any]]):
    """Tell whether a schema could become a version of a subject.

    Attributes:
        version: to be compared with; None for those that the subject's setting names.
        verbose: tell why not.
    """

    subject: str
    schema: Schema
    version: str | None = None
    verbose: bool = False
    normalize: bool = False


@dataclass(slots=True, frozen=True, kw_only=True)
class DeleteVersion(Event[int]):
    """Delete one version, softly first."""

    subject: str
    version: str
    permanent: bool = False


@dataclass(slots=True, frozen=True, kw_only=True)
class DeleteSubject(Event[list[int]]):
    """Delete all versions, softly first."""

    subject: str
    permanent: bool = False


@dataclass(slots=True, frozen=True, kw_only=True)
class SetCompatibility(Event[Compatibility | None]):
    """Set what holds for a subject, or all; None takes a subject's own away."""

    subject: str | None
    compatibility: Compatibility | None


@dataclass(slots=True, frozen=True, kw_only=True)
class SetMode(Event[Mode | None]):
    """Set what may be done to a subject, or all; None takes a subject's own away."""

    subject: str | None
    mode: Mode | None
    force: bool = False


@dataclass(slots=True, frozen=True)
class Look(Event[Answer_co]):
    """Answer what a function finds in the state; it may not change anything."""

    function: Callable[[RegistryState], Answer_co]


class RegistryShard:
    """Core of the registry; a `coordinator.shard.Shard`."""

    def __init__(self) -> None:
        self.state = RegistryState()
        self._handlers: dict[type, Callable[..., Result]] = {
            Look: self._look,
            Register: self._register,
            LookUp: self._look_up,
            CheckCompatibility: self._check,
            DeleteVersion: self._delete_version,
            DeleteSubject: self._delete_subject,
            SetCompatibility: self._set_compatibility,
            SetMode: self._set_mode,
        }

    def handle(self, event: Event[object], ticket: Ticket, now: Now) -> Result:
        """Decide about a request; the reply is its answer, or a `RegistryError`."""
        del now
        try:
            return self._handlers[type(event)](event, ticket)
        except RegistryError as error:
            return Result(replies=((ticket, error),))

    def on_loaded(self, now: Now) -> Result:
        """Nothing: the registry has no timers."""
        del now
        return NOTHING

    def on_time(self, now: Now) -> Result:
        """Nothing: the registry has no timers."""
        del now
        return NOTHING

    def next_deadline_ms(self) -> int | None:
        """Return None: the registry has no timers."""
        return None

    def replay(self, record: StoredRecord) -> None:
        """Make a record part of the state."""
        key: Any = record.key
        value: Any = record.value
        self.state.replay(key, value)

    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """Nothing: the topic is written without transactions."""

    # --- Requests --------------------------------------------------------------------------------

    def _look(self, event: Look[object], ticket: Ticket) -> Result:
        return Result(replies=((ticket, event.function(self.state)),))

    def _register(self, event: Register, ticket: Ticket) -> Result:
        state, subject = self.state, event.subject
        self._check_writable(subject, importing=event.schema_id is not None)
        if not subject or len(subject) > SUBJECT_MAX:
            raise RegistryError(
                RegistryErrorCode.OPERATION_NOT_PERMITTED,
                f"a subject has 1 to {SUBJECT_MAX} characters",
            )
        schema = self._canonical(event.schema, normalize=event.normalize)
        schema_id = state.id_of(schema)
        for each in state.versions(subject):
            if each.schema_id == schema_id and event.schema_id in (None, schema_id):
                return Result(replies=((ticket, self._registered(each)),))
        if event.schema_id is None:
            self._check_compatible(subject, schema)
        elif event.schema_id in state.schemas and state.schemas[event.schema_id] != schema:
            raise RegistryError(
                RegistryErrorCode.OPERATION_NOT_PERMITTED,
                f"Overwrite new schema with id {event.schema_id} is not permitted.",
            )
        if subject not in state.subjects and len(state.subjects) >= SUBJECTS_MAX:
            raise RegistryError(
                RegistryErrorCode.OPERATION_NOT_PERMITTED, f"there are {SUBJECTS_MAX} subjects"
            )
        if event.schema_id is not None:
            schema_id = event.schema_id
        elif schema_id is None:
            schema_id = state.last_id + 1
        number = event.version or max(state.subjects.get(subject, {}), default=0) + 1
        version = Version(subject, number, schema_id)
        records = [_record(version, schema)]
        return Result(records, ((ticket, self._registered(version, schema)),))

    def _registered(self, version: Version, schema: Schema | None = None) -> dict[str, Any]:
        schema = schema or self.state.schemas[version.schema_id]
        return {
            "id": version.schema_id,
            "version": version.version,
            **type_and_references(schema),
            "schema": schema.text,
        }

    def _look_up(self, event: LookUp, ticket: Ticket) -> Result:
        state = self.state
        state.existing_versions(event.subject, deleted=event.deleted)
        schema = self._canonical(event.schema, normalize=event.normalize)
        found = state.version_of(event.subject, schema, deleted=event.deleted)
        return Result(replies=((ticket, schema_json(found, schema)),))

    def _check(self, event: CheckCompatibility, ticket: Ticket) -> Result:
        state = self.state
        schema = self._canonical(event.schema, normalize=event.normalize)
        compatibility = state.compatibility(event.subject)
        if event.version is None:
            earlier = _earlier(state, event.subject, compatibility)
        else:
            earlier = [state.version(event.subject, event.version)]
        messages = self._incompatibilities(schema, earlier, compatibility)
        answer: dict[str, Any] = {"is_compatible": not messages}
        if event.verbose:
            answer["messages"] = messages
        return Result(replies=((ticket, answer),))

    def _delete_version(self, event: DeleteVersion, ticket: Ticket) -> Result:
        state = self.state
        self._check_writable(event.subject)
        found = state.version(event.subject, event.version, deleted=True)
        self._check_unreferenced(found)
        if event.permanent and not found.is_deleted:
            raise RegistryError(
                RegistryErrorCode.VERSION_NOT_SOFT_DELETED,
                f"Subject '{event.subject}' Version {found.version} was not deleted first before "
                "being permanently deleted",
            )
        if not event.permanent and found.is_deleted:
            raise RegistryError(
                RegistryErrorCode.VERSION_SOFT_DELETED,
                f"Subject '{event.subject}' Version {found.version} was soft deleted. Set "
                "permanent=true to delete permanently",
            )
        records = [self._deletion(found, event.permanent)]
        if event.permanent:
            records += self._kept_id([found])
        return Result(records, ((ticket, found.version),))

    def _delete_subject(self, event: DeleteSubject, ticket: Ticket) -> Result:
        state, subject = self.state, event.subject
        self._check_writable(subject)
        versions = state.existing_versions(subject, deleted=True)
        alive = [each for each in versions if not each.is_deleted]
        if event.permanent and alive:
            raise RegistryError(
                RegistryErrorCode.SUBJECT_NOT_SOFT_DELETED,
                f"Subject '{subject}' was not deleted first before being permanently deleted",
            )
        if not event.permanent and not alive:
            raise RegistryError(
                RegistryErrorCode.SUBJECT_SOFT_DELETED,
                f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently",
            )
        for each in versions:
            self._check_unreferenced(each)
        if event.permanent:
            records = [self._deletion(each, is_permanent=True) for each in versions]
            records.append(StoredRecord(ClearSubjectKey(subject), None))
            records += self._kept_id(versions)
            for key, there in (
                (ConfigKey(subject), state.compatibilities),
                (ModeKey(subject), state.modes),
            ):
                if subject in there:
                    records.append(StoredRecord(key, None))
            told = versions
        else:
            records = [StoredRecord(DeleteSubjectKey(subject), alive[-1].version)]
            told = alive
        return Result(records, ((ticket, [each.version for each in told]),))

    def _kept_id(self, deleted: Iterable[Version]) -> list[StoredRecord]:
        """Return what keeps the highest id from being given again, if nothing else does."""
        last_id = self.state.last_id
        if all(each.schema_id != last_id for each in deleted):
            return []
        return [StoredRecord(NoopKey(), last_id)]

    def _deletion(self, version: Version, is_permanent: bool) -> StoredRecord:
        if is_permanent:
            return StoredRecord(SchemaKey(version.subject, version.version), None)
        deleted = Version(version.subject, version.version, version.schema_id, is_deleted=True)
        return _record(deleted, self.state.schemas[version.schema_id])

    def _set_compatibility(self, event: SetCompatibility, ticket: Ticket) -> Result:
        before = self.state.compatibilities.get(event.subject)
        if event.compatibility is None and before is None and event.subject is not GLOBAL:
            raise _not_configured(event.subject)
        answer = event.compatibility or before
        record = StoredRecord(ConfigKey(event.subject), event.compatibility)
        return Result([record], ((ticket, answer),))

    def _set_mode(self, event: SetMode, ticket: Ticket) -> Result:
        before = self.state.modes.get(event.subject)
        is_full = bool(self.state.subjects if event.subject is None else
                       self.state.versions(event.subject))  # fmt: skip
        if event.mode is Mode.IMPORT and is_full and not event.force:
            raise RegistryError(
                RegistryErrorCode.OPERATION_NOT_PERMITTED,
                "Cannot import since found existing subjects",
            )
        record = StoredRecord(ModeKey(event.subject), event.mode)
        return Result([record], ((ticket, event.mode or before),))

    # --- Checks ----------------------------------------------------------------------------------

    def _canonical(self, schema: Schema, *, normalize: bool) -> Schema:
        return schemas.canonical(schema, self._resolved(schema), normalize=normalize)

    def _resolved(self, schema: Schema) -> list[tuple[str, Schema]]:
        return [*self.state.resolve(schema.references)]

    def _check_writable(self, subject: str, *, importing: bool = False) -> None:
        mode = self.state.mode(subject)
        if mode is Mode.READONLY or (mode is Mode.IMPORT) is not importing:
            what = f"Subject '{subject}' is in {mode.value} mode"
            if mode is Mode.READWRITE:
                what = f"Subject '{subject}' is not in import mode"
            raise RegistryError(RegistryErrorCode.OPERATION_NOT_PERMITTED, what)

    def _check_unreferenced(self, version: Version) -> None:
        if self.state.referenced_by(version.subject, version.version):
            raise RegistryError(
                RegistryErrorCode.REFERENCE_EXISTS,
                f"One or more references exist to the schema {{subject={version.subject}, "
                f"version={version.version}}}",
            )

    def _check_compatible(self, subject: str, schema: Schema) -> None:
        compatibility = self.state.compatibility(subject)
        earlier = _earlier(self.state, subject, compatibility)
        messages = self._incompatibilities(schema, earlier, compatibility)
        if messages:
            raise RegistryError(
                RegistryErrorCode.INCOMPATIBLE_SCHEMA,
                f"Schema being registered is incompatible with an earlier schema for subject "
                f'"{subject}", details: {messages}',
            )

    def _incompatibilities(
        self, schema: Schema, earlier: Iterable[Version], compatibility: Compatibility
    ) -> list[str]:
        resolved = self._resolved(schema)
        for each in earlier:
            other = self.state.schemas[each.schema_id]
            found = _between(schema, resolved, other, self._resolved(other), compatibility)
            if found:
                return [*found, f"oldSchemaVersion: {each.version}"]
        return []


ABOUT_SCHEMAS: Final = (Register, LookUp, CheckCompatibility)
"""Events whose schemas have to be read."""


def work_of(
    event: Register | LookUp | CheckCompatibility, state: RegistryState
) -> Callable[[], None]:
    """Return what takes long of an event: a thread does it, and the shard finds it remembered.

    Raises:
        RegistryError: the shard would refuse the event too.
    """
    said = event.schema
    references = [*state.resolve(said.references)]
    compatibility = state.compatibility(event.subject)
    earlier: list[Version] = []
    if isinstance(event, CheckCompatibility) and event.version is not None:
        earlier = [state.version(event.subject, event.version)]
    elif not isinstance(event, LookUp):
        earlier = _earlier(state, event.subject, compatibility)
    others = [state.schemas[each.schema_id] for each in earlier]
    resolved = [(other, [*state.resolve(other.references)]) for other in others]

    def work() -> None:
        schema = schemas.canonical(said, references, normalize=event.normalize)
        for other, other_references in resolved:
            if other != schema and _between(
                schema, references, other, other_references, compatibility
            ):
                return

    return work


def _earlier(state: RegistryState, subject: str, compatibility: Compatibility) -> list[Version]:
    """Return the versions that a new one of a subject has to get on with, the latest first."""
    if compatibility is Compatibility.NONE:
        return []
    versions = state.versions(subject)
    return [*reversed(versions)] if compatibility.is_transitive else versions[-1:]


def _between(
    schema: Schema,
    references: schemas.Resolved,
    other: Schema,
    other_references: schemas.Resolved,
    compatibility: Compatibility,
) -> list[str]:
    """Return why a schema does not get on with an earlier one."""
    found: list[str] = []
    if compatibility.is_backward:
        found += schemas.incompatibilities(schema, references, other, other_references)
    if compatibility.is_forward:
        found += schemas.incompatibilities(other, other_references, schema, references)
    return found


class RegistryShards:
    """Shards of `_schemas` for the runtime; a `coordinator.shard.ShardKind`."""

    topic = SCHEMAS_TOPIC

    def __init__(self) -> None:
        self.codec: RecordCodec = RegistryCodec()

    def new_shard(self, partition: int) -> RegistryShard:
        """Return the empty shard."""
        del partition
        return RegistryShard()

    def event_for_disconnect(self, connection_id: int) -> Event[object] | None:
        """Return None: nobody's state ends with a connection."""
        del connection_id
        return None

    def event_for_deleted_topics(self, topics: Iterable[str]) -> Event[object] | None:
        """Return None: schemas outlive topics."""
        del topics
        return None

    def event_for_changed_topics(self, topics: Iterable[str]) -> Event[object] | None:
        """Return None: schemas know nothing of topics."""
        del topics
        return None


def read_schema(said: Mapping[str, Any]) -> Schema:
    """Return the schema of a request's body.

    Raises:
        RegistryError: INVALID_SCHEMA.
    """
    text = said.get("schema")
    if not isinstance(text, str) or not text:
        raise invalid_schema("Empty schema")
    try:
        kind = SchemaType(said.get("schemaType") or "AVRO")
    except ValueError as error:
        raise invalid_schema(str(error)) from None
    schema = Schema(kind, text, read_references(said.get("references")))
    for each in (text, *(part for one in schema.references for part in (one.name, one.subject))):
        check_characters(each)
    return schema


def _record(version: Version, schema: Schema) -> StoredRecord:
    key = SchemaKey(version.subject, version.version)
    return StoredRecord(key, SchemaValue(version.schema_id, schema, version.is_deleted))


def _not_configured(subject: str | None) -> RegistryError:
    return RegistryError(
        RegistryErrorCode.SUBJECT_COMPATIBILITY_NOT_CONFIGURED,
        f"Subject '{subject}' does not have subject-level compatibility configured",
    )
