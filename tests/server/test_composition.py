"""How the parts of a broker are put together."""

import random
from types import SimpleNamespace

from kafkalite.clock import SystemClock
from kafkalite.config import load_config
from kafkalite.network.sockets import TcpNetwork
from kafkalite.server import composition


async def test_between_two_registrations_others_are_told_the_epoch_of_the_first():
    """KIP-903: -1 would be taken unchecked by leaders and the controller."""
    metadata = SimpleNamespace(broker_epoch=7, image=None)
    replicas = SimpleNamespace(broker_id=1)
    made = composition.cluster_parts(
        load_config(),
        SystemClock(),
        TcpNetwork(),
        metadata=metadata,
        replicas=replicas,
        session=None,
    )
    told = made.isr_keeper._broker_epoch
    assert told() == 7
    metadata.broker_epoch = -1
    assert told() == 7
    metadata.broker_epoch = 9
    assert told() == 9


def test_uuids_are_random_ones():
    new_uuid = composition.new_uuid_from(random.Random(1))
    assert new_uuid().version == 4
    assert new_uuid() != new_uuid()
