"""Whether the records of a batch are what its header says, without making objects of them.

After Kafka's DefaultRecord and LogValidator. The work comes in steps, so that nobody waits for a
batch of very many records, or one that grows a thousand times when it is decompressed.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final

from kafkalite.wire.compression import Buffer, Codec, iterate_decompressed
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.record_codec import invalid, read_more, read_varint
from kafkalite.wire.records import BATCH_OVERHEAD, MAX_DECOMPRESSED_BYTES, NO_TIMESTAMP, BatchHeader

STEP_RECORDS: Final = 4_096
"""Records of one step, some two milliseconds; a power of two."""

STEP_MASK: Final = STEP_RECORDS - 1

ERRORS_MAX: Final = 1_000
"""Most records of one batch that are told of; one refuses the batch."""

_LENGTH_BYTES_MAX: Final = 5
_FOREVER: Final = 1 << 70
"""Beyond all timestamps."""


@dataclass(slots=True)
class RecordFacts:
    """Facts about the records of one batch.

    Attributes:
        max_timestamp: largest of all records, -1 if none has one.
        without_key: index of records that have no key.
        out_of_range: (index, timestamp) of records outside of what was allowed.
    """

    max_timestamp: int = NO_TIMESTAMP
    without_key: list[int] = field(default_factory=list)
    out_of_range: list[tuple[int, int]] = field(default_factory=list)


Steps = Generator[None, None, RecordFacts]
"""Steps of a check; its value, when they are done, is what was found."""


def check_records(
    batch: Buffer,
    header: BatchHeader,
    *,
    needs_keys: bool = False,
    earliest: int | None = None,
    latest: int | None = None,
) -> Steps:
    """Return the steps that look at all records of a batch.

    Args:
        batch: begins with the batch; its CRC was checked.
        header: of the batch.
        needs_keys: note records without a key.
        earliest: least timestamp that is allowed.
        latest: largest timestamp that is allowed.

    Raises:
        KafkaError: INVALID_RECORD if they are not exactly as many whole records as the header
            says; UNKNOWN_SERVER_ERROR if they cannot be decompressed, or offsets in a compressed
            batch do not count from 0, as Kafka answers (rule 252); MESSAGE_TOO_LARGE;
            UNSUPPORTED_COMPRESSION_TYPE.
    """
    walk = _Walk(batch, header, needs_keys=needs_keys, earliest=earliest, latest=latest)
    while walk.index < header.record_count:
        yield from walk.records_in_piece()
        if walk.index < header.record_count:
            yield from walk.record_across_pieces()
    walk.check_end()
    return walk.facts


class _Walk:
    """A place in the records of a batch, of which one piece is there at a time."""

    def __init__(
        self,
        batch: Buffer,
        header: BatchHeader,
        *,
        needs_keys: bool,
        earliest: int | None,
        latest: int | None,
    ) -> None:
        self.index = 0
        self.facts = RecordFacts()
        self._base_timestamp = header.base_timestamp
        self._least = -_FOREVER if earliest is None else earliest - header.base_timestamp
        self._largest = _FOREVER if latest is None else latest - header.base_timestamp
        self._count = header.record_count
        self._needs_keys = needs_keys
        self._codec = header.codec
        self._is_misnumbered = False
        self._data = b""
        self._position = 0
        self._consumed = 0
        """Bytes of the pieces before this one."""
        self._pieces = iterate_decompressed(
            self._codec,
            memoryview(batch)[BATCH_OVERHEAD : header.size],
            max_bytes=MAX_DECOMPRESSED_BYTES,
        )

    def check_end(self) -> None:
        """Refuse what can only be refused when all records were seen.

        Raises:
            KafkaError: as `check_records`.
        """
        if self._position < len(self._data) or self._next_piece():
            raise invalid("bytes follow the last record")
        if self._is_misnumbered and self._codec is not Codec.NONE:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "offset deltas of a compressed batch do not count from 0",
            )

    def records_in_piece(self) -> Generator[None, None, None]:
        """Walk over the records that lie whole in the present piece."""
        data, size, count = self._data, len(self._data), self._count
        least, largest = self._least, self._largest
        start = self._position
        index = self.index
        max_delta = -_FOREVER
        try:
            while index < count:
                length = data[start]
                position = start + 1
                if length >= 0x80:
                    length, position = read_more(data, position, length)
                    if position - start > _LENGTH_BYTES_MAX:
                        raise self._too_long()
                end = position + (length >> 1)
                if length & 1:
                    raise invalid("a record has a negative length")
                if end > size:
                    break
                position += 1  # attributes: none are defined
                delta = data[position]
                position += 1
                if delta >= 0x80:
                    delta, position = read_more(data, position, delta)
                delta = (delta >> 1) ^ -(delta & 1)
                if delta > max_delta:
                    max_delta = delta
                offset = data[position]
                position += 1
                if offset >= 0x80:
                    offset, position = read_more(data, position, offset)
                if offset != index << 1:
                    self._is_misnumbered = True
                length = data[position]
                position += 1
                if length >= 0x80:
                    length, position = read_more(data, position, length)
                if length & 1:
                    if self._needs_keys:
                        self._note(self.facts.without_key, index)
                else:
                    position += length >> 1
                length = data[position]
                position += 1
                if length >= 0x80:
                    length, position = read_more(data, position, length)
                if not length & 1:
                    position += length >> 1
                if data[position]:
                    position = _skip_headers(data, position, end)
                else:
                    position += 1
                if position != end:
                    raise invalid("a record's fields do not add up to its length")
                if not least <= delta <= largest:
                    self._note_timestamp(index, delta)
                start = end
                index += 1
                if not index & STEP_MASK:
                    yield
        except IndexError:
            # A length that goes on in the next piece; or a record whose fields lead out of it.
            if start < size and _has_whole_record(data, start):
                raise invalid("a record is longer than its length") from None
        self._position = start
        self.index = index
        self._note_largest(max_delta)

    def record_across_pieces(self) -> Generator[None, None, None]:
        """Walk over one record that lies in several pieces, or begins with the next."""
        index = self.index
        before = self._place
        length = self._varint()
        if self._place - before > _LENGTH_BYTES_MAX:
            raise self._too_long()
        if length & 1:
            raise invalid("a record has a negative length")
        end = self._place + (length >> 1)
        self._byte()
        delta = self._varint()
        delta = (delta >> 1) ^ -(delta & 1)
        offset = self._varint()
        if offset != index << 1:
            self._is_misnumbered = True
        key_length = self._varint()
        if key_length & 1 and self._needs_keys:
            self._note(self.facts.without_key, index)
        yield from self._skip(key_length, end)
        yield from self._skip(self._varint(), end)
        count = self._varint()
        if count & 1 or count >> 1 > end - self._place:
            raise invalid("a record has an impossible number of headers")
        for _ in range(count >> 1):
            name_length = self._varint()
            if name_length & 1:
                raise invalid("a record header has a key of negative length")
            yield from self._skip(name_length, end)
            yield from self._skip(self._varint(), end)
            if self._place > end:
                break
        if self._place != end:
            raise invalid("a record's fields do not add up to its length")
        if not self._least <= delta <= self._largest:
            self._note_timestamp(index, delta)
        self._note_largest(delta)
        self.index = index + 1

    # --- Notes -----------------------------------------------------------------------------------

    def _note_largest(self, delta: int) -> None:
        timestamp = self._base_timestamp + delta
        self.facts.max_timestamp = max(self.facts.max_timestamp, timestamp)

    def _note_timestamp(self, index: int, delta: int) -> None:
        timestamp = self._base_timestamp + delta
        if timestamp != NO_TIMESTAMP and len(self.facts.out_of_range) < ERRORS_MAX:
            self.facts.out_of_range.append((index, timestamp))

    @staticmethod
    def _note(found: list[int], index: int) -> None:
        if len(found) < ERRORS_MAX:
            found.append(index)

    def _too_long(self) -> KafkaError:
        message = "the length of a record has more than five bytes"
        if self._codec is Codec.NONE:
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        return invalid(message)

    # --- Bytes across pieces ---------------------------------------------------------------------

    @property
    def _place(self) -> int:
        """Bytes before the present position."""
        return self._consumed + self._position

    def _next_piece(self) -> bool:
        """Go to the next piece that has any bytes; False if there is none."""
        self._consumed += len(self._data)
        self._position = 0
        self._data = b""
        try:
            while not self._data:
                self._data = next(self._pieces)
        except StopIteration:
            return False
        except KafkaError as error:
            if error.code is not ErrorCode.CORRUPT_MESSAGE:
                raise
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, error.message) from error
        return True

    def _byte(self) -> int:
        if self._position == len(self._data) and not self._next_piece():
            raise invalid("the records end before their count is reached")
        self._position += 1
        return self._data[self._position - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise invalid("a number has more than ten bytes")

    def _skip(self, length: int, end: int) -> Generator[None, None, None]:
        """Go over a field whose length, as it is on the wire, was read."""
        rest = 0 if length & 1 else length >> 1
        if rest > end - self._place:
            raise invalid("a field is longer than its record")
        while rest > len(self._data) - self._position:
            rest -= len(self._data) - self._position
            if not self._next_piece():
                raise invalid("the records end before their count is reached")
            yield
        self._position += rest


def _skip_headers(data: bytes, position: int, end: int) -> int:
    """Return the position after the headers of a record, whose count is at `position`."""
    count, position = read_varint(data, position)
    if count & 1 or count >> 1 > end - position:
        raise invalid("a record has an impossible number of headers")
    for _ in range(count >> 1):
        length, position = read_varint(data, position)
        if length & 1:
            raise invalid("a record header has a key of negative length")
        length, position = read_varint(data, position + (length >> 1))
        if not length & 1:
            position += length >> 1
    return position


def _has_whole_record(data: bytes, start: int) -> bool:
    try:
        length, position = read_varint(data, start)
    except IndexError:
        return False
    return position + (length >> 1) <= len(data)
