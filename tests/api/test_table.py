from importlib import import_module

import pytest

from kafkalite.api import HANDLERS
from kafkalite.api.table import PACKAGE, Entry, Handlers
from kafkalite.wire.api import ApiKey


@pytest.mark.parametrize("entry", HANDLERS.table, ids=lambda entry: entry.key.name)
def test_table_says_what_the_handlers_module_declares(entry):
    """Clients are told of versions by the table, before the module is imported."""
    (handler,) = (
        each
        for each in import_module(f"{PACKAGE}.{entry.module}").HANDLERS
        if each.api.key is entry.key
    )
    assert Entry.of(handler)._replace(module=entry.module) == entry
    assert HANDLERS.get(int(entry.key)) is handler


def test_every_handler_that_a_module_has_is_in_the_table():
    named = {entry.module for entry in HANDLERS.table}
    declared = {
        handler.api.key for name in named for handler in import_module(f"{PACKAGE}.{name}").HANDLERS
    }
    assert declared == {entry.key for entry in HANDLERS.table}
    assert {handler.api.key for handler in HANDLERS} == declared


def test_api_that_is_not_served_has_no_handler():
    assert HANDLERS.get(ApiKey.VOTE) is None
    assert HANDLERS.get(9_999) is None


def test_two_entries_of_one_api_are_a_bug():
    with pytest.raises(AssertionError):
        Handlers((Entry(ApiKey.FETCH, "fetch", 4, 18),) * 2)
