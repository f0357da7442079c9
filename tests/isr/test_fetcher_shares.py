"""Several Fetches to one leader at a time (num.replica.fetchers)."""

import trio

from kafkalite.meta.changes import BROKER_RESOURCE, ConfigsChanged
from kafkalite.wire.messages.fetch import FetchRequest
from tests.isr.replication_kit import Cluster
from tests.isr.test_fetcher import SOON_S, copying, lies_as_in


def shares(cluster):
    """The partitions of each Fetch that opened a session."""
    return sorted(
        sorted(p.partition for topic in one.topics for p in topic.partitions)
        for one in cluster.requests
        if isinstance(one, FetchRequest) and one.session_epoch == 0
    )


async def test_several_fetches_to_one_leader_share_its_partitions(autojump_clock):
    cluster = Cluster(partitions=6, num_replica_fetchers=3)
    leader, follower = cluster.nodes.values()
    async with copying(cluster, 2):
        for index in range(6):
            leader.append(b"x", index=index)
        await trio.sleep(SOON_S)
        assert shares(cluster) == [[0, 3], [1, 4], [2, 5]]
        assert len(follower.fetchers.fetch_rates()) == 3
        assert all(lies_as_in(cluster, 1, 2, index) for index in range(6))


async def test_how_many_fetches_there_are_may_change(autojump_clock):
    cluster = Cluster(partitions=6)
    leader, follower = cluster.nodes.values()
    async with copying(cluster, 2):
        await trio.sleep(SOON_S)
        for count in (2, 3, 1):
            follower.config.apply_dynamic({}, {"num.replica.fetchers": str(count)})
            changed = ConfigsChanged(
                resource_type=BROKER_RESOURCE,
                resource_name="",
                values={"num.replica.fetchers": str(count)},
            )
            follower.replicas.on_changes([changed], cluster.image)
            for index in range(6):
                leader.append(b"x", index=index)
            await trio.sleep(SOON_S)
            assert len(follower.fetchers.fetch_rates()) == count
            assert all(lies_as_in(cluster, 1, 2, index) for index in range(6))
