"""Rule 273."""

import pytest

from kafkalite.api.unregister_broker import HANDLERS
from kafkalite.meta.events import UnregisterBroker
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.unregister_broker import UnregisterBrokerRequest
from tests.api.cluster_kit import ClusterKit

(HANDLER,) = HANDLERS


@pytest.mark.parametrize(
    ("broker_id", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (3, 0), (9, ErrorCode.BROKER_ID_NOT_REGISTERED)],
    ids=["alive", "stopped", "unheard of"],
)
def test_only_a_broker_that_stopped_is_unregistered(broker_id, code):
    kit = ClusterKit()
    kit.assign("a", (2, 3))
    kit.submit(UnregisterBroker(broker_id=3))
    response = kit.ask(HANDLER, UnregisterBrokerRequest(broker_id=broker_id))
    assert response.error_code == code
    assert bool(response.error_message) == bool(code)
