"""Several events decided one upon the other, for one commit."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kafkalite.config import BrokerConfig
from kafkalite.meta.changes import BROKER_RESOURCE, BrokerRegistered, Change, ConfigsChanged
from kafkalite.meta.controller import decide
from kafkalite.meta.events import ControllerConfig, CreateTopic, DeleteTopic, Event
from kafkalite.meta.image import BrokerImage, ConfigResource, Image, ImageBuilder
from kafkalite.wire.errors import KafkaError

EVENTS_AT_ONCE_MAX: Final = 100
"""Events of one commit; 100 of them take some milliseconds to decide, write and tell."""

PARTITIONS_AT_ONCE_MAX: Final = 1_000
"""New and deleted partitions of one commit, unless one topic has more: it comes and goes whole."""


def slices(events: Iterable[Event], image: Image) -> Iterator[list[Event]]:
    """Yield events in lists, each of which is one commit; everybody else has a turn in between.

    Args:
        events: in order.
        image: that tells how large the topics are that are to go.
    """
    part: list[Event] = []
    room = PARTITIONS_AT_ONCE_MAX
    for event in events:
        size = 0
        if isinstance(event, CreateTopic):
            size = max(event.num_partitions, len(event.assignments))
        elif isinstance(event, DeleteTopic) and event.name in image.topics:
            size = len(image.topics[event.name].partitions)
        if part and (size > room or len(part) >= EVENTS_AT_ONCE_MAX):
            yield part
            part, room = [], PARTITIONS_AT_ONCE_MAX
        part.append(event)
        room -= size
    if part:
        yield part


class Decision(NamedTuple):
    """Result of deciding some events.

    Attributes:
        results: for each event, what changes or why it is refused.
        changes: all of them, in order.
        image: after them; its version is one more.
    """

    results: list[list[Change] | KafkaError]
    changes: list[Change]
    image: Image


def batch_decide(
    events: Iterable[Event],
    image: Image,
    config: BrokerConfig,
    *,
    live: Mapping[int, BrokerImage] | None = None,
    and_then: Callable[[Sequence[Change], Image], list[Change]],
) -> Decision:
    """Decide events in turn, each on the image with the changes of those before it applied.

    Args:
        events: in order; one that is refused does not touch the others.
        image: at first.
        config: of the broker that decides.
        live: see `ControllerConfig.live`.
        and_then: what else changes, given these changes and the image that they make.
    """
    rules = ControllerConfig(
        broker_id=config.node_id,
        listener_names=[listener.name for listener in config.listeners],
        broker_values=config.values,
        topic_defaults=config.log_config(),
        live=live,
    )
    builder = ImageBuilder(image)
    results: list[list[Change] | KafkaError] = []
    changes: list[Change] = []
    for event in events:
        try:
            decided = decide(event, builder.image, rules)
        except KafkaError as error:
            results.append(error)
            continue
        for change in decided:
            change.apply_to(builder)
        results.append(decided)
        changes += decided
    for change in and_then(changes, builder.image):
        change.apply_to(builder)
        changes.append(change)
    return Decision(results, changes, builder.build(image.version + 1))


def new_addresses(
    changes: Sequence[Change], image: Image, config: BrokerConfig, bound_ports: Mapping[str, int]
) -> list[Change]:
    """Return what a changed `advertised.listeners` of a lone broker means; for the same commit.

    In a cluster each broker registers its own addresses.
    """
    own = ConfigResource(BROKER_RESOURCE, str(config.node_id))
    broker = image.brokers.get(config.node_id)
    touched = any(isinstance(each, ConfigsChanged) and each.resource == own for each in changes)
    if broker is None or not touched:
        return []
    advertised = image.configs_of(own).get("advertised.listeners")
    endpoints = config.endpoints_with(advertised, bound_ports)
    if endpoints == broker.endpoints:
        return []
    return [BrokerRegistered(broker_id=config.node_id, endpoints=endpoints, rack=broker.rack)]
