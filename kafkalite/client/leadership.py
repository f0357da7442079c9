"""Administrative requests about replicas: where they are, and which of them leads."""

from collections.abc import Sequence

from kafkalite.client.cluster import Client
from kafkalite.client.errors import check
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages import elect_leaders as electing
from kafkalite.wire.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

PREFERRED: int = 0
UNCLEAN: int = 1
"""Types of elections (Kafka's ElectionType)."""


def elect_leader(client: Client, place: TopicPartition, *, unclean: bool = False) -> None:
    """Make the first replica the leader; if `unclean`, any live one where there is no leader.

    That it leads already, or that there is a leader already, is no error.

    Raises:
        KafkaError: PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE...
    """
    request = electing.ElectLeadersRequest(
        election_type=UNCLEAN if unclean else PREFERRED,
        topic_partitions=[
            electing.TopicPartitions(topic=place.topic, partitions=[place.partition])
        ],
        timeout_ms=client.timeout_ms,
    )
    answer = client.ask_controller(
        electing.ELECT_LEADERS,
        request,
        lambda answer: [
            answer.error_code,
            *(
                result.error_code
                for topic in answer.replica_election_results
                for result in topic.partition_result
            ),
        ],
    )
    check(answer.error_code)
    for topic in answer.replica_election_results:
        for result in topic.partition_result:
            if result.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                check(result.error_code, result.error_message or str(place))


def reassign(client: Client, place: TopicPartition, replicas: Sequence[int] | None) -> None:
    """Start to move a partition to other replicas, in order of preference; None stops a move.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT, NO_REASSIGNMENT_IN_PROGRESS...
    """
    partition = ReassignablePartition(
        partition_index=place.partition, replicas=None if replicas is None else list(replicas)
    )
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=place.topic, partitions=[partition])],
        timeout_ms=client.timeout_ms,
    )
    answer = client.ask_controller(
        ALTER_PARTITION_REASSIGNMENTS,
        request,
        lambda answer: [
            answer.error_code,
            *(each.error_code for topic in answer.responses for each in topic.partitions),
        ],
    )
    check(answer.error_code, answer.error_message)
    for topic in answer.responses:
        for each in topic.partitions:
            check(each.error_code, each.error_message or str(place))
