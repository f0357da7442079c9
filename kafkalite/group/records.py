"""Between a group shard's records and the bytes in `__consumer_offsets` (rule 156).

Written in the versions that Kafka 2.3 and later write and read; read in all.
"""

import struct

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.group.offsets import NO_EXPIRY
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.stored.group_metadata import (
    GROUP_METADATA_KEY,
    GROUP_METADATA_VALUE,
    GroupMetadataKey,
    GroupMetadataValue,
)
from kafkalite.wire.stored.offset_commit import (
    OFFSET_COMMIT_KEY,
    OFFSET_COMMIT_VALUE,
    OffsetCommitKey,
    OffsetCommitValue,
)

OFFSET_KEY_TYPE_MAX = 1
"""Record keys 0 and 1 are offsets; 0 is what brokers before 0.9 wrote."""
GROUP_KEY_TYPE = 2
OFFSET_VALUE_VERSION = 3
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
"""The only one that has a field for a client's own retention (OffsetCommit v2-4)."""
GROUP_VALUE_VERSION = 3

_TYPE = struct.Struct(">h")


class GroupRecordCodec:
    """Kafka's record format of `__consumer_offsets`, for classic groups."""

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]:
        """Return key and value."""
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey):
            encoded = OFFSET_COMMIT_KEY.encode_versioned(OFFSET_KEY_TYPE_MAX, key)
            if value is None:
                return encoded, None
            assert isinstance(value, OffsetCommitValue)
            has_expiry = value.expire_timestamp != NO_EXPIRY
            version = OFFSET_VALUE_VERSION_WITH_EXPIRY if has_expiry else OFFSET_VALUE_VERSION
            return encoded, OFFSET_COMMIT_VALUE.encode_versioned(version, value)
        assert isinstance(key, GroupMetadataKey)
        encoded = GROUP_METADATA_KEY.encode_versioned(GROUP_KEY_TYPE, key)
        if value is None:
            return encoded, None
        assert isinstance(value, GroupMetadataValue)
        return encoded, GROUP_METADATA_VALUE.encode_versioned(GROUP_VALUE_VERSION, value)

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        """Return the record; None for a kind that is not known here (KIP-848 and later).

        Raises:
            MalformedMessage: a known kind with bytes that are no such record.
        """
        if len(key) < _TYPE.size:
            raise MalformedMessage(f"record key of {len(key)} bytes has no type")
        (key_type,) = _TYPE.unpack_from(key)
        if 0 <= key_type <= OFFSET_KEY_TYPE_MAX:
            _, offset_key = OFFSET_COMMIT_KEY.decode_versioned(key)
            offset_value = None if value is None else OFFSET_COMMIT_VALUE.decode_versioned(value)[1]
            return StoredRecord(offset_key, offset_value)
        if key_type == GROUP_KEY_TYPE:
            _, group_key = GROUP_METADATA_KEY.decode_versioned(key)
            group_value = None if value is None else GROUP_METADATA_VALUE.decode_versioned(value)[1]
            return StoredRecord(group_key, group_value)
        return None
