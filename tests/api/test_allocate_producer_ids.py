import pytest

from kafkalite.api.allocate_producer_ids import HANDLERS
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tests.api.cluster_kit import ClusterKit

(HANDLER,) = HANDLERS


@pytest.fixture
def kit():
    return ClusterKit(2)


def test_blocks_never_overlap(kit):
    """Rule 64."""
    blocks = []
    for broker_id in (1, 2, 1):
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=10 + broker_id)
        response = kit.ask(HANDLER, request)
        assert response.error_code == 0
        blocks.append((response.producer_id_start, response.producer_id_len))
    assert blocks == [(0, 1000), (1000, 1000), (2000, 1000)]


@pytest.mark.parametrize(
    ("broker_id", "epoch", "code"),
    [(1, 10, ErrorCode.STALE_BROKER_EPOCH), (9, 5, ErrorCode.BROKER_ID_NOT_REGISTERED)],
)
def test_only_registered_brokers_get_them(kit, broker_id, epoch, code):
    request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
    response = kit.ask(HANDLER, request)
    assert (response.error_code, response.producer_id_len) == (code, 0)
    assert HANDLER.inter_broker_only
