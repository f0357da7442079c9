"""The fixtures in pytest runs of their own."""

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture
def run(pytester):
    def run_file(text, *arguments):
        pytester.makepyfile(text)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)

    return run_file


def test_broker_lives_for_the_session_and_each_test_has_its_topic(run):
    result = run(
        """
        ports = []

        def test_one(kafka_broker, kafka_topic):
            assert kafka_broker.topics() == [kafka_topic]
            kafka_broker.produce(kafka_topic, b"v")
            ports.append(kafka_broker.port)

        def test_two(kafka_broker, kafka_topic):
            assert kafka_topic.startswith("test_two-")
            assert kafka_broker.topics() == [kafka_topic]
            assert kafka_broker.records(kafka_topic) == []
            assert [kafka_broker.port] == ports
        """
    )
    result.assert_outcomes(passed=2)


def test_topic_is_made_as_its_marker_says(run):
    result = run(
        """
        import pytest

        @pytest.mark.kafka_topic(partitions=3, config={"cleanup.policy": "compact"})
        @pytest.mark.parametrize("text", ["ä b/c"])
        def test_marked(kafka_broker, kafka_topic, text):
            assert len(kafka_broker.server.services.replicas.partitions_of(kafka_topic)) == 3
            kafka_broker.delete_topic(kafka_topic)
        """,
        "--strict-markers",
    )
    result.assert_outcomes(passed=1)


def test_settings_come_from_a_fixture(pytester, run):
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def kafka_config():
            return {"num.partitions": 4}
        """
    )
    result = run(
        """
        def test_default(kafka_broker):
            kafka_broker.produce("orders", b"v")
            assert len(kafka_broker.server.services.replicas.partitions_of("orders")) == 4
        """
    )
    result.assert_outcomes(passed=1)


@pytest.mark.slow
def test_cluster_is_made_as_its_marker_says(run):
    result = run(
        """
        import pytest

        @pytest.mark.kafka_cluster(brokers=2, config={"broker.rack": "here"}, links=False)
        def test_one(kafka_cluster):
            kafka_cluster.create_topic("t")
            assert {broker.rack for broker in kafka_cluster.metadata().brokers} == {"here"}
            assert sorted(kafka_cluster.partition("t").replica_nodes) == [1, 2]
        """
    )
    result.assert_outcomes(passed=1)
