"""Messages that brokers of level 1 send to each other and to the store."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkalite.meta.image import BrokerImage
    from kafkalite.sim.model_log import ModelRegion

STORE: Final = 0
"""The address of the metadata store; brokers have their ids."""


@dataclass(slots=True, eq=False)
class Call:
    """A request on its way, and who waits for its answer."""

    source: int
    incarnation: int
    on_answer: Callable[[Any], object]
    on_timeout: Callable[[], object]
    is_done: bool = False


@dataclass(slots=True, frozen=True)
class FetchRequest:
    """Fetch of one partition by a follower."""

    topic_partition: TopicPartition
    replica_id: int
    broker_epoch: int
    offset: int
    last_fetched_epoch: int
    leader_epoch: int
    log_start_offset: int


@dataclass(slots=True, frozen=True)
class FetchResponse:
    """Answer of the leader."""

    region: "ModelRegion | None" = None
    high_watermark: int = -1
    log_start_offset: int = 0
    diverging: tuple[int, int] | None = None
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True, frozen=True)
class Beat:
    """Answer of the store to a heartbeat."""

    is_live: bool
    version: int
    controller_id: int
    controller_epoch: int
    live: "Mapping[int, BrokerImage] | None"
