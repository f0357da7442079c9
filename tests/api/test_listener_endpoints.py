from kafkalite.api.listener_endpoints import endpoints_for, leader_for, offline_replicas
from kafkalite.meta.image import PartitionImage
from kafkalite.wire.errors import ErrorCode
from tests.api.cluster_kit import ClusterKit


def test_what_a_client_can_reach_depends_on_its_listener():
    """Rules 17 and 18."""
    kit = ClusterKit(2)
    kit.register(3, listener="OTHER")
    endpoints = endpoints_for(kit.context(0))
    assert endpoints == {1: ("host", 9091), 2: ("host", 9092)}
    state = PartitionImage((3, 2, 9), (3, 2, 9), 2)
    assert offline_replicas(state, endpoints) == [3, 9]
    for leader, told in (
        (2, (2, ErrorCode.NONE)),
        (3, (-1, ErrorCode.LISTENER_NOT_FOUND)),
        (9, (-1, ErrorCode.LEADER_NOT_AVAILABLE)),
        (-1, (-1, ErrorCode.LEADER_NOT_AVAILABLE)),
    ):
        state = PartitionImage((3, 2, 9), (3, 2, 9), leader)
        assert leader_for(state, endpoints, kit.image) == told
