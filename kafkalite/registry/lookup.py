"""Schemas for whoever shows records: each is asked for once, then values are decoded at once."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import trio

from kafkalite.registry.client import SchemaRegistryClient, SchemaRegistryError
from kafkalite.registry.errors import RegistryError
from kafkalite.registry.values import Framed, ResolvedSchema, decode, unframe

KNOWN_MAX: Final = 1_000
RETRY_S: Final = 5.0
"""A schema that was not there is asked for again after so long."""

Fetch = Callable[[int], Awaitable[ResolvedSchema]]
"""Returns a schema by its id; raises RegistryError or SchemaRegistryError."""


class Decoded(NamedTuple):
    """A decoded key or value.

    Attributes:
        schema_type: "avro", "json" or "protobuf"; "" if the schema is not known.
        value: its JSON.
        problem: why there is none; "" if there is one.
    """

    schema_id: int
    schema_type: str
    value: Any = None
    problem: str = ""


class _Missing(NamedTuple):
    problem: str
    until_s: float


class SchemaLookup:
    """Decodes by the schemas of one registry."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._known: dict[int, ResolvedSchema | _Missing] = {}

    async def load(self, *datas: bytes | None) -> None:
        """Ask for the schemas that these were written with, unless they are known."""
        for data in datas:
            framed = unframe(data)
            if framed is None or not self._is_wanted(framed.schema_id):
                continue
            found: ResolvedSchema | _Missing
            try:
                found = await self._fetch(framed.schema_id)
            except (RegistryError, SchemaRegistryError) as error:
                found = _Missing(str(error), trio.current_time() + RETRY_S)
            while len(self._known) >= KNOWN_MAX:
                del self._known[next(iter(self._known))]
            self._known[framed.schema_id] = found

    def _is_wanted(self, schema_id: int) -> bool:
        known = self._known.get(schema_id)
        if isinstance(known, _Missing):
            return trio.current_time() >= known.until_s
        return known is None

    def decode(self, data: bytes | None) -> Decoded | None:
        """Return what bytes are that were given to `load` before; None if they have no schema."""
        framed = unframe(data)
        if framed is None:
            return None
        known = self._known.get(framed.schema_id)
        if not isinstance(known, ResolvedSchema):
            problem = known.problem if known is not None else "the schema was not asked for"
            return Decoded(framed.schema_id, "", problem=problem)
        return _decoded(framed, known)


def _decoded(framed: Framed, known: ResolvedSchema) -> Decoded:
    kind = known.schema.schema_type.value.lower()
    try:
        return Decoded(framed.schema_id, kind, decode(known, framed.payload))
    except ValueError as error:
        return Decoded(framed.schema_id, kind, problem=str(error))


def remote(url: str) -> SchemaLookup:
    """Return a lookup in the registry at `url`, which is asked by threads.

    Raises:
        ValueError: it is no URL.
    """
    client = SchemaRegistryClient(url)

    async def fetch(schema_id: int) -> ResolvedSchema:
        return await trio.to_thread.run_sync(client.schema, schema_id, abandon_on_cancel=True)

    return SchemaLookup(fetch)
