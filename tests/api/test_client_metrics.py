"""Rule 275."""

from uuid import UUID

import pytest

from kafkalite.api import client_metrics as module
from kafkalite.api.client_metrics import ClientAttributes, ClientMetrics
from kafkalite.meta.changes import CLIENT_METRICS_RESOURCE, GROUP_RESOURCE
from kafkalite.meta.image import ConfigResource
from kafkalite.wire.compression import Codec, compress
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.wire.test_telemetry import GAUGE, data, double, metric

CLIENT = ClientAttributes("producer-1", "apache-kafka-java", "4.3.1", "10.0.0.2", "5000")
ONE, OTHER = UUID(int=11), UUID(int=12)
PAYLOAD = data(metric("a.rate", GAUGE, double(0.5)))


def configs(**subscriptions):
    return {
        ConfigResource(GROUP_RESOURCE, "g"): {"metrics": "*"},
        **{
            ConfigResource(CLIENT_METRICS_RESOURCE, name): values
            for name, values in subscriptions.items()
        },
    }


@pytest.fixture
def metrics():
    made = ClientMetrics(telemetry_max_bytes=10_000)
    made.update(configs(all={"metrics": "a.,b.", "interval.ms": "1000"}))
    return made


def get(metrics, now_ms=0, instance_id=ONE, client=CLIENT, connection_id=1):
    return metrics.subscribe(instance_id, client, connection_id=connection_id, now_ms=now_ms)


def push(told, now_ms=0, instance_id=ONE, payload=PAYLOAD, codec=Codec.NONE, **more):
    instance = next(each for each in told.instances() if each.instance_id == instance_id)
    arguments = {
        "connection_id": 1,
        "now_ms": now_ms,
        "subscription_id": instance.subscription.subscription_id,
        "terminating": False,
        "compression_type": codec,
        "metrics": compress(codec, payload),
    }
    told.push(instance_id, CLIENT, **{**arguments, **more})
    return instance


def code_of(call):
    with pytest.raises(KafkaError) as refused:
        call()
    return refused.value.code


def test_nobody_is_asked_for_anything_without_a_subscription():
    subscription = get(ClientMetrics(telemetry_max_bytes=1)).subscription
    assert (subscription.metrics, subscription.push_interval_ms) == ((), 300_000)


def test_subscriptions_that_match_are_added_up(metrics):
    metrics.update(
        configs(
            one={"metrics": "b.,a.", "interval.ms": "5000"},
            two={"metrics": "c.", "interval.ms": "700", "match": "client_id=producer.*"},
            three={"metrics": "d.", "interval.ms": "100", "match": "client_id=consumer.*"},
            four={"metrics": "e.", "match": "client_source_port=50"},
        )
    )
    subscription = get(metrics).subscription
    assert (subscription.metrics, subscription.push_interval_ms) == (("a.", "b.", "c."), 700)


def test_a_star_stands_for_all(metrics):
    metrics.update(configs(one={"metrics": "a."}, two={"metrics": "*"}))
    assert get(metrics).subscription.metrics == ("*",)


@pytest.mark.parametrize(
    ("match", "is_met"),
    [
        ("client_instance_id=00000000-0000-0000-0000-00000000000b", True),
        ("client_id=producer-1,client_software_name=apache-kafka-java", True),
        ("client_id=producer-1,client_software_version=3.*", False),
        ("client_source_address=10[.]0[.]0[.][0-9]", True),
        ("client_source_port=5000", True),
        ("client_id=producer", False),
    ],
)
def test_attributes_match_as_a_whole(metrics, match, is_met):
    metrics.update(configs(one={"metrics": "x", "match": match}))
    assert bool(get(metrics).subscription.metrics) == is_met


def test_a_client_without_a_name_for_its_software_does_not_match_one(metrics):
    metrics.update(configs(one={"metrics": "x", "match": "client_software_name=.*"}))
    unnamed = CLIENT._replace(client_software_name=None)
    assert get(metrics, client=unnamed).subscription.metrics == ()


def test_any_broker_gives_an_instance_the_same_id(metrics):
    another = ClientMetrics(telemetry_max_bytes=1)
    another.update(configs(other_name={"metrics": "b.,a.", "interval.ms": "1000"}))
    mine = get(metrics).subscription
    assert mine == get(another).subscription
    for instance_id in map(UUID, ("1" * 32, "2" * 32, "3" * 32)):
        other = get(metrics, instance_id=instance_id).subscription
        assert other != mine
        assert -(2**31) <= other.subscription_id < 2**31


def test_asking_again_before_the_interval_is_over_is_refused(metrics):
    get(metrics, 100)
    assert code_of(lambda: get(metrics, 1099)) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    get(metrics, 1100)
    get(metrics, 1101, connection_id=2)


def test_other_subscriptions_may_be_asked_for_at_once(metrics):
    get(metrics, 100)
    metrics.update(configs(all={"metrics": "z", "interval.ms": "1000"}))
    assert get(metrics, 101).subscription.metrics == ("z",)


def test_a_clock_that_was_set_back_keeps_nobody_waiting(metrics):
    get(metrics, 1_000_000)
    assert get(metrics, 5).subscription.metrics
    assert push(metrics, 6).pushes == 1
    assert push(metrics, 1).pushes == 2


@pytest.mark.parametrize("codec", Codec)
def test_what_is_pushed_is_there_to_be_read(metrics, codec):
    get(metrics)
    instance = push(metrics, 1, codec=codec)
    assert instance.metrics == {"a.rate": 0.5}
    assert (instance.pushes, instance.last_push_ms) == (1, 1)
    assert instance.pushed_bytes == len(compress(codec, PAYLOAD))


def test_a_snapshot_does_not_change_any_more(metrics):
    get(metrics)
    assert metrics.snapshot() == []
    push(metrics, 1)
    before = metrics.snapshot()
    push(metrics, 2000, payload=data(metric("a.rate", GAUGE, double(7))))
    assert [each.metrics for each in before] == [{"a.rate": 0.5}]
    assert [each.metrics for each in metrics.snapshot()] == [{"a.rate": 7}]


def test_an_empty_push_counts_and_keeps_the_last_metrics(metrics):
    get(metrics)
    push(metrics, 1)
    instance = push(metrics, 1001, payload=b"")
    assert (instance.pushes, instance.metrics) == (2, {"a.rate": 0.5})


def test_metrics_that_nobody_can_read_are_none(metrics):
    get(metrics)
    assert push(metrics, payload=b"\xff" * 40).metrics == {}


def test_the_first_push_may_come_at_once_the_next_after_the_interval(metrics):
    get(metrics, 0)
    push(metrics, 1)
    assert code_of(lambda: push(metrics, 1000)) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    push(metrics, 1001)
    push(metrics, 1002, terminating=True)
    assert code_of(lambda: push(metrics, 9000)) is ErrorCode.INVALID_REQUEST


def test_refusals_are_kafkas(metrics):
    get(metrics)
    refused = [
        (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, {"subscription_id": 5}),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, {"compression_type": 5}),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, {"compression_type": -1}),
        (ErrorCode.TELEMETRY_TOO_LARGE, {"metrics": bytes(10_001)}),
        (ErrorCode.INVALID_RECORD, {"compression_type": 4, "metrics": b"garbage"}),
    ]
    for number, (code, more) in enumerate(refused, 1):
        assert code_of(lambda more=more, n=number: push(metrics, n * 1000, **more)) is code
    assert metrics.instances()[0].pushes == 0


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_what_would_become_too_large_is_refused(metrics, codec):
    get(metrics)
    refused = code_of(lambda: push(metrics, payload=bytes(10_001), codec=codec))
    assert refused is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("more", [{"subscription_id": 5}, {"compression_type": 9}])
def test_a_client_that_was_told_to_ask_again_may(metrics, more):
    get(metrics)
    code_of(lambda: push(metrics, 1, **more))
    get(metrics, 2)


@pytest.mark.parametrize("instance_id", [UUID(int=0), UUID(int=1)])
def test_nobody_has_a_reserved_id(metrics, instance_id):
    def reserved():
        metrics.push(
            instance_id,
            CLIENT,
            connection_id=1,
            now_ms=0,
            subscription_id=0,
            terminating=False,
            compression_type=0,
            metrics=b"",
        )

    assert code_of(reserved) is ErrorCode.INVALID_REQUEST
    assert metrics.instances() == []


def test_a_stored_interval_that_cannot_be_read_is_the_default(metrics):
    metrics.update(configs(one={"metrics": "x", "interval.ms": "soon"}))
    assert get(metrics).subscription.push_interval_ms == 300_000


def test_there_is_a_bound_to_instances(metrics, monkeypatch):
    monkeypatch.setattr(module, "INSTANCES_MAX", 2)
    get(metrics)
    push(metrics)
    get(metrics, instance_id=OTHER)
    get(metrics, 1000)
    get(metrics, instance_id=UUID(int=13))
    assert [each.instance_id for each in metrics.instances()] == [ONE, UUID(int=13)]


def test_there_is_a_bound_to_what_is_kept(metrics, monkeypatch):
    monkeypatch.setattr(module, "KEPT_BYTES_MAX", 5000)
    for instance_id in (ONE, OTHER, UUID(int=13)):
        get(metrics, instance_id=instance_id)
        push(metrics, instance_id=instance_id, payload=bytes(2000))
    assert [len(each.payload) for each in metrics.instances()] == [0, 2000, 2000]
    push(metrics, 5000, instance_id=ONE, payload=bytes(6000))
    kept = {each.instance_id: len(each.payload) for each in metrics.instances()}
    assert kept == {ONE: 6000, OTHER: 0, UUID(int=13): 0}
