"""Handlers by API, imported when they are first asked for (decision 0134)."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Final, NamedTuple

from kafkalite.api.handler import Handler
from kafkalite.wire.api import ApiKey

PACKAGE: Final = "kafkalite.api"


class Entry(NamedTuple):
    """One API: where its handler is, and what clients are told of it.

    Attributes:
        key: of the API.
        module: of this package, in whose `HANDLERS` it is; empty where there is none.
        first: version that ApiVersions tells of.
        last: version, inclusive.
        inter_broker_only: only brokers ask this.
    """

    key: ApiKey
    module: str
    first: int
    last: int
    inter_broker_only: bool = False

    @classmethod
    def of(cls, handler: Handler) -> "Entry":
        """Return the entry of a handler that is there already."""
        api = handler.api
        return cls(api.key, "", api.advertise_from, api.versions[1], handler.inter_broker_only)


class Handlers(Iterable[Handler]):
    """The handlers that a table names.

    Attributes:
        table: one entry for each API.
    """

    def __init__(self, table: tuple[Entry, ...]) -> None:
        self.table = table
        self._by_key = {int(entry.key): entry for entry in table}
        assert len(self._by_key) == len(table)

    def get(self, key: int) -> Handler | None:
        """Return the handler of an API, None if it is not served; imports its module."""
        entry = self._by_key.get(key)
        if entry is None:
            return None
        handlers: Iterable[Handler] = import_module(f"{PACKAGE}.{entry.module}").HANDLERS
        return next(handler for handler in handlers if handler.api.key is entry.key)

    def __iter__(self) -> Iterator[Handler]:
        """Return all of them, each imported when it is reached."""
        for key in self._by_key:
            handler = self.get(key)
            assert handler is not None
            yield handler
