"""The transaction index: bytes as Kafka writes them, and which entries a fetch needs."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.log.disk import OsDisk
from kafkalite.log.transaction_index import (
    ENTRY_SIZE,
    AbortedTransaction,
    TransactionIndex,
    decode_aborted,
    encode_aborted,
    overlapping,
)
from kafkalite.wire.errors import ErrorCode, KafkaError

FIRST = AbortedTransaction(producer_id=7, first_offset=0, last_offset=10, last_stable_offset=5)
SECOND = AbortedTransaction(producer_id=8, first_offset=5, last_offset=20, last_stable_offset=21)
THIRD = AbortedTransaction(producer_id=7, first_offset=30, last_offset=40, last_stable_offset=41)
ALL = [FIRST, SECOND, THIRD]


class TestFormat:
    """Rule 116: int16 version and four int64."""

    def test_bytes(self):
        assert encode_aborted([FIRST]) == struct.pack(">hqqqq", 0, 7, 0, 10, 5)
        assert ENTRY_SIZE == 34

    @given(
        st.lists(st.builds(AbortedTransaction, *[st.integers(-(2**63), 2**63 - 1)] * 4), max_size=5)
    )
    def test_round_trip(self, transactions):
        assert decode_aborted(encode_aborted(transactions)) == transactions

    def test_torn_entry_is_ignored(self):
        assert decode_aborted(encode_aborted(ALL)[:-1]) == [FIRST, SECOND]

    def test_unknown_version_is_corrupt(self):
        with pytest.raises(KafkaError) as caught:
            decode_aborted(struct.pack(">hqqqq", 1, 7, 0, 10, 5))
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


class TestOverlapping:
    @pytest.mark.parametrize(
        ("first_offset", "upper_offset", "found", "is_all"),
        [
            (0, 5, [FIRST], True),
            (0, 6, [FIRST, SECOND], True),
            (10, 12, [FIRST, SECOND], True),
            (11, 21, [SECOND], True),
            (11, 22, [SECOND], True),  # known from the third, which was stable up to 41
            (21, 30, [], True),
            (21, 31, [THIRD], True),
            (21, 42, [THIRD], False),
            (41, 42, [], False),
        ],
    )
    def test_range(self, first_offset, upper_offset, found, is_all):
        assert overlapping(ALL, first_offset, upper_offset) == (found, is_all)


class TestIndex:
    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / "0.txnindex"

    def open(self, path):
        size = path.stat().st_size if path.exists() else 0
        return TransactionIndex(OsDisk(), str(path), size=size)

    def test_no_file_without_entries(self, path):
        index = self.open(path)
        assert index.collect(0, 100) == ([], False)
        index.truncate_to(0)
        index.write_pending()
        index.clear()
        assert len(index) == 0
        assert not path.exists()

    def test_entries_are_written_at_once_and_found_again(self, path):
        index = self.open(path)
        for transaction in ALL:
            index.append(transaction)
        assert path.read_bytes() == encode_aborted(ALL)
        again = self.open(path)
        assert again.collect(11, 31) == ([SECOND, THIRD], True)
        assert list(again) == ALL

    @pytest.mark.parametrize(
        ("offset", "left"), [(41, ALL), (40, [FIRST, SECOND]), (11, [FIRST]), (0, [])]
    )
    def test_truncation_goes_by_the_marker(self, path, offset, left):
        path.write_bytes(encode_aborted(ALL))
        index = self.open(path)
        index.truncate_to(offset)
        assert list(index) == left
        assert path.read_bytes() == encode_aborted(left)

    def test_appending_goes_on_after_truncation(self, path):
        path.write_bytes(encode_aborted(ALL))
        index = self.open(path)
        index.truncate_to(11)
        index.append(SECOND)
        assert path.read_bytes() == encode_aborted([FIRST, SECOND])

    def test_clear_does_not_read(self, path):
        path.write_bytes(b"\xff" * 100)
        index = self.open(path)
        index.clear()
        index.append(FIRST)
        assert path.read_bytes() == encode_aborted([FIRST])

    def test_torn_entry_is_overwritten(self, path):
        path.write_bytes(encode_aborted([FIRST]) + b"torn")
        index = self.open(path)
        index.append(SECOND)
        assert path.read_bytes() == encode_aborted([FIRST, SECOND])

    def test_file_that_became_shorter_is_believed(self, path):
        path.write_bytes(encode_aborted([FIRST]))
        index = TransactionIndex(OsDisk(), str(path), size=2 * ENTRY_SIZE)
        assert list(index) == [FIRST]
        index.append(SECOND)
        assert path.read_bytes() == encode_aborted([FIRST, SECOND])

    def test_entry_that_could_not_be_written_is_written_later(self, path):
        index = TransactionIndex(OsDisk(), str(path / "absent" / "0.txnindex"), size=0)
        with pytest.raises(OSError, match="absent"):
            index.append(FIRST)
        assert list(index) == [FIRST]
        index.path = str(path)
        index.write_pending()
        assert path.read_bytes() == encode_aborted([FIRST])
