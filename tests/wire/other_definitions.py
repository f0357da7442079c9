"""What Apache's JSON says of further messages that the wheel lacks, or names ambiguously."""

from tests.wire.between_brokers import _field as field
from tests.wire.between_brokers import _message as message

ANSWER = (
    field("ThrottleTimeMs", "int32", "0+"),
    field("ErrorCode", "int16", "0+"),
    field("ErrorMessage", "string", "0+", nullableVersions="0+"),
)
LISTENER = (
    field("Name", "string", "0+"),
    field("Host", "string", "0+"),
    field("Port", "uint16", "0+"),
)
REPLICA_STATE = (
    field("ReplicaId", "int32", "0+"),
    field("ReplicaDirectoryId", "uuid", "2+"),
    field("LogEndOffset", "int64", "0+"),
    field("LastFetchTimestamp", "int64", "1+", default="-1"),
    field("LastCaughtUpTimestamp", "int64", "1+", default="-1"),
)

DEFINITIONS = {
    "GetTelemetrySubscriptionsRequest": message(
        71, "0", "0+", field("ClientInstanceId", "uuid", "0+")
    ),
    "GetTelemetrySubscriptionsResponse": message(
        71,
        "0",
        "0+",
        field("ThrottleTimeMs", "int32", "0+"),
        field("ErrorCode", "int16", "0+"),
        field("ClientInstanceId", "uuid", "0+"),
        field("SubscriptionId", "int32", "0+"),
        field("AcceptedCompressionTypes", "[]int8", "0+"),
        field("PushIntervalMs", "int32", "0+"),
        field("TelemetryMaxBytes", "int32", "0+"),
        field("DeltaTemporality", "bool", "0+"),
        field("RequestedMetrics", "[]string", "0+"),
    ),
    "PushTelemetryRequest": message(
        72,
        "0",
        "0+",
        field("ClientInstanceId", "uuid", "0+"),
        field("SubscriptionId", "int32", "0+"),
        field("Terminating", "bool", "0+"),
        field("CompressionType", "int8", "0+"),
        field("Metrics", "bytes", "0+"),
    ),
    "PushTelemetryResponse": message(
        72, "0", "0+", field("ThrottleTimeMs", "int32", "0+"), field("ErrorCode", "int16", "0+")
    ),
    "UnregisterBrokerRequest": message(64, "0", "0+", field("BrokerId", "int32", "0+")),
    "UnregisterBrokerResponse": message(64, "0", "0+", *ANSWER),
    "AddRaftVoterRequest": message(
        80,
        "0-1",
        "0+",
        field("ClusterId", "string", "0+", nullableVersions="0+"),
        field("TimeoutMs", "int32", "0+"),
        field("VoterId", "int32", "0+"),
        field("VoterDirectoryId", "uuid", "0+"),
        field("Listeners", "[]Listener", "0+", fields=LISTENER),
        field("AckWhenCommitted", "bool", "1+", default="true"),
    ),
    "AddRaftVoterResponse": message(80, "0-1", "0+", *ANSWER),
    "RemoveRaftVoterRequest": message(
        81,
        "0",
        "0+",
        field("ClusterId", "string", "0+", nullableVersions="0+"),
        field("VoterId", "int32", "0+"),
        field("VoterDirectoryId", "uuid", "0+"),
    ),
    "RemoveRaftVoterResponse": message(81, "0", "0+", *ANSWER),
    "DescribeQuorumRequest": message(
        55,
        "0-2",
        "0+",
        field(
            "Topics",
            "[]DescribeQuorumTopic",
            "0+",
            fields=[
                field("TopicName", "string", "0+"),
                field(
                    "Partitions",
                    "[]DescribeQuorumPartition",
                    "0+",
                    fields=[field("PartitionIndex", "int32", "0+")],
                ),
            ],
        ),
    ),
    "DescribeQuorumResponse": message(
        55,
        "0-2",
        "0+",
        field("ErrorCode", "int16", "0+"),
        field("ErrorMessage", "string", "2+", nullableVersions="2+"),
        field(
            "Topics",
            "[]TopicData",
            "0+",
            fields=[
                field("TopicName", "string", "0+"),
                field(
                    "Partitions",
                    "[]PartitionData",
                    "0+",
                    fields=[
                        field("PartitionIndex", "int32", "0+"),
                        field("ErrorCode", "int16", "0+"),
                        field("ErrorMessage", "string", "2+", nullableVersions="2+"),
                        field("LeaderId", "int32", "0+"),
                        field("LeaderEpoch", "int32", "0+"),
                        field("HighWatermark", "int64", "0+"),
                        field("CurrentVoters", "[]ReplicaState", "0+", fields=REPLICA_STATE),
                        field("Observers", "[]ReplicaState", "0+", fields=REPLICA_STATE),
                    ],
                ),
            ],
        ),
        field(
            "Nodes",
            "[]Node",
            "2+",
            fields=[
                field("NodeId", "int32", "2+"),
                field("Listeners", "[]Listener", "2+", fields=LISTENER),
            ],
        ),
    ),
}
