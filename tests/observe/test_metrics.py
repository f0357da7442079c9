"""What a scrape says, compared with what was sent; parsed by Prometheus' own client."""

import time
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from kafkalite import Broker
from kafkalite.types import TopicPartition
from tests.observe.observe_kit import Http

DASHBOARDS = Path(__file__).with_name("dashboards.txt")


def samples_of(text, parse=prometheus):
    """Values by name and labels."""
    found = {}
    for family in parse(text):
        for sample in family.samples:
            key = (sample.name, *sorted(sample.labels.items()))
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def scrape(http, accept="text/plain"):
    status, text = Http(http.url, Accept=accept).ask("GET", "/metrics")
    assert status == 200
    return text


@pytest.fixture(scope="module")
def broker():
    config = {
        "kafkalite.metrics.names": "jmx,persec,reporter,jvm",
        "kafkalite.metrics.labels": "namespace=local,cluster=x",
    }
    with Broker(http=True, config=config) as broker:
        broker.create_topic("orders", partitions=2)
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap, "linger.ms": 50}
        )
        for number in range(30):
            producer.produce("orders", b"%d" % number, partition=number % 2)
        producer.flush()
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["orders"])
        assert len(consumer.consume(30, timeout=20)) == 30
        commit = [confluent_kafka.TopicPartition("orders", 0, 5)]
        consumer.commit(offsets=commit, asynchronous=False)
        yield broker
        consumer.close()


@pytest.fixture(scope="module")
def http(broker):
    return Http(broker.http_url)


@pytest.fixture(scope="module")
def samples(http):
    labels = (("cluster", "x"), ("namespace", "local"))
    return {
        (name, *[pair for pair in rest if pair not in labels]): value
        for (name, *rest), value in samples_of(scrape(http)).items()
    }


def test_counts_what_was_written_and_read(samples):
    prefix = "kafka_server_brokertopicmetrics"
    assert samples[f"{prefix}_messagesin_total", ("topic", "orders")] == 30
    assert samples[f"{prefix}_messagesin_total",] == 30
    written = samples[f"{prefix}_bytesin_total", ("topic", "orders")]
    assert written == samples[f"{prefix}_bytesin_total",] > 0
    assert samples[f"{prefix}_bytesout_total", ("topic", "orders")] == written


def test_counts_requests_by_api_and_version(samples):
    prefix = "kafka_network_requestmetrics_requests_total"
    by_api = {}
    for (name, *labels), value in samples.items():
        if name == prefix:
            api = dict(labels)["request"]
            by_api[api] = by_api.get(api, 0) + value
    assert by_api["Produce"] >= 2
    assert by_api["FetchConsumer"] >= 1
    assert by_api["OffsetCommit"] == 1
    assert "FetchFollower" not in by_api


def test_quantiles_grow_and_histograms_add_up(samples):
    name = "kafka_network_requestmetrics_totaltimems"
    labels = ("request", "Produce")
    values = [
        samples[name, ("quantile", text), labels] for text in ("0.50", "0.75", "0.99", "0.999")
    ]
    assert values == sorted(values)
    assert values[0] > 0
    name = "kafkalite_request_duration_seconds"
    buckets = [
        value
        for (each, *rest), value in samples.items()
        if each == f"{name}_bucket" and labels in rest
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == samples[f"{name}_count", labels]


def test_lag_in_records_and_seconds(samples):
    labels = (("consumergroup", "readers"), ("partition", "0"), ("topic", "orders"))
    assert samples["kafka_consumergroup_current_offset", *labels] == 5
    assert samples["kafka_consumergroup_lag", *labels] == 10
    assert samples["kafka_consumergroup_lag_sum", labels[0], labels[2]] == 10
    assert 0 < samples["kafka_consumergroup_lag_seconds", *labels] < 600
    assert samples["kafka_consumergroup_members", labels[0]] == 1


def test_lag_in_seconds_is_the_age_of_the_first_record_not_read():
    """Two records of now and one of 1970, of which the first two are committed."""
    with Broker(http=True) as broker:
        for timestamp_ms in (None, None, 0):
            broker.produce("aged", b"x", timestamp_ms=timestamp_ms)
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap})
        place = confluent_kafka.TopicPartition("aged", 0, 2)
        group = confluent_kafka.ConsumerGroupTopicPartitions("late", [place])
        admin.alter_consumer_group_offsets([group])["late"].result()
        samples = samples_of(scrape(Http(broker.http_url)))
    labels = (("consumergroup", "late"), ("partition", "0"), ("topic", "aged"))
    assert samples["kafka_consumergroup_lag", *labels] == 1
    age_s = samples["kafka_consumergroup_lag_seconds", *labels]
    assert age_s == pytest.approx(time.time(), abs=600)


def test_partitions_by_the_names_of_the_exporter(samples):
    labels = (("partition", "1"), ("topic", "orders"))
    assert samples["kafka_topic_partition_current_offset", *labels] == 15
    assert samples["kafka_topic_partition_oldest_offset", *labels] == 0
    assert samples["kafka_topic_partition_leader", *labels] == 1
    assert samples["kafka_topic_partitions", ("topic", "orders")] == 2
    assert samples["kafka_brokers",] == 1
    assert samples["kafka_log_log_logendoffset", *labels] == 15
    assert samples["kafka_log_log_size", *labels] > 0


def test_three_families_of_names_at_once(samples):
    prefix = "kafka_server_brokertopicmetrics_messagesin"
    for name in (f"{prefix}_total", f"{prefix}persec", f"{prefix}persec_total"):
        assert samples[name, ("topic", "orders")] == 30


def test_every_sample_has_the_labels_of_the_setting(http):
    for _, *labels in samples_of(scrape(http)):
        assert ("namespace", "local") in labels


def test_openmetrics_has_the_same(http):
    text = scrape(http, "application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")
    names = {name for name, *_ in samples_of(text, openmetrics)}
    assert {name for name, *_ in samples_of(scrape(http))} == names


def test_every_name_that_known_dashboards_use_is_there(samples):
    """The list names the dashboards, and what of theirs cannot be had of this broker."""
    known = {name for name, *_ in samples}
    wanted = [line.split()[0] for line in DASHBOARDS.read_text().splitlines() if line.strip()]
    assert len(wanted) > 40
    assert [name for name in wanted if name not in known and not name.startswith("#")] == []


def test_a_deleted_topic_leaves_the_total_alone():
    with Broker(http=True) as broker:
        http = Http(broker.http_url)
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("gone", b"x")
        producer.flush()
        broker.delete_topic("gone")
        samples = samples_of(scrape(http))
        name = "kafka_server_brokertopicmetrics_messagesin_total"
        assert samples[name,] == 1
        assert (name, ("topic", "gone")) not in samples


@pytest.mark.slow
def test_with_too_many_partitions_none_has_its_own_series():
    with Broker(http=True) as broker:
        broker.create_topic("wide", partitions=1_001)
        samples = samples_of(scrape(Http(broker.http_url)))
        assert samples["kafka_topic_partitions", ("topic", "wide")] == 1_001
        assert not any(name == "kafka_log_log_size" for name, *_ in samples)


def test_compaction_and_fsync_are_told():
    with Broker(http=True, config={"kafkalite.metadata.flush": True}) as broker:
        broker.create_topic("table", config={"cleanup.policy": "compact"})
        for number in range(20):
            broker.produce("table", b"%d" % number, key=b"k")
        logs = broker.server.services.logs
        broker._await(lambda: logs.compact(TopicPartition("table", 0)))
        samples = samples_of(scrape(Http(broker.http_url)))
    assert 0 < samples["kafka_log_logcleaner_cleaner_recopy_percent",] < 100
    assert samples["kafka_log_logcleaner_max_clean_time_secs",] > 0
    assert samples["kafka_log_logcleanermanager_uncleanable_partitions_count",] == 0
    assert samples["kafka_log_logflushstats_logflushrateandtimems_count",] > 0
    assert samples["kafka_log_logmanager_offlinelogdirectorycount",] == 0
