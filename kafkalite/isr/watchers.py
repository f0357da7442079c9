"""Those who are called when a partition moves."""

from collections.abc import Callable

Watcher = Callable[[], object]

Watchers = dict[Watcher, None]
"""In the order in which they came."""


def call_all(watchers: Watchers) -> None:
    """Call all; those that leave or come meanwhile make no difference."""
    for watcher in list(watchers):
        watcher()
