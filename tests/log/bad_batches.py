"""Batches of one client whose records are not what their header says, and what Kafka answers.

`kafkas_answer` has those of Apache Kafka 4.3.1; `compat_tests/test_bad_batches.py` asks it again.
"""

import gzip

from kafkalite.wire.compression import Codec, compress
from kafkalite.wire.records import BatchHeader, assemble_batch

NOW_MS = 1_700_000_000_000
COUNT = 3
CODECS = tuple(Codec)


def varint(value):
    rest = value << 1 if value >= 0 else ~(value << 1)
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def record(delta=0, *, time=0, key=b"k", value=b"value", headers=(), length=None, attributes=0):
    """The bytes of one record; `headers` may be bytes that are none."""
    body = bytes([attributes]) + varint(time) + varint(delta)
    for each in (key, value):
        body += varint(-1) if each is None else varint(len(each)) + each
    if isinstance(headers, bytes):
        body += headers
    else:
        body += varint(len(headers))
        for name, each in headers:
            body += varint(len(name)) + name + varint(len(each)) + each
    return varint(len(body) if length is None else length) + body


GOOD = b"".join(record(index) for index in range(COUNT))


def batch(
    payload=GOOD, *, codec=Codec.NONE, packed=None, count=COUNT, max_timestamp=NOW_MS, **over
):
    """A batch with this payload; `packed` is what stands for its compressed form."""
    values = {
        "base_offset": 0,
        "batch_length": 0,
        "partition_leader_epoch": -1,
        "magic": 2,
        "crc": 0,
        "attributes": int(codec),
        "last_offset_delta": count - 1,
        "base_timestamp": NOW_MS,
        "max_timestamp": max_timestamp,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "record_count": count,
        **over,
    }
    if packed is None:
        packed = compress(codec, payload) if codec else payload
    return bytes(assemble_batch(BatchHeader(**values), packed))


_first, _second, _third = (record(index) for index in range(COUNT))

PAYLOADS = {
    "good": GOOD,
    "good with headers and nulls": _first
    + record(1, key=None, value=None, headers=[(b"h", b"x"), (b"", b"")])
    + _third,
    "no bytes": b"",
    "garbage": bytes(range(7, 90)),
    "zeros": bytes(40),
    "a record too few": _first + _second,
    "a record too many": GOOD + record(3),
    "a byte too many": GOOD + b"\0",
    "torn in the last record": GOOD[:-2],
    "torn in a length": _first + _second + b"\x80",
    "a record says more than it has": _first + record(1, length=14) + _third,
    "a record says less than it has": _first + record(1, length=9) + _third,
    "a record of negative length": _first + varint(-3) + _third,
    "a record of no length": _first + varint(0) + _third,
    "a length of six bytes": _first + b"\x80\x80\x80\x80\x80\x01" + _third,
    "a key longer than its record": _first + varint(12) + b"\0\0\x02" + varint(50) + b"k" * 9,
    "a value longer than its record": _first
    + varint(12)
    + b"\0\0\x02\x02k"
    + varint(60)
    + b"v" * 6,
    "a negative count of headers": _first + record(1, headers=varint(-1)) + _third,
    "more headers than bytes": _first + record(1, headers=varint(90)) + _third,
    "a header without a name": _first
    + record(1, headers=varint(1) + varint(-1) + varint(0))
    + _third,
    "a header longer than its record": _first
    + record(1, headers=varint(1) + varint(70) + b"n")
    + _third,
    "a key of length -2": _first
    + varint(8)
    + b"\0\0\x02"
    + varint(-2)
    + b"\x02v\0"
    + b"\0"
    + _third,
    "offset deltas all 0": record(0) * COUNT,
    "offset deltas backwards": _third + _second + _first,
    "an offset delta beyond the last": _first + _second + record(7),
    "a negative offset delta": _first + record(-1) + _third,
    "record attributes": _first + record(1, attributes=1) + _third,
    "a timestamp before the base": _first + record(1, time=-5) + _third,
    "a timestamp after the largest": _first + record(1, time=5) + _third,
}
"""Records by what is wrong with them."""


PACKED = {
    "garbage for gzip": (Codec.GZIP, b"garbage, and not gzip"),
    "garbage for snappy": (Codec.SNAPPY, b"garbage, and not snappy"),
    "garbage for lz4": (Codec.LZ4, b"garbage, and not lz4"),
    "garbage for zstd": (Codec.ZSTD, b"garbage, and not zstd"),
    "nothing for gzip": (Codec.GZIP, b""),
    "nothing for snappy": (Codec.SNAPPY, b""),
    "nothing for lz4": (Codec.LZ4, b""),
    "nothing for zstd": (Codec.ZSTD, b""),
    "torn gzip": (Codec.GZIP, gzip.compress(GOOD)[:-14]),
    "torn snappy": (Codec.SNAPPY, compress(Codec.SNAPPY, GOOD)[:-5]),
    "torn lz4": (Codec.LZ4, compress(Codec.LZ4, GOOD)[:-9]),
    "torn zstd": (Codec.ZSTD, compress(Codec.ZSTD, GOOD)[:-5]),
    "wrong checksum in gzip": (
        Codec.GZIP,
        gzip.compress(GOOD)[:-8] + b"\1\2\3\4" + gzip.compress(GOOD)[-4:],
    ),
    "bytes after gzip": (Codec.GZIP, gzip.compress(GOOD) + b"more"),
    "two members of gzip": (Codec.GZIP, gzip.compress(GOOD[:20]) + gzip.compress(GOOD[20:])),
    "two frames of lz4": (
        Codec.LZ4,
        compress(Codec.LZ4, GOOD[:20]) + compress(Codec.LZ4, GOOD[20:]),
    ),
    "two frames of zstd": (
        Codec.ZSTD,
        compress(Codec.ZSTD, GOOD[:20]) + compress(Codec.ZSTD, GOOD[20:]),
    ),
    "uncompressed, said to be gzip": (Codec.GZIP, GOOD),
    "uncompressed, said to be zstd": (Codec.ZSTD, GOOD),
}
"""Compressed forms that are none, or only partly."""

HEADERS = {
    "a count of 0": {"count": 0},
    "a negative count": {"count": -1},
    "a count beyond the last offset": {"record_count": 4},
    "a last offset beyond the count": {"last_offset_delta": 3},
    "a largest timestamp below the records'": {"max_timestamp": NOW_MS - 1},
    "a largest timestamp above the records'": {"max_timestamp": NOW_MS + 1},
    "no largest timestamp": {"max_timestamp": -1},
}
"""Headers that contradict good records."""


def bad_batches():
    """All of them by name; those of `PAYLOADS` and `HEADERS` with each codec."""
    found = {}
    for codec in CODECS:
        name = codec.name.lower()
        for what, payload in PAYLOADS.items():
            if payload or not codec:
                found[f"{what}, {name}"] = batch(payload, codec=codec)
        for what, values in HEADERS.items():
            found[f"{what}, {name}"] = batch(codec=codec, **values)
    for what, (codec, packed) in PACKED.items():
        found[what] = batch(codec=codec, packed=packed)
    return found


NONE, INVALID, UNKNOWN = 0, 87, -1

_ACCEPTED = {
    "good",
    "good with headers and nulls",
    "record attributes",
    "a timestamp before the base",
    "a timestamp after the largest",
    *(what for what in HEADERS if "timestamp" in what),
    "bytes after gzip",
    "two members of gzip",
    "two frames of zstd",
}
_BY_OFFSET = {
    "offset deltas all 0",
    "offset deltas backwards",
    "an offset delta beyond the last",
    "a negative offset delta",
}
"""Accepted uncompressed, and no client is harmed."""

STRICTER = {
    *(f"a record says {what} than it has" for what in ("more", "less")),
    "a key of length -2",
}
"""Compressed, Kafka accepts these (the key of length -2: answers -1), and every consumer then stops
at them: here they are INVALID_RECORD in any form."""


def kafkas_answer(name):
    """Apache Kafka's error code for the batch of this name, on a topic that is not compacted."""
    what, _, codec = name.rpartition(", ")
    if what in STRICTER and codec != "none":
        return UNKNOWN if what == "a key of length -2" else NONE
    if (what or name) in _ACCEPTED or name in _ACCEPTED:
        return NONE
    if what in _BY_OFFSET:
        return NONE if codec == "none" else UNKNOWN
    if what == "a length of six bytes":
        return UNKNOWN if codec == "none" else INVALID
    if name in {"nothing for zstd", "two frames of lz4"}:
        return INVALID
    return UNKNOWN if name in PACKED else INVALID


def expected_answer(name):
    """The error code that is answered here."""
    what = name.rpartition(", ")[0]
    return INVALID if what in STRICTER else kafkas_answer(name)
