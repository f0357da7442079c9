"""Spark's source and sink over SASL_SSL, with rules that allow just what they need."""

import pytest

import kafkalite
from kafkalite.security.shorthand import allow


@pytest.fixture(scope="module")
def secured():
    """A broker that lets `spark` write and read `flights-*`, by groups that Spark names itself."""
    rules = [
        allow("spark", "read,write", topic="flights-*"),
        allow("spark", "read", group="spark-kafka-*"),
    ]
    with kafkalite.Broker(tls=True, users={"spark": 'se"cret'}, acls=rules) as broker:
        for name in ("flights-in", "flights-out"):
            broker.create_topic(name, partitions=2)
        yield broker


def options(broker, **more):
    settings = broker.client_settings("java")
    return {**{f"kafka.{name}": value for name, value in settings.items()}, **more}


def test_source_and_sink_log_in_over_tls(spark, secured, tmp_path):
    rows = spark.range(100).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
    rows.write.format("kafka").options(**options(secured, topic="flights-in")).save()
    source = options(secured, subscribe="flights-in", startingOffsets="earliest")
    read = spark.readStream.format("kafka").options(**source).load()
    target = options(secured, topic="flights-out", checkpointLocation=str(tmp_path / "checkpoint"))
    writer = read.select("key", "value").writeStream.format("kafka").options(**target)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert {record.value for record in secured.records("flights-out")} == {
        b"%d" % number for number in range(100)
    }
    batch = options(secured, subscribe="flights-out", startingOffsets="earliest")
    assert spark.read.format("kafka").options(**batch).load().count() == 100


def test_source_that_may_not_read_says_so(spark, secured):
    secured.create_topic("secret")
    source = options(secured, subscribe="secret", startingOffsets="earliest")
    with pytest.raises(Exception, match="TopicAuthorizationException"):
        spark.read.format("kafka").options(**source).load().count()
