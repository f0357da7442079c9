"""DescribeQuorum (key 55), versions 0-2, AddRaftVoter (80), 0-1, and RemoveRaftVoter (81), 0.

There is no KRaft quorum: the one voter is the controller, with its epoch and the number of commits
as the log's end; all other brokers observe (decision 0071). Voters cannot be added or removed, and
are refused as by an Apache Kafka that has a static quorum.
"""

from typing import Any

from kafkalite.api.context import RequestContext
from kafkalite.api.handler import Handler
from kafkalite.api.listener_endpoints import endpoints_for
from kafkalite.meta.names import CLUSTER_METADATA_TOPIC
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.add_raft_voter import ADD_RAFT_VOTER, AddRaftVoterResponse
from kafkalite.wire.messages.describe_quorum import (
    DESCRIBE_QUORUM,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from kafkalite.wire.messages.remove_raft_voter import REMOVE_RAFT_VOTER, RemoveRaftVoterResponse

UNKNOWN = -1


def handle(request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    """Answer from the image of the controller."""
    image = context.services.metadata.image
    nodes = [
        Node(node_id=broker_id, listeners=[Listener(name=context.listener, host=host, port=port)])
        for broker_id, (host, port) in endpoints_for(context).items()
        if broker_id == image.controller_id
    ]
    topics = [
        TopicData(
            topic_name=topic.topic_name,
            partitions=[
                _partition(topic.topic_name, each.partition_index, context)
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return DescribeQuorumResponse(error_code=ErrorCode.NONE, topics=topics, nodes=nodes)


def refuse(
    request: DescribeQuorumRequest, error: KafkaError, context: RequestContext
) -> DescribeQuorumResponse:
    """Answer the error."""
    del request, context
    return DescribeQuorumResponse(error_code=error.code, error_message=error.message or None)


def refuse_voter(request: object, context: RequestContext) -> Any:
    """Refuse: whoever is alive may become controller, and that is all there is to it."""
    del request, context
    raise KafkaError(
        ErrorCode.UNSUPPORTED_VERSION,
        "There is no KRaft quorum: any broker may become controller, voters are neither added "
        "nor removed",
    )


def refuse_adding(
    request: object, error: KafkaError, context: RequestContext
) -> AddRaftVoterResponse:
    """Answer the error."""
    del request, context
    return AddRaftVoterResponse(error_code=error.code, error_message=error.message or None)


def refuse_removal(
    request: object, error: KafkaError, context: RequestContext
) -> RemoveRaftVoterResponse:
    """Answer the error."""
    del request, context
    return RemoveRaftVoterResponse(error_code=error.code, error_message=error.message or None)


def _partition(topic: str, index: int, context: RequestContext) -> PartitionData:
    if (topic, index) != (CLUSTER_METADATA_TOPIC, 0):
        return PartitionData(
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            leader_id=UNKNOWN,
            leader_epoch=UNKNOWN,
            high_watermark=UNKNOWN,
        )
    image = context.services.metadata.image
    return PartitionData(
        partition_index=index,
        error_code=ErrorCode.NONE,
        leader_id=image.controller_id,
        # A lone broker's epoch has no number.
        leader_epoch=max(image.controller_epoch, 0),
        high_watermark=image.version,
        current_voters=[
            ReplicaState(
                replica_id=image.controller_id,
                log_end_offset=image.version,
                last_caught_up_timestamp=context.now_ms,
            )
        ],
        observers=[
            ReplicaState(replica_id=broker_id, log_end_offset=UNKNOWN)
            for broker_id in sorted(image.brokers)
            if broker_id != image.controller_id
        ],
    )


HANDLERS = (
    Handler(DESCRIBE_QUORUM, handle, refuse, forward_to_controller=True),
    Handler(ADD_RAFT_VOTER, refuse_voter, refuse_adding),
    Handler(REMOVE_RAFT_VOTER, refuse_voter, refuse_removal),
)
