"""Which groups of a shard want to hear of which topics."""

from collections.abc import Iterable


class Subscribers:
    """Ids of groups by the names of the topics that they read, and in no order of the topics."""

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, None]] = {}

    def add(self, topic: str, group_id: str) -> None:
        """Have a group hear of a topic."""
        self._groups.setdefault(topic, {})[group_id] = None

    def discard(self, topic: str, group_id: str) -> None:
        """Have it not hear of the topic any more."""
        groups = self._groups.get(topic)
        if groups is None:
            return
        groups.pop(group_id, None)
        if not groups:
            del self._groups[topic]

    def of(self, topics: Iterable[str]) -> list[str]:
        """Return the groups that read one of these topics."""
        found: dict[str, None] = {}
        for topic in sorted(topics):
            found.update(self._groups.get(topic, {}))
        return [*found]
