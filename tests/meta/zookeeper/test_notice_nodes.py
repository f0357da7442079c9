"""Notices by themselves (rule 589): after ZkData.scala of Apache Kafka 3.9."""

import pytest

from kafkalite.meta.changes import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from kafkalite.meta.entities import client_resource, ip_resource, user_resource
from kafkalite.meta.image import ConfigResource
from kafkalite.meta.zookeeper.multi_operations import Create, Delete, Set
from kafkalite.meta.zookeeper.notice_nodes import notices_of, read_notice
from kafkalite.meta.zookeeper.znodes import NotKafka, acl_path, config_path
from kafkalite.security.acls import Pattern, PatternType, ResourceType

LITERAL = Pattern(ResourceType.TRANSACTIONAL_ID, PatternType.LITERAL, "a:b")
PREFIXED = Pattern(ResourceType.TOPIC, PatternType.PREFIXED, "bills-")
NOTICES = {
    acl_path(LITERAL): ("/kafka-acl-changes/acl_changes_", b"TRANSACTIONAL_ID:a:b"),
    acl_path(PREFIXED): (
        "/kafka-acl-extended-changes/acl_changes_",
        b'{"version":1,"resourceType":"TOPIC","name":"bills-","patternType":"PREFIXED"}',
    ),
    "/config/users/al%40ice/clients/<default>": (
        "/config/changes/config_change_",
        b'{"version":2,"entity_path":"users/al%40ice/clients/<default>"}',
    ),
    "/config/ips/10.0.0.1": (
        "/config/changes/config_change_",
        b'{"version":2,"entity_path":"ips/10.0.0.1"}',
    ),
    "/config/brokers/<default>": (
        "/config/changes/config_change_",
        b'{"version":2,"entity_path":"brokers/<default>"}',
    ),
    "/delegation_token/tokens/abc": ("/delegation_token/token_changes/token_change_", b"abc"),
}


@pytest.mark.parametrize("path", NOTICES)
@pytest.mark.parametrize(
    "kind", [lambda path: Create(path, b""), lambda path: Set(path, b""), Delete]
)
def test_what_is_written_is_told_once(path, kind):
    assert list(notices_of([kind(path), Set(path, b"more")])) == [NOTICES[path]]


def test_a_topic_is_told_when_its_settings_change_and_not_when_it_is_new_or_gone():
    path = config_path(ConfigResource(TOPIC_RESOURCE, "t"))
    assert [each.data for each in notices_of([Set(path, b"")])] == [
        b'{"version":2,"entity_path":"topics/t"}'
    ]
    assert not list(notices_of([Create(path, b""), Delete(path), Create("/brokers/topics/t", b"")]))


def test_nothing_is_told_of_what_kafka_3_9_does_not_know():
    assert not list(notices_of([Set(config_path(ConfigResource(GROUP_RESOURCE, "g")), b"")]))


@pytest.mark.parametrize(
    ("path", "data", "named"),
    [
        ("/kafka-acl-changes/acl_changes_0", b"TRANSACTIONAL_ID:a:b", LITERAL),
        ("/kafka-acl-changes/acl_changes_0", b"TransactionalId:a:b", LITERAL),
        (*NOTICES[acl_path(PREFIXED)], PREFIXED),
        (*NOTICES["/config/users/al%40ice/clients/<default>"], user_resource("al@ice", None)),
        ("/config/changes/c", b'{"entity_path":"clients/c"}', client_resource("c")),
        (*NOTICES["/config/ips/10.0.0.1"], ip_resource("10.0.0.1")),
        (*NOTICES["/config/brokers/<default>"], ConfigResource(BROKER_RESOURCE, "")),
        ("/config/changes/c", b'{"entity_path":"brokers/3"}', ConfigResource(BROKER_RESOURCE, "3")),
        ("/config/changes/c", b'{"entity_path":"topics/t"}', ConfigResource(TOPIC_RESOURCE, "t")),
        ("/config/changes/c", b'{"entity_path":"groups/g"}', None),
        ("/config/changes/c", b'{"entity_path":"users/"}', None),
    ],
)
def test_what_a_notice_is_of(path, data, named):
    assert read_notice(path, data) == named


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/kafka-acl-changes/a", b"Topic"),
        ("/kafka-acl-changes/a", b"Pond:a"),
        ("/kafka-acl-changes/a", b"Topic:a/b"),
        ("/kafka-acl-changes/a", b"\xff:"),
        ("/kafka-acl-extended-changes/a", b""),
        ("/kafka-acl-extended-changes/a", b"[]"),
        (
            "/kafka-acl-extended-changes/a",
            b'{"resourceType":"TOPIC","name":"a","patternType":"ANY"}',
        ),
        ("/kafka-acl-extended-changes/a", b'{"resourceType":1,"name":"","patternType":"LITERAL"}'),
        ("/config/changes/c", b'{"version":1,"entity_type":"topics","entity_name":"t"}'),
        ("/config/changes/c", b'{"entity_path":3}'),
    ],
)
def test_what_is_no_notice_is_refused(path, data):
    with pytest.raises(NotKafka):
        read_notice(path, data)
