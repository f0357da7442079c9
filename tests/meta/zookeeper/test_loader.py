"""What all nodes of a real ZooKeeper make together: users, their clients, and tokens."""

import pytest
import trio

from kafkalite.meta.delegation_tokens import find_token, token_resource
from kafkalite.meta.entities import client_resource, ip_resource, user_resource
from kafkalite.meta.events import (
    AlterClientQuota,
    AlterScramCredential,
    ChangeDelegationToken,
    CreateDelegationToken,
)
from kafkalite.meta.runner import MetadataRunner
from kafkalite.meta.zookeeper.token_nodes import NotKafka, read_token
from tests.meta.zookeeper_kit import Look, nodes_on, store_on

pytestmark = [pytest.mark.slow]

ANN_APP = (("client-id", "app/1"), ("user", "ann"))


def quota(*entity, **values):
    return AlterClientQuota(entity=entity, quotas=list(values.items()))


async def loaded(zookeeper, node):
    """Return what a broker reads that starts now."""
    store = store_on(zookeeper)
    await store.open()
    runner = MetadataRunner(node.config, store, cluster_id=node.image.cluster_id)
    await runner.load()
    store.close()
    return runner.image


def test_quotas_are_where_kafka_3_9_has_them(zookeeper):
    """Rule 535; a client of a user is below a node that the user may not have yet."""

    async def main():
        async with nodes_on(zookeeper, 1) as (node,):
            submit = node.runner.submit
            await submit(quota(*ANN_APP, producer_byte_rate=1_000.0))
            await submit(quota(("user", None), consumer_byte_rate=5e8))
            await submit(quota(("client-id", None), request_percentage=12.5))
            await submit(quota(("ip", "10.0.0.1"), connection_creation_rate=3.0))
            credential = AlterScramCredential(
                user="ann", mechanism="SCRAM-SHA-256", credential="salt=x"
            )
            await submit(credential)
            with Look(zookeeper) as look:
                for path, config in (
                    ("/config/users/ann/clients/app%2F1", {"producer_byte_rate": "1000"}),
                    ("/config/users/ann", {"SCRAM-SHA-256": "salt=x"}),
                    ("/config/users/<default>", {"consumer_byte_rate": "500000000"}),
                    ("/config/clients/<default>", {"request_percentage": "12.5"}),
                    ("/config/ips/10.0.0.1", {"connection_creation_rate": "3"}),
                ):
                    assert look.json(path) == {"version": 1, "config": config}
                image = await loaded(zookeeper, node)
                assert image.configs == node.image.configs
                assert len(image.configs) == 5
                await submit(
                    AlterScramCredential(user="ann", mechanism="SCRAM-SHA-256", credential=None)
                )
                await submit(quota(("ip", "10.0.0.1"), connection_creation_rate=None))
                assert look.json("/config/users/ann") == {"version": 1, "config": {}}
                image = await loaded(zookeeper, node)
                assert image.configs == node.image.configs
                assert ip_resource("10.0.0.1") not in image.configs
                assert user_resource("ann") not in image.configs
                assert {user_resource("ann", "app/1"), client_resource(None)} < set(image.configs)
            await submit(quota(("ip", "10.0.0.1"), connection_creation_rate=4.0))
            assert (await loaded(zookeeper, node)).configs == node.image.configs

    trio.run(main)


def test_tokens_are_where_kafka_3_9_has_them(zookeeper):
    """Rule 575."""

    async def main():
        async with nodes_on(zookeeper, 1) as (node,):
            create = CreateDelegationToken(
                token_id="an-id_1",
                owner="User:ann",
                requester="User:admin",
                renewers=["User:bob", "User:c,d"],
                now_ms=1_000,
                expiry_ms=2_000,
                max_ms=9_000,
            )
            await node.runner.submit(create)
            path = "/delegation_token/tokens/an-id_1"
            with Look(zookeeper) as look:
                assert look.json(path) == {
                    "version": 3,
                    "owner": "User%3Aann",
                    "tokenRequester": "User%3Aadmin",
                    "renewers": ["User%3Abob", "User%3Ac%2Cd"],
                    "issueTimestamp": 1_000,
                    "maxTimestamp": 9_000,
                    "expiryTimestamp": 2_000,
                    "tokenId": "an-id_1",
                }
                image = await loaded(zookeeper, node)
                assert image.configs == node.image.configs
                assert find_token(image, "an-id_1").renewers == ("User:bob", "User:c,d")
                change = {"token_id": "an-id_1", "principal": "User:bob", "is_renewal": False}
                await node.runner.submit(
                    ChangeDelegationToken(**change, now_ms=1_500, expiry_ms=50_000)
                )
                assert look.json(path)["expiryTimestamp"] == 9_000
                await node.runner.submit(
                    ChangeDelegationToken(**change, now_ms=1_500, expiry_ms=None)
                )
                assert not look.client.exists(path)
            assert token_resource("an-id_1") not in (await loaded(zookeeper, node)).configs

    trio.run(main)


def test_tokens_of_older_versions_are_their_owners_own():
    data = (
        b'{"version":1,"owner":"User%3Aann","renewers":[],"issueTimestamp":1,'
        b'"maxTimestamp":3,"expiryTimestamp":2,"tokenId":"t"}'
    )
    assert read_token("/t", data)["tokenRequester"] == "User:ann"


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"owner":1}', b"\xff"])
def test_what_is_no_token_is_named(data):
    with pytest.raises(NotKafka, match="/t: "):
        read_token("/t", data)
