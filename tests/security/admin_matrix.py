"""Rows of the matrix about the cluster itself: quotas, tokens, features, brokers and disks."""

from kafkalite.security.acls import Operation, ResourceType
from tests.security.matrix import AC, DC, ORDERS, A, K, Need, Row, S, cluster

ADMIN_ROWS = [
    Row("quotas", K.DESCRIBE_CLIENT_QUOTAS, (cluster(DC),), 31, {}),
    Row(
        "alter quotas",
        K.ALTER_CLIENT_QUOTAS,
        (cluster(AC),),
        31,
        {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "zoe"}],
                    "ops": [{"key": "producer_byte_rate", "value": 1e9}],
                }
            ],
            "validate_only": True,
        },
    ),
    Row(
        "token for another",
        K.CREATE_DELEGATION_TOKEN,
        (Need(Operation.CREATE_TOKENS, ResourceType.USER, "User:bob"),),
        65,
        {"owner_principal_type": "User", "owner_principal_name": "bob", "max_lifetime_ms": -1},
        first=3,
    ),
    Row(
        "features",
        K.UPDATE_FEATURES,
        (cluster(A),),
        31,
        {"timeout_ms": 1_000, "feature_updates": [{"feature": "nothing", "max_version_level": 1}]},
    ),
    Row(
        "quorum",
        K.DESCRIBE_QUORUM,
        (cluster(S),),
        31,
        {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
    ),
    Row("log dirs", K.DESCRIBE_LOG_DIRS, (cluster(S),), 31, {"topics": None}, first=3),
    Row(
        "move logs",
        K.ALTER_REPLICA_LOG_DIRS,
        (cluster(A),),
        31,
        {"dirs": [{"path": "/nowhere", "topics": [{"name": ORDERS, "partitions": [0]}]}]},
    ),
    Row("unregister", K.UNREGISTER_BROKER, (cluster(A),), 31, {"broker_id": 99}),
]

OPEN_ROWS = [
    Row("versions", K.API_VERSIONS, (), 0, {}),
    Row("cluster", K.DESCRIBE_CLUSTER, (), 0, {}),
    Row("telemetry", K.GET_TELEMETRY_SUBSCRIPTIONS, (), 0, {}),
    Row("push telemetry", K.PUSH_TELEMETRY, (), 0, {}),
    Row("token for oneself", K.CREATE_DELEGATION_TOKEN, (), 0, {"max_lifetime_ms": -1}),
    Row("tokens", K.DESCRIBE_DELEGATION_TOKEN, (), 0, {"owners": None}),
]
"""For these nobody needs a rule."""
