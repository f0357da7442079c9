"""Confluent's REST API of a schema registry, on the broker's HTTP port under /schema-registry.

Not there: exporters, encryption keys, contexts but the default one, rules and metadata of schemas.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from kafkalite.coordinator.shard import Event
from kafkalite.http.routing import HttpError, HttpRequest, HttpResponse, Route, Router
from kafkalite.registry.errors import RegistryError, RegistryErrorCode
from kafkalite.registry.model import (
    GLOBAL,
    VERSION_MAX,
    Compatibility,
    Mode,
    RegistryState,
    Schema,
    SchemaType,
    schema_json,
    type_and_references,
)
from kafkalite.registry.schemas import Resolved, formatted
from kafkalite.registry.service import HandedOn, Registry, in_thread
from kafkalite.registry.shard import (
    CheckCompatibility,
    DeleteSubject,
    DeleteVersion,
    Look,
    LookUp,
    Register,
    SetCompatibility,
    SetMode,
    read_schema,
)
from kafkalite.wire.errors import ErrorCode, KafkaError

PREFIX: Final = "/schema-registry"
CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
CONTENT_TYPES: Final = frozenset(
    {CONTENT_TYPE, "application/vnd.schemaregistry+json", "application/json"}
)
BODY_MAX_BYTES: Final = 2 * 1024 * 1024
SUBJECTS_LIMIT_MAX: Final = 10_000

Endpoint = Callable[[HttpRequest], Awaitable[Any]]
Answer = TypeVar("Answer")
Setting = TypeVar("Setting", Compatibility, Mode)


class RegistryApi:
    """Answers one broker's registry requests.

    Requests that only the leader of `_schemas-0` can answer are handed on to it.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self._router: Router | None = None

    async def answer_envelope(self, frame: memoryview) -> bytes:
        """Return the answer to what another broker handed on: status and body as JSON.

        Raises:
            KafkaError: NOT_COORDINATOR, this broker does not lead; INVALID_REQUEST.
        """
        handed_on = HandedOn.decode(frame)
        if self._router is None:
            self._router = Router(self.routes())
        try:
            route, parameters = self._router.find(handed_on.method, handed_on.path)
        except HttpError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, error.message) from None
        request = HttpRequest(
            method=handed_on.method,
            path=handed_on.path,
            query=handed_on.query,
            body=handed_on.body,
            parameters=parameters,
        )
        answer = await self._answer(self._endpoints[route.method, route.path], request)
        assert isinstance(answer.body, bytes)
        return json.dumps([answer.status, answer.body.decode("latin-1")]).encode()

    def routes(self) -> list[Route]:
        """Return what is answered."""
        subject, version = "/subjects/{subject}", "/subjects/{subject}/versions/{version}"
        return [
            self._route("GET", "", self._root),
            self._route("GET", "/", self._root),
            self._route("GET", "/v1/metadata/id", self._metadata_id),
            self._route("GET", "/v1/metadata/version", self._metadata_version),
            self._route("GET", "/contexts", self._contexts),
            self._route("GET", "/schemas/types", self._types),
            self._route("GET", "/schemas", self._schemas),
            self._route("GET", "/schemas/ids/{id}", self._schema),
            self._route("GET", "/schemas/ids/{id}/schema", self._schema_text),
            self._route("GET", "/schemas/ids/{id}/subjects", self._schema_subjects),
            self._route("GET", "/schemas/ids/{id}/versions", self._schema_versions),
            self._route("GET", "/subjects", self._subjects),
            self._route("POST", subject, self._look_up),
            self._route("DELETE", subject, self._delete_subject),
            self._route("GET", f"{subject}/versions", self._versions),
            self._route("POST", f"{subject}/versions", self._register),
            self._route("GET", version, self._version),
            self._route("DELETE", version, self._delete_version),
            self._route("GET", f"{version}/schema", self._version_text),
            self._route("GET", f"{version}/referencedby", self._referenced_by),
            self._route("POST", "/compatibility/subjects/{subject}/versions", self._check),
            self._route(
                "POST", "/compatibility/subjects/{subject}/versions/{version}", self._check
            ),
            self._route("GET", "/config", self._config),
            self._route("PUT", "/config", self._set_config),
            self._route("DELETE", "/config", self._delete_config),
            self._route("GET", "/config/{subject}", self._config),
            self._route("PUT", "/config/{subject}", self._set_config),
            self._route("DELETE", "/config/{subject}", self._delete_config),
            self._route("GET", "/mode", self._mode),
            self._route("PUT", "/mode", self._set_mode),
            self._route("DELETE", "/mode", self._delete_mode),
            self._route("GET", "/mode/{subject}", self._mode),
            self._route("PUT", "/mode/{subject}", self._set_mode),
            self._route("DELETE", "/mode/{subject}", self._delete_mode),
        ]

    def _route(self, method: str, path: str, endpoint: Endpoint) -> Route:
        async def answer(request: HttpRequest) -> HttpResponse:
            try:
                return await self._answer(endpoint, request)
            except KafkaError:
                pass  # another broker leads
            handed_on = HandedOn(request.method, request.path, {**request.query}, request.body)
            try:
                answered = await self.registry.hand_on(handed_on)
                if answered is None:
                    return await self._answer(endpoint, request)
            except RegistryError as error:
                return _refusal(error)
            except KafkaError as error:
                return _refusal(RegistryError(RegistryErrorCode.FORWARDING, str(error)))
            status, body = answered
            return HttpResponse(status=status, body=body, content_type=CONTENT_TYPE)

        self._endpoints[method, PREFIX + path] = endpoint
        return Route(
            method=method,
            path=PREFIX + path,
            handler=answer,
            body_max_bytes=BODY_MAX_BYTES,
            content_types=CONTENT_TYPES,
        )

    async def _answer(self, endpoint: Endpoint, request: HttpRequest) -> HttpResponse:
        """Return this broker's own answer.

        Raises:
            KafkaError: NOT_COORDINATOR, another broker has to be asked.
        """
        try:
            return _json(await endpoint(request))
        except RegistryError as error:
            return _refusal(error)
        except HttpError as error:
            return _json(
                {"error_code": error.status, "message": error.message}, status=error.status
            )

    async def _ask(self, event: Event[Answer]) -> Answer:
        return await self.registry.ask(event)

    async def _look(self, look: Callable[[RegistryState], Answer]) -> Answer:
        return await self._ask(Look(look))

    # --- Probing ---------------------------------------------------------------------------------

    async def _root(self, request: HttpRequest) -> Any:
        del request
        return await self._look(lambda _: {})

    async def _metadata_id(self, request: HttpRequest) -> Any:
        del request
        scope = {"path": [], "clusters": {
            "kafka-cluster": self.registry.cluster_id, "schema-registry-cluster": "kafkalite"
        }}  # fmt: skip
        return await self._look(lambda _: {"scope": scope, "id": ""})

    async def _metadata_version(self, request: HttpRequest) -> Any:
        del request
        from kafkalite import __version__

        return await self._look(lambda _: {"version": f"kafkalite-{__version__}", "commitId": ""})

    async def _contexts(self, request: HttpRequest) -> Any:
        del request
        return await self._look(lambda _: ["."])

    # --- Schemas ---------------------------------------------------------------------------------

    async def _types(self, request: HttpRequest) -> Any:
        del request
        return await self._look(lambda _: [each.value for each in SchemaType])

    async def _schemas(self, request: HttpRequest) -> Any:
        prefix, deleted = request.text("subjectPrefix"), request.flag("deleted")
        latest = request.flag("latestOnly")
        start, limit = _page(request)

        def look(state: RegistryState) -> Any:
            found = []
            for subject in state.subject_names(deleted=deleted, prefix=prefix):
                versions = state.versions(subject, deleted=deleted)
                found += versions[-1:] if latest else versions
            return [schema_json(each, state.schemas[each.schema_id]) for each in found[start:limit]]

        return await self._look(look)

    async def _schema(self, request: HttpRequest) -> Any:
        # Subjects only say in which context the id counts, and there is one.
        schema_id = _schema_id(request)
        wants_max, form = request.flag("fetchMaxId"), request.text("format")

        def look(state: RegistryState) -> Any:
            schema = state.schema(schema_id)
            told = {**type_and_references(schema), "schema": schema.text}
            told |= {"maxId": state.last_id} if wants_max else {}
            return told, schema, [*state.resolve(schema.references)] if form else []

        return await self._formatted(await self._look(look), form)

    async def _schema_text(self, request: HttpRequest) -> Any:
        return _Text((await self._schema(request))["schema"])

    async def _schema_subjects(self, request: HttpRequest) -> Any:
        schema_id, deleted = _schema_id(request), request.flag("deleted")

        def look(state: RegistryState) -> Any:
            state.schema(schema_id)
            found = state.versions_with(schema_id, deleted=deleted)
            return [*dict.fromkeys(each.subject for each in found)]

        return await self._look(look)

    async def _schema_versions(self, request: HttpRequest) -> Any:
        schema_id, deleted = _schema_id(request), request.flag("deleted")

        def look(state: RegistryState) -> Any:
            state.schema(schema_id)
            found = state.versions_with(schema_id, deleted=deleted)
            return [{"subject": each.subject, "version": each.version} for each in found]

        return await self._look(look)

    # --- Subjects --------------------------------------------------------------------------------

    async def _subjects(self, request: HttpRequest) -> Any:
        prefix, deleted = request.text("subjectPrefix"), request.flag("deleted")
        deleted_only = request.flag("deletedOnly")
        start, limit = _page(request)

        def look(state: RegistryState) -> Any:
            names = state.subject_names(deleted=deleted or deleted_only, prefix=prefix)
            if deleted_only:
                names = [name for name in names if not state.versions(name)]
            return names[start:limit]

        return await self._look(look)

    async def _versions(self, request: HttpRequest) -> Any:
        subject, deleted = _subject(request), request.flag("deleted")
        return await self._look(
            lambda state: [
                each.version for each in state.existing_versions(subject, deleted=deleted)
            ]
        )

    async def _version(self, request: HttpRequest) -> Any:
        subject, wanted = _subject(request), request.parameters["version"]
        deleted, form = request.flag("deleted"), request.text("format")

        def look(state: RegistryState) -> Any:
            found = state.version(subject, wanted, deleted=deleted)
            schema = state.schemas[found.schema_id]
            references = [*state.resolve(schema.references)] if form else []
            return schema_json(found, schema), schema, references

        return await self._formatted(await self._look(look), form)

    async def _formatted(self, looked: tuple[Any, Schema, Resolved], form: str) -> Any:
        told, schema, references = looked
        if form:
            told["schema"] = await in_thread(partial(formatted, schema, references, form))
        return told

    async def _version_text(self, request: HttpRequest) -> Any:
        return _Text((await self._version(request))["schema"])

    async def _referenced_by(self, request: HttpRequest) -> Any:
        subject, wanted = _subject(request), request.parameters["version"]

        def look(state: RegistryState) -> Any:
            found = state.version(subject, wanted, deleted=True)
            return state.referenced_by(subject, found.version)

        return await self._look(look)

    async def _register(self, request: HttpRequest) -> Any:
        said = request.json()
        imported = _imported(said, "id")
        event = Register(
            subject=_subject(request),
            schema=read_schema(said),
            normalize=request.flag("normalize"),
            version=None if imported is None else _imported(said, "version"),
            schema_id=imported,
        )
        return await self._ask(event)

    async def _look_up(self, request: HttpRequest) -> Any:
        return await self._ask(
            LookUp(
                subject=_subject(request),
                schema=read_schema(request.json()),
                normalize=request.flag("normalize"),
                deleted=request.flag("deleted"),
            )
        )

    async def _delete_subject(self, request: HttpRequest) -> Any:
        permanent = request.flag("permanent")
        return await self._ask(DeleteSubject(subject=_subject(request), permanent=permanent))

    async def _delete_version(self, request: HttpRequest) -> Any:
        return await self._ask(
            DeleteVersion(
                subject=_subject(request),
                version=request.parameters["version"],
                permanent=request.flag("permanent"),
            )
        )

    async def _check(self, request: HttpRequest) -> Any:
        return await self._ask(
            CheckCompatibility(
                subject=_subject(request),
                schema=read_schema(request.json()),
                version=request.parameters.get("version"),
                verbose=request.flag("verbose"),
                normalize=request.flag("normalize"),
            )
        )

    # --- Settings --------------------------------------------------------------------------------

    async def _config(self, request: HttpRequest) -> Any:
        subject = request.parameters.get("subject", GLOBAL)
        falls_back = request.flag("defaultToGlobal")

        def look(state: RegistryState) -> Any:
            if subject is None:
                found = state.compatibilities.get(GLOBAL, Compatibility.BACKWARD)
            elif subject in state.compatibilities or falls_back:
                found = state.compatibility(subject)
            else:
                raise RegistryError(
                    RegistryErrorCode.SUBJECT_COMPATIBILITY_NOT_CONFIGURED,
                    f"Subject '{subject}' does not have subject-level compatibility configured",
                )
            return {"compatibilityLevel": found.value}

        return await self._look(look)

    async def _set_config(self, request: HttpRequest) -> Any:
        said = request.json().get("compatibility")
        compatibility = _one_of(
            Compatibility, said, RegistryErrorCode.INVALID_COMPATIBILITY, "compatibility level"
        )
        subject = request.parameters.get("subject", GLOBAL)
        await self._ask(SetCompatibility(subject=subject, compatibility=compatibility))
        return {"compatibility": compatibility.value}

    async def _delete_config(self, request: HttpRequest) -> Any:
        subject = request.parameters.get("subject", GLOBAL)
        before = await self._ask(SetCompatibility(subject=subject, compatibility=None))
        return {"compatibility": (before or Compatibility.BACKWARD).value}

    async def _mode(self, request: HttpRequest) -> Any:
        subject = request.parameters.get("subject", GLOBAL)
        falls_back = request.flag("defaultToGlobal")

        def look(state: RegistryState) -> Any:
            if subject is None:
                return {"mode": state.modes.get(GLOBAL, Mode.READWRITE).value}
            if subject in state.modes or falls_back:
                return {"mode": state.mode(subject).value}
            raise RegistryError(
                RegistryErrorCode.SUBJECT_MODE_NOT_CONFIGURED,
                f"Subject '{subject}' does not have subject-level mode configured",
            )

        return await self._look(look)

    async def _set_mode(self, request: HttpRequest) -> Any:
        mode = _one_of(Mode, request.json().get("mode"), RegistryErrorCode.INVALID_MODE, "mode")
        subject = request.parameters.get("subject", GLOBAL)
        await self._ask(SetMode(subject=subject, mode=mode, force=request.flag("force")))
        return {"mode": mode.value}

    async def _delete_mode(self, request: HttpRequest) -> Any:
        subject = request.parameters.get("subject", GLOBAL)
        before = await self._ask(SetMode(subject=subject, mode=None))
        return {"mode": (before or Mode.READWRITE).value}


class _Text:
    """A body that is JSON already."""

    def __init__(self, text: str) -> None:
        self.text = text


def _json(said: Any, *, status: int = 200) -> HttpResponse:
    if isinstance(said, _Text):
        body = said.text.encode()
    else:
        body = json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")
    return HttpResponse(status=status, body=body, content_type=CONTENT_TYPE)


def _refusal(error: RegistryError) -> HttpResponse:
    said = {"error_code": int(error.code), "message": error.message}
    return _json(said, status=error.code.http_status)


def _subject(request: HttpRequest) -> str:
    """Return the subject that a path names; in the default context it may be named with it."""
    return request.parameters["subject"].removeprefix(":.:")


def _schema_id(request: HttpRequest) -> int:
    text = request.parameters["id"]
    if not text.isascii() or not text.isdigit() or len(text) > len(str(2**31)):
        raise HttpError(404, f"{text!r} is no id of a schema")
    return int(text)


def _imported(said: Mapping[str, Any], name: str) -> int | None:
    """Return an id or a version that is to be taken over; None where none is given."""
    number = said.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
        return None
    if number > VERSION_MAX:
        raise RegistryError(
            RegistryErrorCode.OPERATION_NOT_PERMITTED, f"{name} is at most {VERSION_MAX}"
        )
    return number


def _page(request: HttpRequest) -> tuple[int, int]:
    """Return the first and the last (exclusive) of what is listed."""
    start = request.number("offset", 0)
    limit = int(request.query.get("limit", "-1")) if _is_number(request.query, "limit") else -1
    size = SUBJECTS_LIMIT_MAX if limit < 0 else min(limit, SUBJECTS_LIMIT_MAX)
    return start, start + size


def _is_number(query: Mapping[str, str], name: str) -> bool:
    return re.fullmatch(r"-?[0-9]{1,18}", query.get(name, "")) is not None


def _one_of(kind: type[Setting], said: object, code: RegistryErrorCode, what: str) -> Setting:
    try:
        return kind(str(said).upper())
    except ValueError:
        names = ", ".join(each.value for each in kind)
        raise RegistryError(code, f"Invalid {what}. Valid values are {names}") from None
