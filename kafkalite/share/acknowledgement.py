"""Acknowledgements of members, and what is stored of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from kafkalite.share.batches import RecordState, StateBatch
from kafkalite.share.inflight import InFlightState


class AcknowledgeType(IntEnum):
    """Acknowledgement of a record by a member; the numbers are those of the wire."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


STATE_AFTER: Mapping[int, RecordState] = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


@dataclass(slots=True)
class Acknowledgement:
    """Acknowledgement of offsets `first_offset` to `last_offset`, both inclusive.

    `types` has one element for all of them, or one for each.
    """

    first_offset: int
    last_offset: int
    types: Sequence[int]


@dataclass(slots=True)
class Write:
    """State of a share partition that is to be stored.

    Attributes:
        start_offset: at this moment; it moves when this is written.
        delivery_complete_count: likewise, with what this will have finished.
        changes: the states that wait for it, each with what it became; empty for what the end of
            a lock brought about, which counts at once.
    """

    state_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: list[StateBatch]
    changes: list[InFlightState] = field(default_factory=list)
