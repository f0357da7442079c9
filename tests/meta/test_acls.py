"""Rules and users as metadata: decided, written to a file, and to ZooKeeper's nodes (rule 548)."""

import json

import pytest

from kafkalite.meta.acls import create_acl, delete_acl
from kafkalite.meta.changes import AclsChanged, from_json, snapshot, to_json
from kafkalite.meta.entities import (
    alter_scram_credential,
    client_of,
    client_resource,
    ip_resource,
    name_of,
    user_of,
    user_resource,
)
from kafkalite.meta.events import AlterScramCredential, CreateAcl, DeleteAcl
from kafkalite.meta.image import Image
from kafkalite.meta.zookeeper import znodes
from kafkalite.meta.zookeeper.multi_operations import Create, Delete, Set, operations
from kafkalite.security.acls import Pattern
from kafkalite.security.shorthand import allow, deny
from kafkalite.wire.errors import ErrorCode, KafkaError

(READ,) = allow("alice", "read", topic="orders")
(WRITE,) = deny("bob", "describe-configs", topic="orders", host="10.0.0.1")
(PREFIX,) = allow("alice", "all", transactional_id="pay*")


def image(*rules):
    made = Image()
    for rule in rules:
        made = made.apply(create_acl(CreateAcl(rule=rule), made))
    return made


def test_rules_come_and_go_and_nothing_happens_twice():
    made = image(READ, WRITE, PREFIX)
    assert made.acls == {
        READ.pattern: (READ.entry, WRITE.entry),
        PREFIX.pattern: (PREFIX.entry,),
    }
    assert create_acl(CreateAcl(rule=READ), made) == []
    made = made.apply(delete_acl(DeleteAcl(rule=PREFIX), made))
    assert list(made.acls) == [READ.pattern]
    assert delete_acl(DeleteAcl(rule=PREFIX), made) == []
    with pytest.raises(KafkaError, match="no colon"):
        create_acl(CreateAcl(rule=READ._replace(entry=READ.entry._replace(principal="x"))), made)


def test_rules_are_read_from_the_file_as_they_were_written():
    made = image(READ, WRITE, PREFIX)
    lines = [json.loads(json.dumps(to_json(change))) for change in snapshot(made)]
    assert Image().apply(map(from_json, lines)).acls == made.acls


def test_nodes_are_those_of_kafka_and_read_back():
    before, after = image(READ), image(READ, WRITE, PREFIX)
    changes = [AclsChanged(pattern=p, entries=e) for p, e in after.acls.items()]
    made = {one.path: one for one in operations(before, after, changes, controller_epoch=1)}
    orders, prefix = "/kafka-acl/Topic/orders", "/kafka-acl-extended/prefixed/TransactionalId/pay"
    assert isinstance(made[orders], Set)
    assert isinstance(made[prefix], Create)
    assert json.loads(made[orders].data)["acls"][1] == {
        "principal": "User:bob",
        "permissionType": "Deny",
        "operation": "DescribeConfigs",
        "host": "10.0.0.1",
    }
    assert znodes.read_acls(orders, made[orders].data) == (READ.entry, WRITE.entry)
    gone = operations(after, Image(), [], controller_epoch=1)
    assert {type(one) for one in gone} == {Delete}
    for data in (b"{}", b'{"acls": [{"operation": "Eat"}]}', b"x"):
        with pytest.raises(znodes.NotKafka):
            znodes.read_acls(orders, data)


def test_every_kind_of_rule_has_a_folder():
    for kind in range(2, 8):
        assert znodes.acl_path(Pattern(kind, 3, "x")).startswith("/kafka-acl/")


class TestEntities:
    def test_users_and_clients_are_named_as_in_zookeeper(self):
        assert znodes.config_path(user_resource("a b*~")) == "/config/users/a%20b%2A%7E"
        assert znodes.config_path(user_resource(None)) == "/config/users/<default>"
        both = user_resource("alice", "app/1")
        assert znodes.config_path(both) == "/config/users/alice/clients/app%2F1"
        assert (user_of(both), client_of(both)) == ("alice", "app/1")
        assert client_of(user_resource("alice", None)) is None
        assert client_of(user_resource("alice")) == ""
        assert user_of(user_resource(None, "x")) is None
        assert name_of(client_resource("a b")) == "a b"
        assert name_of(client_resource(None)) is None
        assert znodes.config_path(ip_resource("10.0.0.1")) == "/config/ips/10.0.0.1"

    def test_credentials_come_and_go(self):
        event = AlterScramCredential(user="alice", mechanism="SCRAM-SHA-256", credential="salt=")
        made = Image().apply(alter_scram_credential(event, Image()))
        assert made.configs_of(user_resource("alice")) == {"SCRAM-SHA-256": "salt="}
        assert alter_scram_credential(event, made) == []
        gone = AlterScramCredential(user="alice", mechanism="SCRAM-SHA-256", credential=None)
        after = made.apply(alter_scram_credential(gone, made))
        assert user_resource("alice") not in after.configs
        with pytest.raises(KafkaError) as refused:
            alter_scram_credential(gone, after)
        assert refused.value.code is ErrorCode.RESOURCE_NOT_FOUND
