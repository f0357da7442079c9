"""Quotas in a scrape, compared with what clients were told to wait."""

import pytest

from kafkalite import Broker
from tests.observe.observe_kit import Http
from tests.observe.test_metrics import samples_of, scrape
from tests.quota.scenarios import Asker

pytestmark = pytest.mark.slow


def scraped(broker):
    return samples_of(scrape(Http(broker.http_url)))


def test_who_is_throttled_is_told_by_kafkas_names():
    with Broker(http=True) as broker, Asker(broker, "admin") as admin:
        broker.create_topic("orders")
        admin.set_quota({"client-id": "hasty"}, producer_byte_rate=1_000)
        with Asker(broker, "other") as other:
            other.produce("orders", 50_000)
        with Asker(broker, "hasty") as client:
            sent, throttle_ms = client.produce("orders", 20_000)
        assert throttle_ms > 0
        samples = scraped(broker)
    labels = (("clientId", "hasty"), ("resource", "Produce"))
    assert samples["kafka_server_quota_throttle_time", *labels] == throttle_ms
    assert 0 < samples["kafka_server_quota_byte_rate", *labels] <= sent / 9
    total = "kafkalite_quota_throttle_seconds_total"
    assert samples[total, ("resource", "Produce")] == throttle_ms / 1_000
    assert samples[total, ("resource", "Fetch")] == 0
    of_api = "kafka_network_requestmetrics_throttletimems"
    assert samples[f"{of_api}_sum", ("request", "Produce")] == throttle_ms
    assert samples[f"{of_api}_count", ("request", "Produce")] == 2
    assert not any(dict(rest).get("clientId") == "other" for _, *rest in samples)


def test_changes_of_metadata_that_are_too_many_are_told():
    with Broker(http=True) as broker, Asker(broker, "admin") as admin:
        admin.set_quota({"client-id": "maker"}, controller_mutation_rate=1)
        with Asker(broker, "maker") as client:
            client.create("wide", 100, version=4)  # an old client is only made to wait
        samples = scraped(broker)
    labels = (("clientId", "maker"), ("resource", "ControllerMutation"))
    assert samples["kafka_server_quota_throttle_time", *labels] > 0


def test_without_quotas_there_are_none():
    with Broker(http=True) as broker:
        assert not any("quota" in name for name, *_ in scraped(broker))
