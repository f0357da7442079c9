import pytest

from kafkalite.api.controlled_shutdown import HANDLERS
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.controlled_shutdown import ControlledShutdownRequest
from tests.api.cluster_kit import ClusterKit

(HANDLER,) = HANDLERS


@pytest.fixture
def kit():
    made = ClusterKit(3)
    made.assign("a", [2, 1, 3], [1, 2, 3], [2, 3, 1])
    made.assign("sole", [2])
    return made


@pytest.mark.parametrize("version", range(4))
def test_leaderships_are_given_away(kit, version):
    """Rules 182 and 183."""
    request = ControlledShutdownRequest(broker_id=2, broker_epoch=12)
    response = kit.ask(HANDLER, request, version)
    assert (response.error_code, response.remaining_partitions) == (0, [])
    assert [state.leader for state in kit.image.topics["a"].partitions] == [1, 1, 3]
    assert all(2 not in state.isr for state in kit.image.topics["a"].partitions)
    assert kit.image.brokers[2].shutting_down


def test_what_nobody_else_can_lead_is_told(kit):
    """Rule 182."""
    kit.ask(HANDLER, ControlledShutdownRequest(broker_id=1, broker_epoch=11))
    kit.ask(HANDLER, ControlledShutdownRequest(broker_id=3, broker_epoch=13))
    response = kit.ask(HANDLER, ControlledShutdownRequest(broker_id=2, broker_epoch=12))
    remaining = [(each.topic_name, each.partition_index) for each in response.remaining_partitions]
    assert remaining == [("a", 0), ("a", 1), ("a", 2)]


@pytest.mark.parametrize(
    ("broker_id", "epoch", "code"),
    [(2, 13, ErrorCode.STALE_BROKER_EPOCH), (9, 1, ErrorCode.BROKER_NOT_AVAILABLE)],
)
def test_a_dead_session_is_refused(kit, broker_id, epoch, code):
    request = ControlledShutdownRequest(broker_id=broker_id, broker_epoch=epoch)
    response = kit.ask(HANDLER, request)
    assert (response.error_code, response.remaining_partitions) == (code, [])


def test_only_brokers_ask():
    assert HANDLER.inter_broker_only
