"""What Apache's JSON says of the messages between brokers, which no wheel of a client carries.

Structures that share a name in one API there have a name of their own here.
"""


def _field(name, kind, versions, **more):
    return {"name": name, "type": kind, "versions": versions, **more}


def _message(api_key, valid, flexible, *fields):
    return {
        "apiKey": api_key,
        "validVersions": valid,
        "flexibleVersions": flexible,
        "fields": list(fields),
    }


DEFINITIONS = {
    "AlterPartitionRequest": _message(
        56,
        "2-3",
        "0+",
        _field("BrokerId", "int32", "0+"),
        _field("BrokerEpoch", "int64", "0+", default="-1"),
        _field(
            "Topics",
            "[]AlterPartitionTopic",
            "0+",
            fields=[
                _field("TopicId", "uuid", "2+"),
                _field(
                    "Partitions",
                    "[]AlterPartitionData",
                    "0+",
                    fields=[
                        _field("PartitionIndex", "int32", "0+"),
                        _field("LeaderEpoch", "int32", "0+"),
                        _field("NewIsr", "[]int32", "0-2"),
                        _field(
                            "NewIsrWithEpochs",
                            "[]BrokerState",
                            "3+",
                            fields=[
                                _field("BrokerId", "int32", "3+"),
                                _field("BrokerEpoch", "int64", "3+", default="-1"),
                            ],
                        ),
                        _field("LeaderRecoveryState", "int8", "1+", default="0"),
                        _field("PartitionEpoch", "int32", "0+"),
                    ],
                ),
            ],
        ),
    ),
    "AlterPartitionResponse": _message(
        56,
        "2-3",
        "0+",
        _field("ThrottleTimeMs", "int32", "0+"),
        _field("ErrorCode", "int16", "0+"),
        _field(
            "Topics",
            "[]AlterPartitionTopicResult",
            "0+",
            fields=[
                _field("TopicId", "uuid", "2+"),
                _field(
                    "Partitions",
                    "[]AlterPartitionResult",
                    "0+",
                    fields=[
                        _field("PartitionIndex", "int32", "0+"),
                        _field("ErrorCode", "int16", "0+"),
                        _field("LeaderId", "int32", "0+"),
                        _field("LeaderEpoch", "int32", "0+"),
                        _field("Isr", "[]int32", "0+"),
                        _field("LeaderRecoveryState", "int8", "1+", default="0"),
                        _field("PartitionEpoch", "int32", "0+"),
                    ],
                ),
            ],
        ),
    ),
    "ControlledShutdownRequest": _message(
        7,
        "0-3",
        "3+",
        _field("BrokerId", "int32", "0+"),
        _field("BrokerEpoch", "int64", "2+", default="-1"),
    ),
    "ControlledShutdownResponse": _message(
        7,
        "0-3",
        "3+",
        _field("ErrorCode", "int16", "0+"),
        _field(
            "RemainingPartitions",
            "[]RemainingPartition",
            "0+",
            fields=[_field("TopicName", "string", "0+"), _field("PartitionIndex", "int32", "0+")],
        ),
    ),
    "AllocateProducerIdsRequest": _message(
        67,
        "0",
        "0+",
        _field("BrokerId", "int32", "0+"),
        _field("BrokerEpoch", "int64", "0+", default="-1"),
    ),
    "AllocateProducerIdsResponse": _message(
        67,
        "0",
        "0+",
        _field("ThrottleTimeMs", "int32", "0+"),
        _field("ErrorCode", "int16", "0+"),
        _field("ProducerIdStart", "int64", "0+"),
        _field("ProducerIdLen", "int32", "0+"),
    ),
    "EnvelopeRequest": _message(
        58,
        "0",
        "0+",
        _field("RequestData", "bytes", "0+"),
        _field("RequestPrincipal", "bytes", "0+", nullableVersions="0+"),
        _field("ClientHostAddress", "bytes", "0+"),
    ),
    "EnvelopeResponse": _message(
        58,
        "0",
        "0+",
        _field("ResponseData", "bytes", "0+", nullableVersions="0+", default="null"),
        _field("ErrorCode", "int16", "0+"),
    ),
}
