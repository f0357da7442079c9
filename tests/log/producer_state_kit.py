"""A log of few batches, and what producers send to it."""

import pytest

from kafkalite.log.producer_state import (
    ProducerStates,
)
from kafkalite.log.validate import AppendOrigin
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.records import CONTROL, TRANSACTIONAL, BatchHeader, EndMarker

LARGEST = 2**31 - 1


COMMIT = EndMarker(is_commit=True, coordinator_epoch=0)


def header_of(sequence, *, count=1, producer_id=1, epoch=0, attributes=0, timestamp=1000):
    return BatchHeader(
        base_offset=0,
        batch_length=100,
        partition_leader_epoch=0,
        magic=2,
        crc=0,
        attributes=attributes,
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
    )


class SmallLog:
    """Producer states with a log end: what `Log` does with them."""

    def __init__(self):
        self.states = ProducerStates()
        self.end = 0

    def append(self, sequence, *, origin=AppendOrigin.CLIENT, verified=True, **fields):
        header = header_of(sequence, **fields)
        original = self.states.check(header, origin=origin, verified=verified)
        if original is not None:
            return original
        base_offset = self.end
        self.end += header.last_offset_delta + 1
        assert self.states.update(header, base_offset=base_offset) is None
        return base_offset

    def write(self, sequence, **fields):
        """Append within a transaction."""
        return self.append(sequence, attributes=TRANSACTIONAL, **fields)

    def end_transaction(self, marker, *, origin=AppendOrigin.COORDINATOR, **fields):
        header = header_of(-1, attributes=TRANSACTIONAL | CONTROL, **fields)
        self.states.check(header, origin=origin, marker=marker)
        self.end += 1
        return self.states.update(header, base_offset=self.end - 1, marker=marker)

    def refusal(self, sequence, **fields):
        with pytest.raises(KafkaError) as caught:
            self.append(sequence, **fields)
        assert str(fields.get("producer_id", 1)) in caught.value.message
        return caught.value.code
