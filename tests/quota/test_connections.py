"""How often somebody may connect (rules 567, 568)."""

from kafkalite.quota import connections
from kafkalite.quota.connections import ConnectionRates
from kafkalite.quota.rates import Window

WINDOW = Window(11, 1_000)


def test_address_is_left_alone_for_a_sample_at_most_and_counts_only_what_comes_in():
    rates = ConnectionRates(WINDOW)
    rates.by_address = {"10.0.0.1": 1.0}
    waits = [rates.record_address("IN", "10.0.0.1", 0) for _ in range(12)]
    assert waits == [0] * 10 + [1_000] * 2
    assert rates.record_address("IN", "10.0.0.2", 0) == 0


def test_default_is_of_each_address_by_itself():
    rates = ConnectionRates(WINDOW)
    rates.by_address = {None: 0.1, "10.0.0.3": 100.0}
    for host in ("10.0.0.1", "10.0.0.2", "::ffff:10.0.0.4"):
        assert rates.record_address("IN", host, 0) == 0
        assert rates.record_address("IN", host, 0) > 0
    assert rates.record_address("IN", "10.0.0.4", 0) > 0
    assert rates.record_address("IN", "10.0.0.3", 0) == 0


def test_longer_of_listener_and_broker_is_waited_for():
    rates = ConnectionRates(WINDOW)
    for _ in range(20):
        rates.record("IN", 0, broker_limit=2.0, listener_limit=None)
    assert rates.record("IN", 0, broker_limit=2.0, listener_limit=1.0) == 500
    assert rates.record("OUT", 0, broker_limit=None, listener_limit=1.0) == 0


def test_who_is_turned_away_counts_for_no_listener():
    rates = ConnectionRates(WINDOW)
    rates.by_address = {"10.0.0.1": 0.1}
    limits = {"broker_limit": 1.0, "listener_limit": 1.0}
    for _ in range(30):
        rates.record("IN", 0, **limits)
        rates.record_address("IN", "10.0.0.1", 0)
    assert rates.record("IN", 0, **limits) == 0


def test_a_flood_of_addresses_is_forgotten_the_oldest_first(monkeypatch):
    monkeypatch.setattr(connections, "ADDRESSES_MAX", 2)
    rates = ConnectionRates(WINDOW)
    rates.by_address = {None: 0.1}
    for host in ("10.0.0.1", "10.0.0.2", "10.0.0.3"):
        assert rates.record_address("IN", host, 0) == 0
    assert rates.record_address("IN", "10.0.0.2", 0) > 0
    assert rates.record_address("IN", "10.0.0.1", 0) == 0
