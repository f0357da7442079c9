"""Features of this software that a cluster finalises as a whole (KIP-584), with their levels.

Clients read from ApiVersions which levels a broker supports and which one is finalised, that is,
in force in the whole cluster; `kafka-features` shows and changes that.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from kafkalite.wire.errors import ErrorCode, KafkaError

METADATA_VERSION: Final = "metadata.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"


class Feature(NamedTuple):
    """One row of the list.

    Attributes:
        name: Kafka's.
        min_level: the least level that this software supports.
        max_level: the largest, which is finalised as long as nobody sets another: Kafka 4.3's
            default in a new cluster.
        is_complete: whether its code is whole. Until then it is neither announced nor finalised,
            and cannot be updated.
    """

    name: str
    min_level: int
    max_level: int
    is_complete: bool = True


_ROWS: Final = (
    # The last is 4.3-IV0. User interfaces tell the version of a cluster by it, and no client acts
    # on it.
    Feature(METADATA_VERSION, 7, 30),
    # Clients that can do so write to partitions without adding them first, and have an epoch for
    # each transaction (KIP-890). The others are served as ever.
    Feature(TRANSACTION_VERSION, 0, 2),
    # Keys 68 and 69 (KIP-848); 76-79, 83-87 and 90-92 (KIP-932); 88 and 89 (KIP-1071).
    Feature(GROUP_VERSION, 0, 1),
    Feature(SHARE_VERSION, 0, 1),
    Feature(STREAMS_VERSION, 0, 1),
)

FEATURES: Final = tuple(row for row in _ROWS if row.is_complete)
"""What is announced and finalised."""

_BY_NAME: Final = {feature.name: feature for feature in FEATURES}


def finalized_levels(stored: Mapping[str, int]) -> dict[str, int]:
    """Return the levels in force, by name; a feature at level 0 is off, and left out as by Kafka.

    Args:
        stored: the levels that were set. One that this software does not know has no effect; one
            beyond its range counts as the nearest within.
    """
    levels = {}
    for feature in FEATURES:
        level = stored.get(feature.name, feature.max_level)
        level = min(max(level, feature.min_level), feature.max_level)
        if level:
            levels[feature.name] = level
    return levels


def finalized_level(stored: Mapping[str, int], name: str) -> int:
    """Return the level in force of one feature, 0 if it is off; asked for with each heartbeat."""
    feature = _BY_NAME.get(name)
    if feature is None:
        return 0
    return min(max(stored.get(name, feature.max_level), feature.min_level), feature.max_level)


class UpgradeType(IntEnum):
    """How a feature may be updated (KIP-778)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """One feature that is to have another level; `upgrade_type` as in `UpgradeType`."""

    name: str
    level: int
    upgrade_type: int


def check_updates(
    updates: Sequence[FeatureUpdate], stored: Mapping[str, int], *, controller_id: int
) -> dict[str, int]:
    """Return the levels to store, by name: all updates or none (as Kafka's FeatureControlManager).

    Raises:
        KafkaError: INVALID_UPDATE_VERSION for the first that cannot be.
    """
    current = finalized_levels(stored)
    for update in updates:
        refusal = _refusal(update, current.get(update.name, 0), controller_id)
        if refusal:
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, refusal)
    return {update.name: update.level for update in updates}


def _refusal(update: FeatureUpdate, current: int, controller_id: int) -> str:
    """Return why an update cannot be, "" if it can; the order is Kafka's."""
    name, level, upgrade_type = update
    reason = ""
    feature = _BY_NAME.get(name)
    if upgrade_type not in tuple(UpgradeType):
        reason = "The controller does not support the given upgrade type."
    elif level < 0:
        reason = "A feature version cannot be less than 0."
    elif feature is None:
        reason = f"Local controller {controller_id} does not support this feature."
    elif not feature.min_level <= level <= feature.max_level:
        reason = (
            f"Local controller {controller_id} only supports versions "
            f"{feature.min_level}-{feature.max_level}"
        )
    elif level < current and upgrade_type == UpgradeType.UPGRADE:
        reason = (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    elif level > current and upgrade_type != UpgradeType.UPGRADE:
        reason = "Can't downgrade to a newer version."
    elif level < current and name == METADATA_VERSION:
        # Metadata of 4.3-IV0 may hold what those before it cannot, so Kafka 4.3 refuses each.
        why = (
            "Refusing to perform the requested downgrade because it might delete metadata "
            "information."
        )
        if upgrade_type == UpgradeType.UNSAFE_DOWNGRADE:
            why = "Unsafe metadata downgrade is not supported in this version."
        return f"Unsupported metadata.version downgrade from {current} to {level}. {why}"
    return f"Invalid update version {level} for feature {name}. {reason}" if reason else ""
