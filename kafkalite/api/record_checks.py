"""Looking at the records of a Produce request before they are appended, some at a time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkalite.log.validate import CheckedBatch, check_client_batch
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.record_check import STEP_RECORDS

if TYPE_CHECKING:
    from collections.abc import Generator

    from kafkalite.isr.partition import Partition

AT_ONCE_MAX: Final = 2 * STEP_RECORDS
"""Records of one request that are looked at without giving others a turn."""

RECORD_COUNT: Final = slice(57, 61)
"""Where a batch says how many records it has."""

BYTES_PER_UNIT: Final = 256
"""Bytes that count as much as a record, because of their checksum and decompression."""


@dataclass(slots=True)
class Unfinished:
    """The rest of a check, of which `next` is one step; its value is the batch."""

    steps: "Generator[None, None, CheckedBatch]"

    def step(self) -> CheckedBatch | KafkaError | None:
        """Take one step; return what came out of the check, None if there is more to do."""
        try:
            next(self.steps)
        except StopIteration as done:
            checked: CheckedBatch = done.value
            return checked
        except KafkaError as error:
            return error
        return None


class RecordChecks:
    """Budget of record checks that one request may use up at once."""

    __slots__ = ("_left", "is_done")

    def __init__(self) -> None:
        self._left = AT_ONCE_MAX
        self.is_done = True
        """None of them was left unfinished."""

    def check(
        self, records: memoryview, partition: "Partition", now_ms: int
    ) -> CheckedBatch | Unfinished:
        """Return the batch if its check was done at once, else the check.

        Raises:
            KafkaError: it is refused.
        """
        steps = check_client_batch(
            records,
            topic_partition=partition.topic_partition,
            config=partition.log.config,
            now_ms=now_ms,
        )
        check = Unfinished(steps)
        count = int.from_bytes(records[RECORD_COUNT], "big")  # a lie ends its check the sooner
        cost = min(STEP_RECORDS, count + len(records) // BYTES_PER_UNIT + 1)
        while self._left > 0:
            self._left -= cost
            outcome = check.step()
            if isinstance(outcome, KafkaError):
                raise outcome
            if outcome is not None:
                return outcome
        self.is_done = False
        return check
