"""One broker and one Spark for the whole run; a set of topics for each test."""

import os

import pytest

from kafkalite.pipeline.session import spark_session
from spark_tests.broker import serving
from spark_tests.streams import Streams
from spark_tests.topics import Topics

#: One JVM serves all tests, so they all go to one worker of pytest-xdist.
GROUP = "spark"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if "spark_tests" in item.path.parts:
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group(GROUP))
            # py4j leaves its sockets to the garbage collector.
            for category in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{category}"))


@pytest.fixture(scope="session")
def broker(tmp_path_factory):
    """A kafkalite of its own process; None if KAFKALITE_SPARK_BOOTSTRAP names another broker."""
    if os.environ.get("KAFKALITE_SPARK_BOOTSTRAP"):
        yield None
        return
    # By default retention looks every five minutes, compaction every 15 s; tests wait for them.
    settings = {"log_retention_check_interval_ms": "200", "log_cleaner_backoff_ms": "200"}
    with serving(tmp_path_factory.mktemp("broker"), **settings) as started:
        yield started


@pytest.fixture(scope="session")
def bootstrap(broker):
    """Address of the broker that all tests share."""
    return broker.bootstrap if broker else os.environ["KAFKALITE_SPARK_BOOTSTRAP"]


@pytest.fixture(autouse=True)
def _broker_is_alive(broker):
    """Spark's clients wait for minutes for a broker that is gone: end the run instead."""
    yield
    if broker is not None:
        try:
            broker.check()
        except RuntimeError as error:
            pytest.exit(str(error), returncode=1)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    session = spark_session(
        master="local[2]",
        application="kafkalite spark tests",
        with_avro=True,
        settings={
            "spark.sql.shuffle.partitions": "2",
            # By default a query forgets all but its last hundred reports, and the tests count them.
            "spark.sql.streaming.numRecentProgressUpdates": "10000",
            # Java's second compiler takes more than half of the processor time of a run this short.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.sql.streaming.checkpointLocation": str(tmp_path_factory.mktemp("checkpoints")),
        },
    )
    yield session
    session.stop()


@pytest.fixture
def topics(bootstrap):
    made = Topics(bootstrap)
    yield made
    made.close()


@pytest.fixture
def streams(spark):
    """Streaming queries that are stopped at the end of the test."""
    started = Streams(spark)
    yield started
    started.close()


@pytest.fixture
def source(spark, bootstrap):
    """A batch read of Kafka as a DataFrame, given Spark's options."""

    def read(**options):
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        return reader.options(**options).load()

    return read


@pytest.fixture
def stream_source(spark, bootstrap):
    """A streaming read of Kafka as a DataFrame, given Spark's options."""

    def read(**options):
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        return reader.options(**options).load()

    return read
