"""A client of any schema registry that has Confluent's API; blocks."""

import base64
import json
import urllib.error
import urllib.request
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from kafkalite.registry.model import (
    Reference,
    Schema,
    SchemaType,
    read_references,
    type_and_references,
)
from kafkalite.registry.values import ResolvedSchema

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
TIMEOUT_S: Final = 10.0
ANSWER_MAX_BYTES: Final = 16 * 1024 * 1024
REFERENCES_MAX: Final = 1_000


class SchemaRegistryError(Exception):
    """The registry refused, or did not answer; the message is one line and names it.

    Attributes:
        code: the registry's error code; 0 if there was no answer.
    """

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class SchemaRegistryClient:
    """Asks one registry; what has an id never changes, and is asked for once.

    Args:
        url: `http://[USER:PASSWORD@]HOST[:PORT][/PATH]`; a password without a user is a token.
        timeout_s: for each question.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no URL of a schema registry, such as http://HOST:8081")
        self._authorization = None
        host = parts.netloc.rpartition("@")[2]
        if parts.username == "":
            self._authorization = f"Bearer {unquote(parts.password or '')}"
        elif parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._authorization = f"Basic {base64.b64encode(login.encode()).decode()}"
        self.url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._timeout_s = timeout_s
        self._by_id: dict[int, ResolvedSchema] = {}

    def schema(self, schema_id: int) -> ResolvedSchema:
        """Return a schema by its id, with what it refers to.

        Raises:
            SchemaRegistryError: there is none, or no answer.
        """
        found = self._by_id.get(schema_id)
        if found is None:
            found = self._resolved(self._ask("GET", f"/schemas/ids/{schema_id}"))
            self._by_id[schema_id] = found
        return found

    def latest(self, subject: str) -> tuple[int, ResolvedSchema]:
        """Return id and schema of a subject's latest version.

        Raises:
            SchemaRegistryError: there is none, or no answer.
        """
        told = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        return int(told["id"]), self._resolved(told)

    def versions(self, subject: str) -> dict[int, ResolvedSchema]:
        """Return all versions of a subject by their ids, the latest last.

        Raises:
            SchemaRegistryError: there are none, or no answer.
        """
        path = f"/subjects/{quote(subject, safe='')}/versions"
        found = {}
        for version in self._ask("GET", path):
            told = self._ask("GET", f"{path}/{version}")
            found[int(told["id"])] = self._resolved(told)
        return found

    def register(self, subject: str, schema: Schema) -> tuple[int, ResolvedSchema]:
        """Make a schema a version of a subject, if it is none yet; return its id.

        Raises:
            SchemaRegistryError: it is none, or breaks readers (code 409), or no answer.
        """
        said = {**type_and_references(schema), "schema": schema.text}
        told = self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", said)
        return int(told["id"]), self.schema(int(told["id"]))

    def _resolved(self, told: dict[str, Any]) -> ResolvedSchema:
        schema = _schema_of(told)
        found: dict[Reference, tuple[str, Schema]] = {}
        self._collect(schema, found)
        return ResolvedSchema(schema, tuple(found.values()))

    def _collect(self, schema: Schema, found: dict[Reference, tuple[str, Schema]]) -> None:
        for each in schema.references:
            if each in found:
                continue
            if len(found) >= REFERENCES_MAX:
                raise SchemaRegistryError(f"{self.url}: more than {REFERENCES_MAX} references")
            path = f"/subjects/{quote(each.subject, safe='')}/versions/{each.version}"
            inner = _schema_of(self._ask("GET", f"{path}?deleted=true"))
            self._collect(inner, found)
            found[each] = (each.name, inner)

    def _ask(self, method: str, path: str, said: object = None) -> Any:
        data = None if said is None else json.dumps(said).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("Accept", CONTENT_TYPE)
        request.add_header("Content-Type", CONTENT_TYPE)
        if self._authorization is not None:
            request.add_header("Authorization", self._authorization)
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:
                return json.loads(answer.read(ANSWER_MAX_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise SchemaRegistryError(f"schema registry {self.url}: {reason}") from None

    def _refusal(self, error: urllib.error.HTTPError) -> SchemaRegistryError:
        try:
            told = json.loads(error.read(ANSWER_MAX_BYTES))
            message, code = str(told["message"]), int(told["error_code"])
        except (ValueError, KeyError, TypeError):
            message, code = error.reason, error.code
        return SchemaRegistryError(f"schema registry {self.url}: {message} ({code})", code)


def _schema_of(told: dict[str, Any]) -> Schema:
    kind = SchemaType(told.get("schemaType") or "AVRO")
    return Schema(kind, str(told["schema"]), read_references(told.get("references")))
