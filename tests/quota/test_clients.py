"""What clients are counted for, and how long each has to wait."""

import pytest

from kafkalite.meta.entities import client_resource, user_resource
from kafkalite.quota import clients
from kafkalite.quota.clients import ClientQuotas
from kafkalite.quota.rates import Window
from kafkalite.wire.errors import ErrorCode, KafkaError


def quotas(**of_clients):
    made = ClientQuotas(Window(11, 1_000), Window(11, 1_000))
    made.update({client_resource("app"): {name: str(value) for name, value in of_clients.items()}})
    return made


def test_clients_of_one_user_share_its_quota():
    made = quotas()
    made.update({user_resource("ann"): {"producer_byte_rate": "1000"}})
    assert made.produce.record("ann", "one", 8_000, 0) == 0
    assert made.produce.record("ann", "two", 8_000, 0) == 6_000
    assert made.produce.record("bob", "two", 8_000, 0) == 0


def test_requests_are_throttled_by_a_sample_at_most():
    """So a client that waits is never silent for longer than that."""
    assert quotas(request_percentage=1).request.record("ann", "app", 1_000_000, 0) == 1_000
    assert quotas(request_percentage=1).request.record("ann", "app", 11, 0) == 1_000
    assert quotas(request_percentage=1).request.record("ann", "app", 10.5, 0) == 500


def test_waits_are_summed_and_averaged_over_the_window():
    """Kafka's `throttle-time`: of those who had to wait."""
    made = quotas(producer_byte_rate=1_000).produce
    for wait_ms, now_ms in ((0, 0), (200, 0), (400, 5_000)):
        made.throttled("ann", "app", wait_ms, now_ms)
    made.throttled("ann", "no quota", 50, 0)
    assert made.throttled_ms == 650
    assert list(made.waits(5_000)) == [(("", "app"), 300)]
    assert list(made.waits(60_000)) == [(("", "app"), 0)]


def test_what_is_used_in_a_second_is_told_of_each():
    made = quotas(producer_byte_rate=1_000).produce
    made.record("ann", "app", 5_000, 0)
    made.record("ann", "no quota", 5_000, 0)
    assert list(made.rates(0)) == [(("", "app"), 500)]


def test_what_was_counted_counts_against_another_limit():
    made = quotas(producer_byte_rate=1_000)
    assert made.produce.record("ann", "app", 10_000, 0) == 0
    made.update({client_resource("app"): {"producer_byte_rate": "100"}})
    assert made.produce.record("ann", "app", 0, 0) == 90_000


def test_most_in_a_window_is_what_may_be_sent_without_a_wait():
    made = quotas(consumer_byte_rate=1_000)
    assert made.fetch.most_in_window("ann", "app") == 10_000
    assert made.fetch.most_in_window("ann", "other") is None
    assert made.fetch.record("ann", "app", 10_000, 0) == 0


def test_there_are_none_once_they_are_removed():
    made = quotas(producer_byte_rate=1_000)
    assert made
    made.update({})
    assert not made
    assert made.produce.record("ann", "app", 10**9, 0) == 0


def test_strict_changes_are_refused_until_the_bucket_is_paid_back():
    made = quotas(controller_mutation_rate=1)
    first = made.mutation.of("ann", "app", is_strict=True)
    first.record(20, 0)
    assert first.throttle_ms(0) == 0
    second = made.mutation.of("ann", "app", is_strict=True)
    with pytest.raises(KafkaError) as failure:
        second.record(1, 1_000)
    assert failure.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert second.throttle_ms(1_000) == 8_000
    assert second.throttle_ms(3_000) == 6_000
    assert second.throttle_ms(60_000) == 0
    made.mutation.of("ann", "app", is_strict=True).record(1, 9_000)


def test_other_changes_are_made_and_waited_for():
    made = quotas(controller_mutation_rate=1)
    changes = made.mutation.of("ann", "app", is_strict=False)
    changes.record(20, 0)
    changes.record(20, 0)
    assert changes.throttle_ms(0) == 29_000
    assert made.mutation.of("ann", "other", is_strict=False) is None


def test_a_flood_of_names_is_forgotten_the_oldest_first(monkeypatch):
    monkeypatch.setattr(clients, "COUNTED_MAX", 3)
    made = quotas()
    made.update({client_resource(None): {"producer_byte_rate": "1000"}})
    for name in ("a", "b", "c", "a", "d"):
        made.produce.record("ann", name, 10_000, 0)
    assert made.produce.record("ann", "a", 0, 0) == 10_000
    assert made.produce.record("ann", "b", 0, 0) == 0
