"""Names of topics that were deleted lately, and have not come back.

A consumer that still asks for such a topic would create it again, and nobody wants that: it is the
one client that cannot know (decision 0073).
"""

from collections.abc import Callable, Container, Sequence
from typing import Final

from kafkalite.meta.changes import Change, TopicCreated, TopicDeleted
from kafkalite.meta.image import Image

Subscriber = Callable[[Sequence[Change], Image], None]

NAMES_MAX: Final = 1_000
"""As many as ids of deleted topics are remembered; the oldest go."""


class DeletedTopics:
    """Topics that this broker saw being deleted since it started; a subscriber of metadata."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    @classmethod
    def following(cls, subscribe: Callable[[Subscriber], object]) -> "DeletedTopics":
        """Return one that is told of all changes from now on."""
        made = cls()
        subscribe(made.on_changes)
        return made

    @property
    def names(self) -> Container[str]:
        """The names, as they are now."""
        return self._names.keys()

    def on_changes(self, changes: Sequence[Change], image: Image) -> None:
        """Take up what was deleted and created."""
        del image
        for change in changes:
            if isinstance(change, TopicDeleted):
                self._names.pop(change.name, None)
                self._names[change.name] = None
            elif isinstance(change, TopicCreated):
                self._names.pop(change.name, None)
        while len(self._names) > NAMES_MAX:
            del self._names[next(iter(self._names))]
