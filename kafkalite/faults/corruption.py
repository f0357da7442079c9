"""Damaged copies of record batches, as a broken disk or network would make them."""

import struct
from typing import Final

BATCH_LENGTH_POSITION: Final = 8
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
RECORDS_POSITION: Final = 61
UNKNOWN_MAGIC: Final = 9


def corrupted(records: bytes, how: str) -> bytes:
    """Return a copy of batches whose first is damaged.

    Args:
        records: one or more batches as Fetch answers them; fewer bytes than a header stay as they
            are.
        how: "crc" (the checksum alone is wrong), "batch" (bytes of the records), "magic", "length".
    """
    if len(records) <= RECORDS_POSITION:
        return records
    damaged = bytearray(records)
    if how == "crc":
        damaged[CRC_POSITION] ^= 0xFF
    elif how == "magic":
        damaged[MAGIC_POSITION] = UNKNOWN_MAGIC
    elif how == "length":
        (length,) = struct.unpack_from(">i", damaged, BATCH_LENGTH_POSITION)
        struct.pack_into(">i", damaged, BATCH_LENGTH_POSITION, length // 2)
    else:
        assert how == "batch"
        (length,) = struct.unpack_from(">i", damaged, BATCH_LENGTH_POSITION)
        end = min(len(damaged), BATCH_LENGTH_POSITION + 4 + length)
        for position in range(RECORDS_POSITION, end):
            damaged[position] ^= 0x55
    return bytes(damaged)
