"""The matrix of what each API needs: one table, asked of kafkalite and of Apache Kafka alike.

A row is a request and what a user needs for it to be served. Asking in every version with no rule,
with each one left out, and with all of them tells what a broker checks, and in which order.
"""

import socket
import time
from collections.abc import Callable
from typing import NamedTuple

from kafkalite.security.acls import (
    CLUSTER_NAME,
    Operation,
    Permission,
    ResourceType,
)
from kafkalite.wire.api import ApiKey
from kafkalite.wire.apis import APIS
from kafkalite.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kafkalite.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from kafkalite.wire.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from kafkalite.wire.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from kafkalite.wire.records import Record, build_batch
from kafkalite.wire.schema import ArrayOf, Structure
from tests.raw_client import RawClient

ORDERS, GROUP, TXN = "orders", "billing", "payments"
AUTHORIZATION = {29, 30, 31, 53, 65}
USER = "User:alice"
TOPIC_ID = "TOPIC_ID"
"""Stands for the id of the topic in the table."""


class Need(NamedTuple):
    operation: Operation
    kind: ResourceType
    name: str


def topic(operation):
    return Need(operation, ResourceType.TOPIC, ORDERS)


def group(operation):
    return Need(operation, ResourceType.GROUP, GROUP)


def txn(operation):
    return Need(operation, ResourceType.TRANSACTIONAL_ID, TXN)


def cluster(operation):
    return Need(operation, ResourceType.CLUSTER, CLUSTER_NAME)


class Row(NamedTuple):
    name: str
    key: ApiKey
    needs: tuple[Need, ...]
    code: int
    request: dict
    first: int = 0
    last: int = 99
    before: Callable | None = None
    """What the administrator does first, each time that rules were set."""


R, W, C, D, A, S = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
)
DC, AC, ACT = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS, Operation.CLUSTER_ACTION
PART = {"partition_index": 0}
K = ApiKey
BATCH = bytes(build_batch([Record(offset=0, timestamp=1, key=None, value=b"x")]))

COMMIT = {
    "group_id": GROUP,
    "generation_id_or_member_epoch": -1,
    "topics": [{"name": ORDERS, "partitions": [{**PART, "committed_offset": 1}]}],
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
        {
            "topics": [{"name": ORDERS, "num_partitions": 1, "replication_factor": 1}],
            "timeout_ms": 5000,
            "validate_only": True,
        },
    ),
    Row(
        "create topics, by the cluster",
        K.CREATE_TOPICS,
        (cluster(C),),
        29,
        {
            "topics": [{"name": ORDERS, "num_partitions": 1, "replication_factor": 1}],
            "timeout_ms": 5000,
            "validate_only": True,
        },
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


class Asker(RawClient):
    """A user who has logged in by PLAIN, and asks anything in any version."""

    def __init__(self, bootstrap, user, password):
        host, _, port = bootstrap.rpartition(":")
        self.client_id = "matrix"
        self.socket = socket.create_connection((host, int(port)), 20)
        assert not self.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN")).error_code
        token = f"\0{user}\0{password}".encode()
        answer = self.ask(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(auth_bytes=token))
        assert not answer.error_code, answer

    def topic_id(self, name):
        """Make a topic, if it is not there, and return its id."""
        create = APIS[ApiKey.CREATE_TOPICS]
        wanted = {"name": name, "num_partitions": 1, "replication_factor": 1}
        self.ask(create, 5, made(create, {"topics": [wanted], "timeout_ms": 20_000}))
        self._wait_coordinator(0, GROUP)
        self._wait_coordinator(1, TXN)
        commit = APIS[ApiKey.OFFSET_COMMIT]
        self.ask(commit, 7, made(commit, COMMIT))  # there is such a group
        for _ in range(200):
            answer = self.ask(
                METADATA, 12, MetadataRequest(topics=[MetadataRequestTopic(name=name)])
            )
            found = answer.topics[0]
            if not found.error_code and found.partitions[0].leader_id >= 0:
                return found.topic_id
        raise AssertionError(found)

    def _wait_coordinator(self, kind, key):
        """Have the internal topic made, and its shards loaded."""
        find = APIS[ApiKey.FIND_COORDINATOR]
        if kind:
            served, values = ApiKey.DESCRIBE_TRANSACTIONS, {"transactional_ids": [key]}
        else:
            served, values = ApiKey.DESCRIBE_GROUPS, {"groups": [key]}
        for _ in range(200):
            found = self.ask(find, 1, made(find, {"key": key, "key_type": kind}))
            if not found.error_code:
                answer = self.ask(APIS[served], 0, made(APIS[served], values))
                if not {code for _, code in codes_in(answer)} & {14, 15, 16}:
                    return
            time.sleep(0.05)
        raise AssertionError(found)

    def set_rules(self, needs, permission=Permission.ALLOW):
        """Have these rules and no others, and wait until they are in force."""
        anything = DeleteAclsFilter(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        deleted = self.ask(APIS[ApiKey.DELETE_ACLS], 3, DeleteAclsRequest(filters=[anything]))
        assert not deleted.filter_results[0].error_code
        creations = [
            AclCreation(
                resource_type=need.kind,
                resource_name=need.name,
                resource_pattern_type=3,
                principal=USER,
                host="*",
                operation=need.operation,
                permission_type=permission,
            )
            for need in needs
        ]
        created = self.ask(APIS[ApiKey.CREATE_ACLS], 3, CreateAclsRequest(creations=creations))
        assert not any(one.error_code for one in created.results)
        describe = APIS[ApiKey.DESCRIBE_ACLS]
        wanted = {
            "resource_type_filter": 1,
            "resource_name_filter": None,
            "pattern_type_filter": 1,
            "principal_filter": None,
            "host_filter": None,
            "operation": 1,
            "permission_type": 1,
        }
        for _ in range(200):
            found = self.ask(describe, 3, made(describe, wanted)).resources
            if sum(len(one.acls) for one in found) == len(needs):
                return
            time.sleep(0.02)
        raise AssertionError(found)


def made(api, values, topic_id=None):
    """Return a request of plain values."""
    return _filled(api.request.record, values, topic_id)


def _filled(record, values, topic_id):
    shapes = {field.name: field.shape for field in record.FIELDS}
    filled = {}
    for name, value in values.items():
        shape = shapes[name]
        inner = shape.element if isinstance(shape, ArrayOf) else shape
        if value == TOPIC_ID:
            value = topic_id
        elif isinstance(value, list) and isinstance(inner, type):
            value = [_filled(inner, each, topic_id) for each in value]
        filled[name] = value
    return record(**filled)


def codes_in(message):
    """Return all error codes of a response, with where they stand."""
    found = set()
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            found.add((field.name, int(value)))
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, Structure):
                    found |= codes_in(each)
        elif isinstance(value, Structure):
            found |= codes_in(value)
    return found


def versions(row):
    api = APIS[row.key]
    return range(max(row.first, api.versions[0]), min(row.last, api.versions[1]) + 1)


def refusals(asker, row, topic_id):
    """Return the refusals in the answers to a row, by version."""
    api = APIS[row.key]
    found = {}
    for version in versions(row):
        answer = asker.ask(api, version, made(api, row.request, topic_id))
        codes = {each for each in codes_in(answer) if each[1] in AUTHORIZATION | {55}}
        found[version] = tuple(sorted(codes))
    return found


def subsets(row):
    """Return the sets of rules to ask a row with: none, all but one, and all."""
    sets = [()]
    if len(row.needs) > 1:
        sets += [row.needs[:index] + row.needs[index + 1 :] for index in range(len(row.needs))]
    return [*sets, row.needs]


def outcome(bootstrap, topic_id, row):
    """Return the refusals of a row for each set of rules and version."""
    with Asker(bootstrap, "admin", "admin-secret") as admin:
        found = {}
        for needs in subsets(row):
            admin.set_rules(needs)
            if row.before is not None:
                row.before(admin, topic_id)
            with Asker(bootstrap, "alice", "alice-secret") as alice:
                names = tuple(f"{n.operation.name} {n.kind.name}" for n in needs)
                found[names] = refusals(alice, row, topic_id)
    return found


SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
}
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="admin-secret" '
    'user_admin="admin-secret" user_alice="alice-secret";'
)
