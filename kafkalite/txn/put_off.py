"""Order among the first batches of a transaction while its coordinator cannot be asked."""

from kafkalite.txn.transactions import ProducerIdentity
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError


class PutOff:
    """Batches that were refused for the time being, so that none of their successors overtakes.

    Producers have several batches under way. If the first of a transaction finds its coordinator
    loading and the second does not, the second must not be taken: a log that knows nothing of the
    producer yet takes any first sequence (rule 58), and would refuse the first for good when it
    comes again. After Kafka's VerificationStateEntry.
    """

    MAX = 10_000
    """Entries kept; they are few and short-lived, unless producers go away just then."""

    def __init__(self) -> None:
        self._first: dict[tuple[TopicPartition, int], tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._first)

    def note(self, partition: TopicPartition, producer: ProducerIdentity, sequence: int) -> None:
        """Take note of a batch that will come again."""
        key = partition, producer.producer_id
        epoch, first = self._first.get(key, (producer.producer_epoch, sequence))
        if epoch != producer.producer_epoch:
            first = sequence
        self._first.pop(key, None)
        self._first[key] = producer.producer_epoch, min(first, sequence)
        if len(self._first) > self.MAX:
            del self._first[next(iter(self._first))]

    def check(self, partition: TopicPartition, producer: ProducerIdentity, sequence: int) -> None:
        """Refuse a batch that would overtake another.

        Raises:
            KafkaError: OUT_OF_ORDER_SEQUENCE_NUMBER, on which producers send in order again.
        """
        entry = self._first.pop((partition, producer.producer_id), None)
        if entry is None or entry[0] != producer.producer_epoch or sequence <= entry[1]:
            return
        self._first[partition, producer.producer_id] = entry
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"{partition}: producer {producer.producer_id} sent sequence {sequence}, while "
            f"{entry[1]} is still to come again",
        )

    def forget(self, partition: TopicPartition, producer_id: int) -> None:
        """Expect nothing any more: the transaction has ended on the partition."""
        self._first.pop((partition, producer_id), None)
