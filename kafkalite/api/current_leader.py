"""The leader of a partition, told to a client that came to another broker (KIP-951, rule 54)."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from uuid import UUID

    from kafkalite.api.context import RequestContext
    from kafkalite.meta.image import TopicImage

NO_LEADER = -1


class LeaderEndpoint(NamedTuple):
    """Address at which the client reaches a broker."""

    node_id: int
    host: str
    port: int
    rack: str | None


class CurrentLeaders:
    """Leaders that one answer names, and their addresses on the client's listener."""

    __slots__ = ("_context", "_endpoints")

    def __init__(self, context: "RequestContext") -> None:
        self._context = context
        self._endpoints: dict[int, LeaderEndpoint] = {}

    def of(self, name: str | None, topic_id: "UUID", index: int) -> tuple[int, int] | None:
        """Return (leader, leader epoch) of a partition; None if there is no such partition.

        The topic is given by name, or without one by ID.
        """
        image = self._context.services.metadata.image
        topic: TopicImage | None = image.topics.get(name) if name else image.topic_by_id(topic_id)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        state = topic.partitions[index]
        broker = image.brokers.get(state.leader)
        if state.leader == NO_LEADER or broker is None:
            return NO_LEADER, state.leader_epoch
        address = self._context.endpoint(broker)
        if address is not None:
            self._endpoints[state.leader] = LeaderEndpoint(state.leader, *address, broker.rack)
        return state.leader, state.leader_epoch

    def endpoints(self) -> list[LeaderEndpoint]:
        """Return where the leaders named so far are reached."""
        return list(self._endpoints.values())
