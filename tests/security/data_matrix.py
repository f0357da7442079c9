"""Rows of the matrix about records, topics, transactions and classic groups."""

from kafkalite.security.acls import (
    Operation,
    ResourceType,
)
from kafkalite.wire.records import Record, build_batch
from tests.security.matrix import (
    AC,
    ACT,
    DC,
    GROUP,
    ORDERS,
    PART,
    TOPIC_ID,
    TXN,
    A,
    C,
    D,
    K,
    Need,
    R,
    Row,
    S,
    W,
    cluster,
    group,
    topic,
    txn,
)

BATCH = bytes(build_batch([Record(offset=0, timestamp=1, key=None, value=b"x")]))


NEW_TOPIC = {
    "topics": [{"name": ORDERS, "num_partitions": 1, "replication_factor": 1}],
    "timeout_ms": 5000,
    "validate_only": True,
}

ROWS = [
    Row(
        "produce",
        K.PRODUCE,
        (topic(W),),
        29,
        {
            "acks": 1,
            "timeout_ms": 1000,
            "topic_data": [
                {
                    "name": ORDERS,
                    "topic_id": TOPIC_ID,
                    "partition_data": [{"index": 0, "records": BATCH}],
                }
            ],
        },
    ),
    Row(
        "fetch",
        K.FETCH,
        (topic(R),),
        29,
        {
            "replica_id": -1,
            "max_bytes": 1000,
            "topics": [
                {
                    "topic": ORDERS,
                    "topic_id": TOPIC_ID,
                    "partitions": [{"partition": 0, "partition_max_bytes": 1000}],
                }
            ],
        },
    ),
    Row(
        "offsets",
        K.LIST_OFFSETS,
        (topic(S),),
        29,
        {"replica_id": -1, "topics": [{"name": ORDERS, "partitions": [{**PART, "timestamp": -1}]}]},
    ),
    Row("metadata", K.METADATA, (topic(S),), 29, {"topics": [{"name": ORDERS}]}),
    Row(
        "topic partitions",
        K.DESCRIBE_TOPIC_PARTITIONS,
        (topic(S),),
        29,
        {"topics": [{"name": ORDERS}], "response_partition_limit": 10},
    ),
    Row(
        "commit",
        K.OFFSET_COMMIT,
        (group(R), topic(R)),
        30,
        {
            "group_id": GROUP,
            "generation_id_or_member_epoch": -1,
            "topics": [
                {
                    "name": ORDERS,
                    "topic_id": TOPIC_ID,
                    "partitions": [{**PART, "committed_offset": 1}],
                }
            ],
        },
    ),
    Row(
        "committed",
        K.OFFSET_FETCH,
        (group(S), topic(S)),
        30,
        {
            "group_id": GROUP,
            "topics": [{"name": ORDERS, "partition_indexes": [0]}],
            "groups": [
                {
                    "group_id": GROUP,
                    "topics": [{"name": ORDERS, "topic_id": TOPIC_ID, "partition_indexes": [0]}],
                }
            ],
        },
    ),
    Row(
        "coordinator of a group",
        K.FIND_COORDINATOR,
        (group(S),),
        30,
        {"key": GROUP, "coordinator_keys": [GROUP]},
    ),
    Row(
        "coordinator of a transaction",
        K.FIND_COORDINATOR,
        (txn(S),),
        53,
        {"key": TXN, "key_type": 1, "coordinator_keys": [TXN]},
        first=1,
    ),
    Row(
        "join",
        K.JOIN_GROUP,
        (group(R),),
        30,
        {
            "group_id": GROUP,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "member_id": "unknown",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        },
    ),
    Row(
        "sync",
        K.SYNC_GROUP,
        (group(R),),
        30,
        {
            "group_id": GROUP,
            "generation_id": 1,
            "member_id": "x",
            "protocol_type": "consumer",
            "protocol_name": "range",
        },
    ),
    Row(
        "heartbeat",
        K.HEARTBEAT,
        (group(R),),
        30,
        {"group_id": GROUP, "generation_id": 1, "member_id": "x"},
    ),
    Row(
        "leave",
        K.LEAVE_GROUP,
        (group(R),),
        30,
        {"group_id": GROUP, "member_id": "x", "members": [{"member_id": "x"}]},
    ),
    Row("groups", K.DESCRIBE_GROUPS, (group(S),), 30, {"groups": [GROUP]}),
    Row(
        "delete offsets",
        K.OFFSET_DELETE,
        (group(D), topic(R)),
        30,
        {"group_id": GROUP, "topics": [{"name": ORDERS, "partitions": [PART]}]},
    ),
    Row(
        "create topics",
        K.CREATE_TOPICS,
        (topic(C),),
        29,
        NEW_TOPIC,
    ),
    Row(
        "create topics, by the cluster",
        K.CREATE_TOPICS,
        (cluster(C),),
        29,
        NEW_TOPIC,
    ),
    Row(
        "delete topics",
        K.DELETE_TOPICS,
        (Need(D, ResourceType.TOPIC, "ghost"),),
        29,
        {"topics": [{"name": "ghost"}], "topic_names": ["ghost"], "timeout_ms": 5000},
    ),
    Row(
        "create partitions",
        K.CREATE_PARTITIONS,
        (topic(A),),
        29,
        {
            "topics": [{"name": ORDERS, "count": 9, "assignments": None}],
            "timeout_ms": 5000,
            "validate_only": True,
        },
    ),
    Row(
        "delete records",
        K.DELETE_RECORDS,
        (topic(D),),
        29,
        {"topics": [{"name": ORDERS, "partitions": [{**PART, "offset": 0}]}], "timeout_ms": 5000},
    ),
    Row(
        "configs of a topic",
        K.DESCRIBE_CONFIGS,
        (topic(DC),),
        29,
        {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": ORDERS,
                    "configuration_keys": ["retention.ms"],
                }
            ]
        },
    ),
    Row(
        "configs of a group",
        K.DESCRIBE_CONFIGS,
        (group(DC),),
        30,
        {
            "resources": [
                {
                    "resource_type": 32,
                    "resource_name": GROUP,
                    "configuration_keys": ["consumer.session.timeout.ms"],
                }
            ]
        },
        first=1,
    ),
    Row(
        "configs of brokers",
        K.DESCRIBE_CONFIGS,
        (cluster(DC),),
        31,
        {"resources": [{"resource_type": 4, "resource_name": "", "configuration_keys": None}]},
    ),
    Row(
        "alter configs of a topic",
        K.ALTER_CONFIGS,
        (topic(AC),),
        29,
        {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": ORDERS,
                    "configs": [{"name": "retention.ms", "value": "1"}],
                }
            ],
            "validate_only": True,
        },
    ),
    Row(
        "alter configs of brokers",
        K.ALTER_CONFIGS,
        (cluster(AC),),
        31,
        {
            "resources": [{"resource_type": 4, "resource_name": "", "configs": []}],
            "validate_only": True,
        },
    ),
    Row(
        "change configs of a topic",
        K.INCREMENTAL_ALTER_CONFIGS,
        (topic(AC),),
        29,
        {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": ORDERS,
                    "configs": [{"name": "retention.ms", "config_operation": 0, "value": "1"}],
                }
            ],
            "validate_only": True,
        },
    ),
    Row(
        "change configs of a group",
        K.INCREMENTAL_ALTER_CONFIGS,
        (group(AC),),
        30,
        {
            "resources": [
                {
                    "resource_type": 32,
                    "resource_name": GROUP,
                    "configs": [
                        {
                            "name": "consumer.session.timeout.ms",
                            "config_operation": 0,
                            "value": "50000",
                        }
                    ],
                }
            ],
            "validate_only": True,
        },
    ),
    Row(
        "resources with configs",
        K.LIST_CONFIG_RESOURCES,
        (cluster(DC),),
        31,
        {"resource_types": []},
    ),
    Row("log directories", K.DESCRIBE_LOG_DIRS, (cluster(S),), 31, {"topics": []}, first=3),
    Row(
        "elect leaders",
        K.ELECT_LEADERS,
        (cluster(A),),
        31,
        {"topic_partitions": [{"topic": ORDERS, "partitions": [0]}], "timeout_ms": 5000},
    ),
    Row(
        "reassign",
        K.ALTER_PARTITION_REASSIGNMENTS,
        (cluster(A),),
        31,
        {
            "timeout_ms": 5000,
            "topics": [{"name": "ghost", "partitions": [{"partition_index": 0, "replicas": None}]}],
        },
    ),
    Row(
        "reassignments",
        K.LIST_PARTITION_REASSIGNMENTS,
        (cluster(S),),
        31,
        {"timeout_ms": 5000, "topics": []},
    ),
    Row(
        "users",
        K.DESCRIBE_USER_SCRAM_CREDENTIALS,
        (cluster(S),),
        31,
        {"users": [{"name": "nobody"}]},
    ),
    Row(
        "alter users",
        K.ALTER_USER_SCRAM_CREDENTIALS,
        (cluster(A),),
        31,
        {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []},
    ),
    Row(
        "rules",
        K.DESCRIBE_ACLS,
        (cluster(S),),
        31,
        {
            "resource_type_filter": 2,
            "resource_name_filter": "ghost",
            "pattern_type_filter": 3,
            "operation": 1,
            "permission_type": 1,
        },
    ),
    Row(
        "make rules",
        K.CREATE_ACLS,
        (cluster(A),),
        31,
        {
            "creations": [
                {
                    "resource_type": 2,
                    "resource_name": "",
                    "resource_pattern_type": 3,
                    "principal": "User:x",
                    "host": "*",
                    "operation": 3,
                    "permission_type": 3,
                }
            ]
        },
    ),
    Row(
        "delete rules",
        K.DELETE_ACLS,
        (cluster(A),),
        31,
        {
            "filters": [
                {
                    "resource_type_filter": 2,
                    "resource_name_filter": "ghost",
                    "pattern_type_filter": 3,
                    "operation": 1,
                    "permission_type": 1,
                }
            ]
        },
    ),
    Row(
        "producer id",
        K.INIT_PRODUCER_ID,
        (topic(W),),
        31,
        {"transactional_id": None, "transaction_timeout_ms": 1000},
    ),
    Row(
        "producer id, by the cluster",
        K.INIT_PRODUCER_ID,
        (cluster(Operation.IDEMPOTENT_WRITE),),
        31,
        {"transactional_id": None, "transaction_timeout_ms": 1000},
    ),
    Row(
        "transactional producer id",
        K.INIT_PRODUCER_ID,
        (txn(W),),
        53,
        {"transactional_id": TXN, "transaction_timeout_ms": 1000},
    ),
    Row(
        "add partitions",
        K.ADD_PARTITIONS_TO_TXN,
        (txn(W), topic(W)),
        53,
        {
            "v3_and_below_transactional_id": TXN,
            "v3_and_below_producer_id": 7,
            "v3_and_below_topics": [{"name": ORDERS, "partitions": [0]}],
        },
        last=3,
    ),
    Row(
        "add partitions, as a broker",
        K.ADD_PARTITIONS_TO_TXN,
        (cluster(ACT),),
        31,
        {
            "transactions": [
                {
                    "transactional_id": TXN,
                    "producer_id": 7,
                    "verify_only": True,
                    "topics": [{"name": ORDERS, "partitions": [0]}],
                }
            ]
        },
        first=4,
    ),
    Row(
        "add offsets",
        K.ADD_OFFSETS_TO_TXN,
        (txn(W), group(R)),
        53,
        {"transactional_id": TXN, "producer_id": 7, "group_id": GROUP},
    ),
    Row(
        "end",
        K.END_TXN,
        (txn(W),),
        53,
        {"transactional_id": TXN, "producer_id": 7, "committed": True},
    ),
    Row(
        "commit in a transaction",
        K.TXN_OFFSET_COMMIT,
        (txn(W), group(R), topic(R)),
        53,
        {
            "transactional_id": TXN,
            "group_id": GROUP,
            "producer_id": 7,
            "topics": [{"name": ORDERS, "partitions": [{**PART, "committed_offset": 1}]}],
        },
    ),
    Row(
        "markers",
        K.WRITE_TXN_MARKERS,
        (cluster(ACT),),
        31,
        {"markers": [{"producer_id": 7, "topics": [{"name": "ghost", "partition_indexes": [0]}]}]},
    ),
    Row(
        "markers, by altering",
        K.WRITE_TXN_MARKERS,
        (cluster(A),),
        31,
        {"markers": [{"producer_id": 7, "topics": [{"name": "ghost", "partition_indexes": [0]}]}]},
    ),
    Row(
        "producers",
        K.DESCRIBE_PRODUCERS,
        (topic(R),),
        29,
        {"topics": [{"name": ORDERS, "partition_indexes": [0]}]},
    ),
    Row("transactions", K.DESCRIBE_TRANSACTIONS, (txn(S),), 53, {"transactional_ids": [TXN]}),
    Row(
        "epochs",
        K.OFFSET_FOR_LEADER_EPOCH,
        (topic(S),),
        29,
        {
            "replica_id": -1,
            "topics": [
                {
                    "topic": ORDERS,
                    "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}],
                }
            ],
        },
    ),
    Row(
        "epochs, as a broker",
        K.OFFSET_FOR_LEADER_EPOCH,
        (cluster(ACT),),
        29,
        {
            "replica_id": -1,
            "topics": [
                {
                    "topic": ORDERS,
                    "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}],
                }
            ],
        },
    ),
    Row("delete groups", K.DELETE_GROUPS, (group(D),), 30, {"groups_names": [GROUP]}),
]
