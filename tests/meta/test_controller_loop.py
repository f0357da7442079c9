from kafkalite.meta.controller_loop import registrations
from kafkalite.meta.events import RegisterBroker, UnregisterBroker
from kafkalite.meta.image import BrokerImage
from tests.meta.meta_kit import ENDPOINTS, image


def live(*brokers):
    return {
        broker_id: BrokerImage(broker_id=broker_id, endpoints=ENDPOINTS, broker_epoch=epoch)
        for broker_id, epoch in brokers
    }


def test_registrations_follow_the_brokers_that_live():
    """Rule 197: who has another epoch has failed and come back, which is one event."""
    known = image(brokers=(1, 2, 3), epochs=(11, 12, 13))
    events = registrations(known, live((1, 11), (2, 20), (4, 21)))
    assert events == [
        UnregisterBroker(broker_id=3),
        RegisterBroker(broker_id=2, endpoints=ENDPOINTS, broker_epoch=20),
        RegisterBroker(broker_id=4, endpoints=ENDPOINTS, broker_epoch=21),
    ]
    assert registrations(known, live((1, 11), (2, 12), (3, 13))) == []


def test_other_addresses_are_registered_without_a_new_reign():
    known = image(brokers=(1,), epochs=(11,))
    moved = {1: BrokerImage(broker_id=1, endpoints={"OTHER": ("x", 1)}, broker_epoch=11)}
    (event,) = registrations(known, moved)
    assert not event.restarted
