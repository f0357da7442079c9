"""Between share states and the bytes in `__share_group_state` (rule 418)."""

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafkalite.coordinator.shard import StoredRecord
from kafkalite.share.batches import SharePartitionKey, StateBatch
from kafkalite.share.events import ShareState, StateUpdate
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.stored import share_state as stored

if TYPE_CHECKING:
    from kafkalite.wire.stored.share_state import ShareSnapshotKey, ShareUpdateKey

SNAPSHOT, UPDATE = 0, 1
VALUE_VERSION = 0

_TYPE = struct.Struct(">h")


class ShareStateCodec:
    """Kafka's record format.

    A record's key is the share partition; its value a `ShareState` (a snapshot), a `StateUpdate`,
    or None: the share partition is forgotten.
    """

    def encode(self, record: StoredRecord) -> tuple[bytes, bytes | None]:
        """Return key and value."""
        key, value = record.key, record.value
        assert isinstance(key, SharePartitionKey)
        group_id, topic_id, partition = key
        if isinstance(value, StateUpdate):
            update_key = stored.ShareUpdateKey(
                group_id=group_id, topic_id=topic_id, partition=partition
            )
            update = stored.ShareUpdateValue(
                snapshot_epoch=value.snapshot_epoch,
                leader_epoch=value.leader_epoch,
                start_offset=value.start_offset,
                delivery_complete_count=value.delivery_complete_count,
                state_batches=_to_stored(value.batches),
            )
            return (
                stored.SHARE_UPDATE_KEY.encode_versioned(UPDATE, update_key),
                stored.SHARE_UPDATE_VALUE.encode_versioned(VALUE_VERSION, update),
            )
        snapshot_key = stored.SHARE_SNAPSHOT_KEY.encode_versioned(
            SNAPSHOT,
            stored.ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition),
        )
        if value is None:
            return snapshot_key, None
        assert isinstance(value, ShareState)
        snapshot = stored.ShareSnapshotValue(
            snapshot_epoch=value.snapshot_epoch,
            state_epoch=value.state_epoch,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            delivery_complete_count=value.delivery_complete_count,
            create_timestamp=value.create_timestamp,
            write_timestamp=value.write_timestamp,
            state_batches=_to_stored(value.batches),
        )
        return snapshot_key, stored.SHARE_SNAPSHOT_VALUE.encode_versioned(VALUE_VERSION, snapshot)

    def decode(self, key: bytes, value: bytes | None) -> StoredRecord | None:
        """Return the record; None for a kind of key that is not known here.

        Raises:
            MalformedMessage: bytes that are no such record.
        """
        if len(key) < _TYPE.size:
            raise MalformedMessage(f"record key of {len(key)} bytes has no type")
        (kind,) = _TYPE.unpack_from(key)
        if kind == SNAPSHOT:
            _, snapshot_key = stored.SHARE_SNAPSHOT_KEY.decode_versioned(key)
            return StoredRecord(_key(snapshot_key), None if value is None else _snapshot(value))
        if kind == UPDATE:
            _, update_key = stored.SHARE_UPDATE_KEY.decode_versioned(key)
            if value is None:
                raise MalformedMessage("an update of a share state without a value")
            return StoredRecord(_key(update_key), _update(value))
        return None


def _key(key: "ShareSnapshotKey | ShareUpdateKey") -> SharePartitionKey:
    return SharePartitionKey(key.group_id, key.topic_id, key.partition)


def _snapshot(value: bytes) -> ShareState:
    _, snapshot = stored.SHARE_SNAPSHOT_VALUE.decode_versioned(value)
    return ShareState(
        snapshot_epoch=snapshot.snapshot_epoch,
        state_epoch=snapshot.state_epoch,
        leader_epoch=snapshot.leader_epoch,
        start_offset=snapshot.start_offset,
        delivery_complete_count=snapshot.delivery_complete_count,
        batches=_from_stored(snapshot.state_batches),
        create_timestamp=snapshot.create_timestamp,
        write_timestamp=snapshot.write_timestamp,
    )


def _update(value: bytes) -> StateUpdate:
    _, update = stored.SHARE_UPDATE_VALUE.decode_versioned(value)
    return StateUpdate(
        update.snapshot_epoch,
        update.leader_epoch,
        update.start_offset,
        update.delivery_complete_count,
        _from_stored(update.state_batches),
    )


def _to_stored(batches: Iterable[StateBatch]) -> list[stored.StateBatch]:
    return [
        stored.StateBatch(
            first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
        )
        for first, last, count, state in batches
    ]


def _from_stored(batches: Iterable[stored.StateBatch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_count, each.delivery_state)
        for each in batches
    )
