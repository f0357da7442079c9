"""Several events decided one upon the other, for one commit."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kafkalite.config import BrokerConfig
from kafkalite.meta.changes import Change
from kafkalite.meta.controller import decide
from kafkalite.meta.events import Event, Rules
from kafkalite.meta.image import Image, ImageBuilder
from kafkalite.wire.errors import KafkaError


class Decision(NamedTuple):
    """What comes of some events.

    Attributes:
        results: for each event, what changes or why it is refused.
        changes: all of them, in order.
        image: after them; its version is one more.
    """

    results: list[list[Change] | KafkaError]
    changes: list[Change]
    image: Image


def decide_all(
    events: Iterable[Event],
    image: Image,
    config: BrokerConfig,
    *,
    and_then: Callable[[Sequence[Change], Image], list[Change]],
) -> Decision:
    """Decide upon events, each upon the image that those before it leave.

    Args:
        events: in order; one that is refused does not touch the others.
        image: at first.
        config: of the broker that decides.
        and_then: what else changes, given these changes and the image that they make.
    """
    rules = Rules(
        broker_id=config.node_id,
        listener_names=[listener.name for listener in config.listeners],
        broker_values=config.values,
        topic_defaults=config.log_config(),
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
