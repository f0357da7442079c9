"""Codecs: every framing a client writes is read, what is written every client reads."""

import contextlib
import gzip
import os
import subprocess
import sys
import warnings

import cramjam
import pytest
from aiokafka import codec as aiokafka_codec
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.wire.compression import CODEC_BY_NAME, Codec, compress, decompress
from kafkalite.wire.errors import ErrorCode, KafkaError

with warnings.catch_warnings():  # kafka-python reads its schemas by a deprecated call
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import codec as kafka_python_codec

COMPRESSED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
SAMPLES = [b"", b"a", b"abc" * 50_000, os.urandom(100_000), bytes(70_000)]
LIMIT = 1 << 20


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("data", SAMPLES, ids=len)
def test_round_trip(codec, data):
    assert decompress(codec, compress(codec, data), max_bytes=LIMIT) == data


@given(data=st.binary(max_size=5000), codec=st.sampled_from(Codec))
def test_any_data_round_trips(data, codec):
    assert decompress(codec, memoryview(compress(codec, bytearray(data))), max_bytes=5000) == data


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        *((Codec.GZIP, level) for level in (-1, 1, 9)),
        *((Codec.LZ4, level) for level in (1, 9, 17)),
        *((Codec.ZSTD, level) for level in (-131072, 1, 22)),
    ],
)
def test_levels_that_kafka_allows_are_taken(codec, level):
    data = b"the same words again and again " * 1000
    assert decompress(codec, compress(codec, data, level), max_bytes=LIMIT) == data


def test_higher_level_compresses_more():
    data = " ".join(str(number) for number in range(20_000)).encode()
    assert len(compress(Codec.ZSTD, data, 19)) < len(compress(Codec.ZSTD, data, 1))


def test_names_of_compression_type():
    assert CODEC_BY_NAME["zstd"] is Codec.ZSTD
    assert CODEC_BY_NAME["uncompressed"] is CODEC_BY_NAME["none"] is Codec.NONE


def test_cramjam_is_not_imported_until_needed():
    code = "import sys; import kafkalite.wire.records; sys.exit('cramjam' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestFramings:
    data = b"framing " * 9000

    def test_gzip_members_one_after_another_are_one_payload(self):
        members = gzip.compress(self.data[:100]) + gzip.compress(self.data[100:])
        assert decompress(Codec.GZIP, members, max_bytes=LIMIT) == self.data

    def test_raw_snappy_is_read(self):
        """Librdkafka and the Go clients write one raw block."""
        raw = bytes(cramjam.snappy.compress_raw(self.data))
        assert decompress(Codec.SNAPPY, raw, max_bytes=LIMIT) == self.data

    def test_snappy_is_written_in_xerial_framing(self):
        framed = compress(Codec.SNAPPY, self.data)
        assert framed[:16] == b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"
        assert int.from_bytes(framed[16:20], "big") < 32 * 1024

    def test_joined_xerial_streams_are_read(self):
        framed = compress(Codec.SNAPPY, self.data)
        assert decompress(Codec.SNAPPY, framed * 2, max_bytes=LIMIT) == self.data * 2

    @pytest.mark.parametrize("size", [-1, 0, 1000])
    def test_xerial_block_of_impossible_size_is_corrupt(self, size):
        framed = compress(Codec.SNAPPY, b"")
        with pytest.raises(KafkaError) as caught:
            decompress(
                Codec.SNAPPY, framed + size.to_bytes(4, "big", signed=True) + b"abc", max_bytes=99
            )
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE

    def test_lz4_frame_with_linked_blocks_and_checksums_is_read(self):
        """Cramjam's own frames link their blocks; aiokafka writes them."""
        frame = bytes(cramjam.lz4.compress(self.data))
        assert frame[4] & 0x20 == 0
        assert decompress(Codec.LZ4, frame, max_bytes=LIMIT) == self.data

    def test_lz4_frame_with_content_size_is_read(self):
        """Librdkafka and Go's pierrec/lz4 may store the size of the content."""
        block = bytes(cramjam.lz4.compress_block(b"x" * 100, store_size=False))
        # FLG 0x68: independent blocks, content size; the last byte is its header checksum.
        header = bytes.fromhex("04224d18 68 40") + (100).to_bytes(8, "little") + b"\x23"
        frame = header + len(block).to_bytes(4, "little") + block + bytes(4)
        assert decompress(Codec.LZ4, frame, max_bytes=LIMIT) == b"x" * 100

    def test_lz4_is_written_with_independent_blocks(self):
        """Java's reader refuses others ("Dependent block stream is unsupported")."""
        frame = compress(Codec.LZ4, self.data)
        assert frame[:7] == bytes.fromhex("04224d18604082")
        assert frame[-4:] == bytes(4)

    def test_zstd_without_content_size_is_read(self):
        compressor = cramjam.zstd.Compressor()
        compressor.compress(self.data)
        stream = bytes(compressor.finish())
        assert stream[4] & 0xE0 == 0  # no content size, not a single segment
        assert decompress(Codec.ZSTD, stream, max_bytes=LIMIT) == self.data


class TestBounds:
    @pytest.mark.parametrize("codec", COMPRESSED)
    def test_bomb_is_refused_without_its_memory(self, codec):
        bomb = compress(codec, bytes(64 << 20))
        with pytest.raises(KafkaError) as caught:
            decompress(codec, bomb, max_bytes=100_000)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE

    @pytest.mark.parametrize("codec", COMPRESSED)
    def test_exactly_the_limit_is_allowed(self, codec):
        data = bytes(100_000)
        assert decompress(codec, compress(codec, data), max_bytes=100_000) == data
        with pytest.raises(KafkaError, match="99999 bytes"):
            decompress(codec, compress(codec, data), max_bytes=99_999)

    def test_length_that_raw_snappy_claims_is_not_believed(self):
        claims_a_gigabyte = b"\x80\x80\x80\x80\x04" + b"\0a"
        with pytest.raises(KafkaError) as caught:
            decompress(Codec.SNAPPY, claims_a_gigabyte, max_bytes=LIMIT)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE

    @pytest.mark.parametrize("codec", COMPRESSED)
    @settings(max_examples=50)
    @given(data=st.binary(max_size=200))
    def test_garbage_is_a_kafka_error(self, codec, data):
        with contextlib.suppress(KafkaError):
            decompress(codec, data, max_bytes=LIMIT)

    @pytest.mark.parametrize("codec", COMPRESSED)
    def test_truncated_data_is_corrupt(self, codec):
        whole = compress(codec, os.urandom(5000))
        for length in (0, 1, 10, len(whole) // 2, len(whole) - 1):
            with pytest.raises(KafkaError) as caught:
                decompress(codec, whole[:length], max_bytes=LIMIT)
            assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


class TestAgainstClients:
    """The clients' own codecs read what is written here, and the other way round."""

    data = b"client " * 20_000

    @pytest.mark.parametrize("codec", COMPRESSED)
    def test_aiokafka(self, codec):
        name = codec.name.lower()
        encode = getattr(aiokafka_codec, f"{name}_encode")
        decode = getattr(aiokafka_codec, f"{name}_decode")
        assert decompress(codec, encode(self.data), max_bytes=LIMIT) == self.data
        assert bytes(decode(compress(codec, self.data))) == self.data

    @pytest.mark.parametrize("codec", COMPRESSED)
    def test_kafka_python(self, codec):
        name = codec.name.lower()
        assert getattr(kafka_python_codec, f"has_{name}")(), "its library is in the extra `test`"
        encode = getattr(kafka_python_codec, f"{name}_encode")
        decode = getattr(kafka_python_codec, f"{name}_decode")
        assert decompress(codec, encode(self.data), max_bytes=LIMIT) == self.data
        assert bytes(decode(compress(codec, self.data))) == self.data
