"""Between a group shard's records and the bytes in `__consumer_offsets` (rule 156).

Written in the versions that Kafka 4.3 reads; read in all. A key is known by its type, the int16
that it begins with; `RECORD_TYPES` is the list of them.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.kinds import GroupKind
from kafkalite.group.offsets import NO_EXPIRY
from kafkalite.types import ZERO_UUID
from kafkalite.wire.codec import Codec
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.stored import consumer_group, share_group, streams_group
from kafkalite.wire.stored.group_metadata import GROUP_METADATA_KEY, GROUP_METADATA_VALUE
from kafkalite.wire.stored.offset_commit import (
    OFFSET_COMMIT_KEY,
    OFFSET_COMMIT_VALUE,
    OffsetCommitValue,
)

OFFSET_VALUE_VERSION = 3
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
"""The only one that has a field for a client's own retention (OffsetCommit v2-4)."""
OFFSET_VALUE_VERSION_WITH_TOPIC_ID = 4
GROUP_VALUE_VERSION = 3

_TYPE = struct.Struct(">h")


@dataclass(slots=True, frozen=True)
class RecordType:
    """One kind of record: its key's type number, how key and value are coded.

    Attributes:
        number: that is written; types that are only read have rows of their own.
        value_version: of the value, or what tells it from the value.
    """

    number: int
    key: Codec[Any]
    value: Codec[Any]
    value_version: int | Callable[[Any], int] = 0


def _offset_version(value: OffsetCommitValue) -> int:
    if value.topic_id != ZERO_UUID:
        return OFFSET_VALUE_VERSION_WITH_TOPIC_ID
    has_expiry = value.expire_timestamp != NO_EXPIRY
    return OFFSET_VALUE_VERSION_WITH_EXPIRY if has_expiry else OFFSET_VALUE_VERSION


_CLASSIC = (
    # 0 is what brokers before 0.9 wrote; of two rows with one key the later is written.
    RecordType(0, OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE, _offset_version),
    RecordType(1, OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE, _offset_version),
    RecordType(2, GROUP_METADATA_KEY, GROUP_METADATA_VALUE, GROUP_VALUE_VERSION),
)
_CONSUMER = (
    RecordType(3, consumer_group.METADATA_KEY, consumer_group.METADATA_VALUE),
    RecordType(4, consumer_group.PARTITION_METADATA_KEY, consumer_group.PARTITION_METADATA_VALUE),
    RecordType(5, consumer_group.MEMBER_KEY, consumer_group.MEMBER_VALUE),
    RecordType(6, consumer_group.TARGET_METADATA_KEY, consumer_group.TARGET_METADATA_VALUE),
    RecordType(7, consumer_group.TARGET_MEMBER_KEY, consumer_group.TARGET_MEMBER_VALUE),
    RecordType(8, consumer_group.CURRENT_KEY, consumer_group.CURRENT_VALUE),
    RecordType(16, consumer_group.PATTERN_KEY, consumer_group.PATTERN_VALUE),
)
_SHARE = (
    RecordType(
        10,
        share_group.SHARE_GROUP_MEMBER_METADATA_KEY,
        share_group.SHARE_GROUP_MEMBER_METADATA_VALUE,
    ),
    RecordType(11, share_group.SHARE_GROUP_METADATA_KEY, share_group.SHARE_GROUP_METADATA_VALUE),
    RecordType(
        12,
        share_group.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY,
        share_group.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE,
    ),
    RecordType(
        13,
        share_group.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY,
        share_group.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE,
    ),
    RecordType(
        14,
        share_group.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY,
        share_group.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE,
    ),
    RecordType(
        15,
        share_group.SHARE_GROUP_STATE_PARTITION_METADATA_KEY,
        share_group.SHARE_GROUP_STATE_PARTITION_METADATA_VALUE,
    ),
)
_STREAMS = (
    RecordType(17, streams_group.METADATA_KEY, streams_group.METADATA_VALUE),
    RecordType(19, streams_group.MEMBER_KEY, streams_group.MEMBER_VALUE),
    RecordType(20, streams_group.TARGET_METADATA_KEY, streams_group.TARGET_METADATA_VALUE),
    RecordType(21, streams_group.TARGET_MEMBER_KEY, streams_group.TARGET_MEMBER_VALUE),
    RecordType(22, streams_group.CURRENT_KEY, streams_group.CURRENT_VALUE),
    RecordType(23, streams_group.TOPOLOGY_KEY, streams_group.TOPOLOGY_VALUE),
)

RECORD_TYPES: tuple[RecordType, ...] = (*_CLASSIC, *_CONSUMER, *_SHARE, *_STREAMS)

KIND_OF_KEY: Mapping[type, GroupKind] = {
    row.key.record: kind
    for kind, rows in (
        (GroupKind.CLASSIC, _CLASSIC),
        (GroupKind.CONSUMER, _CONSUMER),
        (GroupKind.SHARE, _SHARE),
        (GroupKind.STREAMS, _STREAMS),
    )
    for row in rows
}
"""Of which kind of groups records with a key of some type tell."""


class GroupRecordCodec:
    """Kafka's record format of `__consumer_offsets`."""

    def __init__(self, types: tuple[RecordType, ...] = RECORD_TYPES) -> None:
        self._by_number = {each.number: each for each in types}
        self._by_key = {each.key.record: each for each in types}

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]:
        """Return key and value."""
        kind = self._by_key[type(record.key)]
        key = kind.key.encode_versioned(kind.number, record.key)
        value = record.value
        if value is None:
            return key, None
        assert isinstance(value, kind.value.record)
        version = kind.value_version
        number = version if isinstance(version, int) else version(value)
        return key, kind.value.encode_versioned(number, value)

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        """Return the record; None for a kind that is not known here.

        Raises:
            MalformedMessage: a known kind with bytes that are no such record.
        """
        if len(key) < _TYPE.size:
            raise MalformedMessage(f"record key of {len(key)} bytes has no type")
        (number,) = _TYPE.unpack_from(key)
        kind = self._by_number.get(number)
        if kind is None:
            return None
        _, decoded = kind.key.decode_versioned(key)
        return StoredRecord(
            decoded, None if value is None else kind.value.decode_versioned(value)[1]
        )
