"""What other tools write while brokers run, and what they are told; on a real ZooKeeper."""

import json

import pytest
import trio
from kazoo.security import make_digest_acl

from kafkalite.meta.changes import BROKER_RESOURCE, TOPIC_RESOURCE
from kafkalite.meta.entities import ip_resource, user_resource
from kafkalite.meta.events import AlterClientQuota, CreateAcl, DeleteAcl
from kafkalite.meta.image import ConfigResource
from kafkalite.meta.zookeeper import notices, znodes
from kafkalite.security.acls import Pattern, PatternType, ResourceType
from kafkalite.security.shorthand import allow, deny
from tests.meta.zookeeper_kit import Look, create, nodes_on, until

pytestmark = [pytest.mark.slow]

ORDERS = Pattern(ResourceType.TOPIC, PatternType.LITERAL, "orders")
BILLS = Pattern(ResourceType.TOPIC, PatternType.PREFIXED, "bills-")
ALICE = user_resource("alice")
LATER_MS = 16 * 60 * 1_000


class Tool(Look):
    """Writes as kafka-acls and kafka-configs of 3.9 do: the node first, then the notice."""

    def write_rules(self, pattern, rules):
        path = znodes.acl_path(pattern)
        if rules:
            self.put(path, znodes.acl_data([rule.entry for rule in rules]))
        else:
            self.client.delete(path)
        if pattern.pattern_type is PatternType.LITERAL:
            self.notice("/kafka-acl-changes/acl_changes_", b"TOPIC:" + pattern.name.encode())
        else:
            said = {"version": 1, "resourceType": "TOPIC", "name": pattern.name}
            data = json.dumps({**said, "patternType": "PREFIXED"}).encode()
            self.notice("/kafka-acl-extended-changes/acl_changes_", data)

    def write_config(self, resource, values):
        path = znodes.config_path(resource)
        self.put(path, znodes.config_data(values))
        said = {"version": 2, "entity_path": path.removeprefix("/config/")}
        self.notice("/config/changes/config_change_", json.dumps(said).encode())

    def put(self, path, data):
        if self.client.exists(path):
            self.client.set(path, data)
        else:
            self.client.create(path, data, makepath=True)

    def notice(self, path, data):
        self.client.create(path, data, sequence=True)

    def notices(self, folder):
        names = sorted(self.client.get_children(folder))
        return [self.client.get(f"{folder}/{name}")[0] for name in names]


def entries(*rules):
    return {rule.entry for rule in rules}


def of(image, pattern):
    return set(image.acls.get(pattern, ()))


def test_what_tools_write_is_taken_up_by_all_brokers_and_left_as_it_is(zookeeper):
    """Rules 589, 590: rules, users and quotas; made, changed and taken away."""
    (read,), (write,) = allow("bob", "read", topic="orders"), deny("bob", "write", topic="bills-*")

    async def main():
        async with nodes_on(zookeeper, 2) as (one, two):
            with Tool(zookeeper) as tool:
                tool.write_rules(ORDERS, [read])
                tool.write_rules(BILLS, [write])
                tool.write_config(ALICE, {"SCRAM-SHA-512": "x", "producer_byte_rate": "5"})
                tool.write_config(ip_resource("10.0.0.1"), {"connection_creation_rate": "7"})
                for node in (one, two):
                    await until(lambda node=node: of(node.image, ORDERS) == entries(read))
                    await until(lambda node=node: of(node.image, BILLS) == entries(write))
                    await until(lambda node=node: node.image.configs_of(ip_resource("10.0.0.1")))
                    assert node.image.configs_of(ALICE) == {
                        "SCRAM-SHA-512": "x", "producer_byte_rate": "5"
                    }  # fmt: skip
                assert tool.stat(znodes.acl_path(ORDERS)).version == 0
                assert tool.stat(znodes.config_path(ALICE)).version == 0
                # What is made here goes on from there.
                (more,) = allow("carol", "read", topic="orders")
                await one.runner.submit(CreateAcl(rule=more))
                quota = AlterClientQuota(
                    entity=[("user", "alice")], quotas=[("consumer_byte_rate", 6.0)]
                )
                await one.runner.submit(quota)
                assert len(tool.json(znodes.acl_path(ORDERS))["acls"]) == 2
                assert tool.json(znodes.config_path(ALICE))["config"].keys() == {
                    "SCRAM-SHA-512", "producer_byte_rate", "consumer_byte_rate"
                }  # fmt: skip
                tool.write_rules(ORDERS, [])
                tool.write_config(ALICE, {"producer_byte_rate": "8"})
                for node in (one, two):
                    await until(lambda node=node: not of(node.image, ORDERS))
                    await until(
                        lambda node=node: (
                            node.image.configs_of(ALICE) == {"producer_byte_rate": "8"}
                        )
                    )
                assert not tool.client.exists(znodes.acl_path(ORDERS))
                assert of(two.image, BILLS) == entries(write)

    trio.run(main)


def test_settings_of_topics_and_brokers_are_taken_up_by_all_brokers(zookeeper, caplog):
    """Rule 590; what a topic cannot have, or a topic that is not there, is left alone."""
    topic, other = ConfigResource(TOPIC_RESOURCE, "t"), ConfigResource(TOPIC_RESOURCE, "other")
    every, second = ConfigResource(BROKER_RESOURCE, ""), ConfigResource(BROKER_RESOURCE, "2")

    async def main():
        async with nodes_on(zookeeper, 2) as (one, two):
            await one.runner.submit(create("t", 1, configs={"retention.ms": "5"}))
            with Tool(zookeeper) as tool:
                version = tool.stat(znodes.config_path(topic)).version
                tool.write_config(other, {"retention.ms": "7"})
                tool.write_config(topic, {"segment.ms": "9"})
                tool.write_config(every, {"message.max.bytes": "1000"})
                tool.write_config(second, {"num.io.threads": "3"})
                for node in (one, two):
                    await until(lambda node=node: node.image.configs_of(second))
                    await until(lambda node=node: node.image.topics["t"].configs)
                    assert node.image.topics["t"].configs == {"segment.ms": "9"}
                    assert node.image.configs_of(every) == {"message.max.bytes": "1000"}
                    assert node.config.int("message.max.bytes") == 1_000
                    assert "other" not in node.image.topics
                assert two.config.int("num.io.threads") == 3
                assert tool.stat(znodes.config_path(topic)).version == version + 1
                tool.write_config(topic, {"retention.ms": "soon"})
                tool.write_config(every, {"message.max.bytes": "few"})
                await until(lambda: "'few'" in caplog.text and "'soon'" in caplog.text)
                assert two.image.topics["t"].configs == {"segment.ms": "9"}
                tool.client.delete(znodes.config_path(every))
                said = b'{"version":2,"entity_path":"brokers/<default>"}'
                tool.notice("/config/changes/config_change_", said)
                await until(lambda: not two.image.configs_of(every))
                assert one.runner.is_controller

    trio.run(main)


def test_what_is_changed_here_is_told_as_kafka_tells_it(zookeeper):
    """Rule 589."""
    (read,), (write,) = allow("bob", "read", topic="orders"), deny("bob", "write", topic="bills-*")

    async def main():
        async with nodes_on(zookeeper, 1) as (one,):
            await one.runner.submit_all([CreateAcl(rule=read), CreateAcl(rule=write)])
            await one.runner.submit(DeleteAcl(rule=read))
            quota = AlterClientQuota(
                entity=[("user", "al@ice")], quotas=[("request_percentage", 6)]
            )
            await one.runner.submit(quota)
            version = one.image.version
            with Tool(zookeeper) as tool:
                assert tool.notices("/kafka-acl-changes") == [b"TOPIC:orders"] * 2
                (extended,) = tool.notices("/kafka-acl-extended-changes")
                assert json.loads(extended)["name"] == "bills-"
                (config,) = tool.notices("/config/changes")
                assert json.loads(config) == {"version": 2, "entity_path": "users/al%40ice"}
                # It is nothing new to the broker itself.
                tool.write_rules(ORDERS, [read])
                await until(lambda: of(one.image, ORDERS) == entries(read))
                assert one.image.version == version + 1

    trio.run(main)


def test_a_tool_that_writes_again_meanwhile_is_not_overwritten(zookeeper, monkeypatch):
    """Rule 590: what was read is committed, but not written."""
    first, second = allow("bob", "read", topic="orders"), allow("eve", "read", topic="orders")
    real = notices.Notices.read

    async def main():
        async with nodes_on(zookeeper, 1) as (one,):
            with Tool(zookeeper) as tool:

                async def read(self, image):
                    found = await real(self, image)
                    if found and not tool.stat(znodes.acl_path(ORDERS)).version:
                        tool.put(znodes.acl_path(ORDERS), znodes.acl_data([second[0].entry]))
                    return found

                monkeypatch.setattr(notices.Notices, "read", read)
                tool.write_rules(ORDERS, first)
                await until(lambda: of(one.image, ORDERS) == entries(*second))
                assert tool.json(znodes.acl_path(ORDERS))["acls"][0]["principal"] == "User:eve"
                assert one.runner.is_controller

    trio.run(main)


def test_what_was_written_while_there_was_no_controller_is_taken_up_by_the_next(zookeeper):
    rules = allow("bob", "read", topic="orders")

    async def main():
        async with nodes_on(zookeeper, 2) as (one, two):
            with Tool(zookeeper) as tool:
                one.stop()
                tool.write_rules(ORDERS, rules)
                await until(lambda: of(two.image, ORDERS) == entries(*rules))

    trio.run(main)


def test_notices_that_are_none_harm_nobody(zookeeper, caplog):
    rules = allow("bob", "read", topic="orders")

    async def main():
        async with nodes_on(zookeeper, 1) as (one,):
            with Tool(zookeeper) as tool:
                tool.notice("/kafka-acl-changes/acl_changes_", b"nonsense")
                tool.notice("/config/changes/config_change_", b'{"version":1}')
                tool.put(znodes.config_path(ALICE), b"nonsense")
                tool.notice("/config/changes/config_change_", b'{"entity_path":"users/alice"}')
                tool.write_rules(ORDERS, rules)
                await until(lambda: of(one.image, ORDERS) == entries(*rules))
                await until(lambda: "/config/users/alice holds" in caplog.text)
        assert caplog.text.count("is no notice of a change") == 2

    trio.run(main)


def test_what_brokers_may_not_read_harms_nobody(zookeeper, caplog):
    rules = allow("bob", "read", topic="orders")
    said = b'{"version":2,"entity_path":"users/alice"}'

    async def main():
        async with nodes_on(zookeeper, 1) as (one,):
            with Tool(zookeeper) as tool:
                tool.client.add_auth("digest", "somebody:else")
                acl = [make_digest_acl("somebody", "else", all=True)]
                tool.client.create(znodes.config_path(ALICE), b"{}", acl)
                tool.notice("/config/changes/config_change_", said)
                tool.client.create("/config/changes/config_change_", said, acl, sequence=True)
                tool.write_rules(ORDERS, rules)
                await until(lambda: of(one.image, ORDERS) == entries(*rules))
                await until(lambda: "/config/users/alice: ZooKeeper at" in caplog.text)
                assert one.runner.is_controller

    trio.run(main)


def test_old_notices_are_removed(zookeeper, monkeypatch):
    """Rule 589: after 15 minutes."""
    rules = allow("bob", "read", topic="orders")

    async def main():
        async with nodes_on(zookeeper, 1) as (one,):
            with Tool(zookeeper) as tool:
                await one.runner.submit(CreateAcl(rule=rules[0]))
                await until(lambda: tool.notices("/kafka-acl-changes"))
                monkeypatch.setattr(notices, "KEPT_MS", -LATER_MS)
                tool.write_config(ALICE, {"producer_byte_rate": "5"})
                await until(lambda: not tool.client.get_children("/kafka-acl-changes"))
                await until(lambda: not tool.client.get_children("/config/changes"))
                await until(lambda: one.image.configs_of(ALICE))

    trio.run(main)
