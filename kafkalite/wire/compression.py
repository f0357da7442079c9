"""The codecs of record batches, in the framings that Kafka's clients write and read.

cramjam does the work and is imported at the first use, so that a broker that never meets a
compressed batch never pays for it; zlib and zstandard do what it cannot, to decompress piece by
piece (decision 0060). Decompression is bounded by the caller.

Framings, as Apache's clients have them (org.apache.kafka.common.compress):

- gzip: any number of members one after another.
- snappy: written in snappy-java's "xerial" framing (blocks of 32 KiB); librdkafka and Go clients
  write one raw snappy block, and both are read.
- lz4: the LZ4 frame format. Java refuses frames whose blocks depend on each other, and cramjam
  writes only such frames; so the frame is put together here around cramjam's blocks. All frames
  that the format allows are read.
- zstd: frames with or without content size.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from importlib import import_module
from typing import Any

from kafkalite.wire.errors import ErrorCode, KafkaError

Buffer = bytes | bytearray | memoryview

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
"""Block size of snappy-java's output stream, which Java readers take in one buffer."""

_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_FRAME_HEADER = bytes.fromhex("04224d18 60 40 82")
"""Magic; version 01 with independent blocks; 64 KiB blocks; the header's checksum."""
_LZ4_FRAME_END = bytes(4)
_LZ4_STORED = 0x80000000

_LZ4_MAGIC = bytes.fromhex("04224d18")
_LZ4_INDEPENDENT = 0x20
_LZ4_BLOCK_CHECKSUM = 0x10
_LZ4_CONTENT_SIZE = 0x08
_LZ4_DICTIONARY = 0x01

CHUNK_BYTES = 1024 * 1024
"""What `iterate_decompressed` gives at once, or little more: a millisecond of work."""

_WHOLE_MAX_BYTES = 16 * 1024 * 1024
"""Most that comes out of a form that can only be decompressed whole: LZ4 frames whose blocks depend
on each other, which Kafka refuses, and a single block of snappy, which grows 22 times at most."""

_GZIP_WBITS = 31
_GZIP_MAGIC = b"\x1f\x8b"

_FIRST_GUESS_RATIO = 4
_LEAST_GUESS_BYTES = 16 * 1024
_GROWTH = 4
"""A guess that was too small is repeated four times larger: at most a third is done twice."""

_OUTPUT_FULL = "failed to write whole buffer"
"""Rust's word (io::ErrorKind::WriteZero) for an output buffer that ended before the data did."""


class Codec(IntEnum):
    """Compression of a batch: bits 0-2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_BY_NAME = {codec.name.lower(): codec for codec in Codec if codec} | {
    "none": Codec.NONE,
    "uncompressed": Codec.NONE,
}
"""Names in `compression.type` ("uncompressed" for topics, "none" for producers) to codecs."""


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Return `data` compressed so that every Kafka client can read it.

    Args:
        codec: NONE returns a copy.
        data: whole payload of one batch.
        level: as in `compression.<codec>.level`; None takes the codec's default. It has no
            effect on snappy, which has no levels, and lz4, of which cramjam has the fast form only.
    """
    if codec is Codec.NONE:
        return bytes(data)
    if codec is Codec.SNAPPY:
        return _compress_xerial(data)
    if codec is Codec.LZ4:
        return _compress_lz4_frame(data)
    if codec is Codec.GZIP:
        # Kafka's -1 is Java's Deflater.DEFAULT_COMPRESSION, which is zlib's 6.
        return bytes(_cramjam("gzip").compress(data, level=6 if level in (None, -1) else level))
    return bytes(_cramjam("zstd").compress(data, level=3 if level is None else level))


def decompress(codec: Codec, data: Buffer, *, max_bytes: int) -> bytes:
    """Return the payload of a batch.

    Args:
        codec: NONE returns a copy.
        data: everything after the batch header.
        max_bytes: the most that may come out.

    Raises:
        KafkaError: CORRUPT_MESSAGE if the bytes are not of that codec, MESSAGE_TOO_LARGE if
            more than `max_bytes` would come out.
    """
    if codec is Codec.NONE:
        return bytes(data)
    try:
        if codec is Codec.SNAPPY:
            return _decompress_snappy(data, max_bytes)
        module = _cramjam(codec.name.lower())
        return _decompress_growing(module.decompress_into, data, max_bytes)
    except _cramjam("DecompressionError") as error:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"{codec.name.lower()} data cannot be decompressed: {error}"
        ) from error


def iterate_decompressed(codec: Codec, data: Buffer, *, max_bytes: int) -> Iterator[bytes]:
    """Yield the payload of a batch in pieces of about CHUNK_BYTES, each made when it is asked for.

    A few kilobytes of zstd can claim gigabytes: nobody else need wait for all of them, and memory
    is needed for one piece. As in Kafka, what follows the first LZ4 frame is not looked at.

    Args:
        codec: NONE yields a copy.
        data: everything after the batch header.
        max_bytes: the most that may come out.

    Raises:
        KafkaError: as `decompress`, perhaps after some pieces.
    """
    if codec is Codec.NONE:
        yield bytes(data)
        return
    if codec is Codec.ZSTD and len(data):  # in one piece, mostly
        try:
            whole = decompress(codec, data, max_bytes=min(CHUNK_BYTES, max_bytes))
        except KafkaError as error:
            if error.code is not ErrorCode.MESSAGE_TOO_LARGE:
                raise
        else:
            yield whole
            return
    size_bytes = 0
    try:
        for piece in _PIECES[codec](data):
            size_bytes += len(piece)
            if size_bytes > max_bytes:
                raise _too_large(max_bytes)
            yield piece
    except _errors_of(codec) as error:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"{codec.name.lower()} data cannot be decompressed: {error}"
        ) from error


def _errors_of(codec: Codec) -> type[Exception]:
    error: type[Exception] = zlib.error
    if codec is Codec.ZSTD:
        error = import_module("zstandard").ZstdError
    elif codec is not Codec.GZIP:
        error = _cramjam("DecompressionError")
    return error


def _gzip_pieces(data: Buffer) -> Iterator[bytes]:
    rest: Buffer = data
    if rest[:2] != _GZIP_MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "gzip data do not begin as such")
    while rest[:2] == _GZIP_MAGIC:
        member = zlib.decompressobj(_GZIP_WBITS)
        while not member.eof:
            piece = member.decompress(rest, CHUNK_BYTES)
            rest = member.unconsumed_tail
            if not piece and not rest and not member.eof:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "gzip data is cut off")
            yield piece
        rest = member.unused_data


def _zstd_pieces(data: Buffer) -> Iterator[bytes]:
    reader = (
        import_module("zstandard").ZstdDecompressor().stream_reader(data, read_across_frames=True)
    )
    while piece := reader.read(CHUNK_BYTES):
        yield piece


def _lz4_pieces(data: Buffer) -> Iterator[bytes]:
    """Yield the blocks of the first frame; whole where they depend on each other."""
    view = memoryview(data)
    if len(view) < 7 or view[:4] != _LZ4_MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "lz4 data do not begin with a frame")
    flags, block_size_code = view[4], view[5] >> 4 & 7
    if not flags & _LZ4_INDEPENDENT:
        yield decompress(Codec.LZ4, data, max_bytes=_WHOLE_MAX_BYTES)
        return
    if flags >> 6 != 1 or not 4 <= block_size_code <= 7:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "lz4 frame of an unknown kind")
    output = bytearray(1 << (2 * block_size_code + 8))
    decompress_block_into = _cramjam("lz4").decompress_block_into
    position = 7 + (8 if flags & _LZ4_CONTENT_SIZE else 0) + (4 if flags & _LZ4_DICTIONARY else 0)
    checksum_size = 4 if flags & _LZ4_BLOCK_CHECKSUM else 0
    while True:
        word = int.from_bytes(view[position : position + 4], "little")
        position += 4
        size = word & ~_LZ4_STORED
        if position > len(view) or position + size > len(view) or size > len(output):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "lz4 frame is cut off")
        if not word:
            return
        block = view[position : position + size]
        if word & _LZ4_STORED:
            yield bytes(block)
        else:
            count = decompress_block_into(block, output)
            yield bytes(memoryview(output)[:count])
        position += size + checksum_size


def _cramjam(name: str) -> Any:
    return getattr(import_module("cramjam"), name)


def _decompress_growing(
    decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, max_bytes: int
) -> bytes:
    """Decompress into a buffer that grows on demand: no header field is believed."""
    size_bytes = min(max(len(data) * _FIRST_GUESS_RATIO, _LEAST_GUESS_BYTES), max_bytes)
    decompression_error = _cramjam("DecompressionError")
    while True:
        output = bytearray(size_bytes)
        try:
            count = decompress_into(data, output)
        except decompression_error as error:
            if _OUTPUT_FULL not in str(error):
                raise
        else:
            return bytes(memoryview(output)[:count])
        if size_bytes >= max_bytes:
            raise _too_large(max_bytes)
        size_bytes = min(size_bytes * _GROWTH, max_bytes)


def _too_large(max_bytes: int) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE, f"batch decompresses to more than {max_bytes} bytes"
    )


def _decompress_snappy(data: Buffer, max_bytes: int) -> bytes:
    blocks = []
    size_bytes = 0
    for block in _snappy_pieces(data, max_bytes):
        size_bytes += len(block)
        if size_bytes > max_bytes:
            raise _too_large(max_bytes)
        blocks.append(block)
    return b"".join(blocks)


def _snappy_pieces(data: Buffer, max_bytes: int = _WHOLE_MAX_BYTES) -> Iterator[bytes]:
    """Yield the blocks, each of `max_bytes` at most."""
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        yield _decompress_snappy_block(data, max_bytes)
        return
    view = memoryview(data)
    if len(view) < len(_XERIAL_HEADER):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "snappy header is cut off")
    position = 0
    while position < len(view):
        if view[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)  # snappy-java joins streams by their headers
            continue
        end = position + 4 + int.from_bytes(view[position : position + 4], "big")
        if end > len(view) or position + 4 >= end:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "snappy block is longer than its batch")
        yield _decompress_snappy_block(view[position + 4 : end], max_bytes)
        position = end


def _decompress_snappy_block(data: Buffer, max_bytes: int) -> bytes:
    snappy = _cramjam("snappy")
    # The length stands in front of the block, and is believed only as far as max_bytes.
    if snappy.decompress_raw_len(data) > max_bytes:
        raise _too_large(max_bytes)
    return bytes(snappy.decompress_raw(data))


def _compress_xerial(data: Buffer) -> bytes:
    compress_raw = _cramjam("snappy").compress_raw
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _compress_lz4_frame(data: Buffer) -> bytes:
    compress_block = _cramjam("lz4").compress_block
    view = memoryview(data)
    parts = [_LZ4_FRAME_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        plain = view[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(compress_block(plain, store_size=False))
        if len(block) < len(plain):
            parts += (len(block).to_bytes(4, "little"), block)
        else:
            parts += ((len(plain) | _LZ4_STORED).to_bytes(4, "little"), bytes(plain))
    parts.append(_LZ4_FRAME_END)
    return b"".join(parts)


_PIECES: dict[Codec, Callable[[Buffer], Iterator[bytes]]] = {
    Codec.GZIP: _gzip_pieces,
    Codec.SNAPPY: _snappy_pieces,
    Codec.LZ4: _lz4_pieces,
    Codec.ZSTD: _zstd_pieces,
}
