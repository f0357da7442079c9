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

COMMIT = {
    "group_id": GROUP,
    "generation_id_or_member_epoch": -1,
    "topics": [{"name": ORDERS, "partitions": [{**PART, "committed_offset": 1}]}],
}


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
