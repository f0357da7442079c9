"""The fixtures in pytest runs of their own."""

import json
import re
from pathlib import Path

import pytest

from kafkalite import Broker

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


def test_faults_are_removed_after_each_test_and_one_that_never_fired_is_told(run):
    result = run(
        """
        from confluent_kafka import Producer

        def test_one(kafka_broker, kafka_topic, kafka_faults):
            rule = kafka_faults.on("Produce").error("NOT_LEADER_OR_FOLLOWER").once()
            kafka_faults.on("Produce", topic="misspelt").disconnect()
            producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
            producer.produce(kafka_topic, b"v")
            assert producer.flush(20) == 0
            assert rule.hits == 1

        def test_two(kafka_faults):
            assert kafka_faults.rules() == []
        """,
        "-W",
        "default",
    )
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines(["*FaultNeverFired: fault never fired: *topic=misspelt*"])


def test_clock_is_the_machines_again_after_each_test(run):
    result = run(
        """
        import time

        def test_one(kafka_clock):
            kafka_clock.advance(3600)

        def test_two(kafka_clock):
            assert abs(kafka_clock.now_ms() / 1_000 - time.time()) < 600
        """
    )
    result.assert_outcomes(passed=2)


def test_chaos_is_had_by_seeds_which_the_tests_name(run):
    result = run(
        """
        import pytest

        @pytest.mark.kafka_chaos(seed=7, probability=0.5)
        def test_marked(kafka_broker):
            rules = kafka_broker.faults.rules()
            assert rules and rules[0].trigger.probability == 0.5

        def test_after(kafka_broker):
            assert kafka_broker.faults.rules() == []
        """,
        "--strict-markers",
        "--kafka-chaos-seeds=2",
        "-v",
    )
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*chaos-seed-7*PASSED*", "*chaos-seed-8*PASSED*"])


def test_a_failure_is_reported_with_what_the_broker_was_asked(run):
    result = run(
        """
        from kafkalite.client.cluster import Client

        def test_one(kafka_broker):
            with Client(kafka_broker.bootstrap, client_id="earlier") as client:
                client.fetch_metadata([])

        def test_two(kafka_broker):
            kafka_broker.create_topic("orders")
            kafka_broker.produce("orders", b"x")
            with Client(kafka_broker.bootstrap, client_id="mine") as client:
                for _ in range(3):
                    client.fetch_metadata(["ordres"])
            assert False

        def test_three():
            assert False
        """
    )
    result.assert_outcomes(passed=1, failed=2)
    text = result.stdout.str()
    assert text.count("requests to Kafka") == 1
    assert "client 'mine' asked for topic 'ordres', which does not exist; there is 'orders'" in text
    assert "UNKNOWN_TOPIC_OR_PARTITION" in text
    assert "topic 'orders': offsets 0: 0-1" in text
    assert "(x3 until" in text
    assert " earlier " not in text


def test_reports_of_failures_are_written_to_files(run, pytester):
    run(
        """
        import pytest
        from kafkalite.client.cluster import Client

        @pytest.mark.parametrize("value", ["a/b", "a b", "x"])
        def test_one(kafka_broker, kafka_topic, value):
            with Client(kafka_broker.bootstrap, client_id="mine") as client:
                client.fetch_metadata(["ordres"])
            assert value == "right"

        def test_two():
            assert False

        @pytest.fixture
        def broken(kafka_broker):
            yield
            raise OSError("no end")

        def test_three(broken):
            pass

        def test_four(kafka_broker):
            pass
        """,
        "--kafka-journal",
        "reports/kafka",
    ).assert_outcomes(passed=2, failed=4, errors=1)
    kept = sorted((pytester.path / "reports" / "kafka").iterdir())
    files = [file for file in kept if file.is_file()]
    assert len(files) == len(kept) - 4 == 8
    texts = {file.name: file.read_text(encoding="utf-8") for file in files if file.suffix == ".txt"}
    for file in files:
        if file.suffix == ".jsonl":
            told = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            assert told[-1] == {"kind": "clock", "ahead_s": 0.0, "frozen": False}
            if "teardown" not in file.name:
                asked = [each for each in told if each["kind"] == "request"]
                assert any(e["client_id"] == "mine" and e["api"] == "Metadata" for e in asked)
    assert {Path(name).stem for name in texts} == {file.stem for file in files}
    assert sum("test_one[a/b]\n" in text for text in texts.values()) == 1
    assert sum("test_one[a b]\n" in text for text in texts.values()) == 1
    for name, text in texts.items():
        assert "--- what may be wrong" in text
        if name.endswith("-teardown.txt"):
            assert "no end" in text
        else:
            assert "client 'mine' asked for topic 'ordres', which does not exist" in text
            assert "Metadata v" in text
            assert 'value == "right"' in text


def test_data_of_a_failed_test_are_kept_beside_its_report(run, pytester):
    run(
        """
        import pytest

        def test_one(kafka_broker):
            kafka_broker.create_topic("orders")
            kafka_broker.produce("orders", b"kept")
            assert False

        @pytest.mark.kafka_cluster(brokers=2, links=False)
        def test_two(kafka_cluster):
            kafka_cluster.create_topic("orders", replication_factor=2)
            assert False
        """,
        "--kafka-journal",
        "reports",
    ).assert_outcomes(failed=2)
    one, two = sorted((pytester.path / "reports").glob("*.txt"))
    (command,) = re.findall("^kafkalite serve --read-only (.+)$", one.read_text(), re.MULTILINE)
    with Broker(data_dir=command, config={"kafkalite.read.only": True}) as broker:
        assert [record.value for record in broker.records("orders")] == [b"kept"]
    found = re.findall("^kafkalite serve --read-only (.+)$", two.read_text(), re.MULTILINE)
    assert [Path(each).name for each in found] == ["broker-1", "broker-2"]
    assert all((Path(each) / "orders-0").is_dir() for each in found)


def test_data_that_are_too_much_are_named(run, pytester):
    run(
        """
        import importlib

        def test_one(kafka_broker, monkeypatch):
            kept_data = importlib.import_module("kafkalite.testing.kept_data")
            monkeypatch.setattr(kept_data, "DATA_MAX_BYTES", -1)
            assert False
        """,
        "--kafka-journal",
        "reports",
    )
    assert [file.suffix for file in sorted((pytester.path / "reports").iterdir())] == [
        ".jsonl",
        ".txt",
    ]
    (told,) = (pytester.path / "reports").glob("*.txt")
    assert "not copied: 0 MB in /" in told.read_text()


def test_a_directory_of_reports_that_cannot_be_is_told(pytester):
    pytester.makefile(".txt", taken="")
    result = pytester.runpytest_inprocess("--kafka-journal", "taken.txt")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--kafka-journal taken.txt: File exists*"])


@pytest.mark.slow
def test_a_failure_of_a_cluster_is_reported_too(run):
    result = run(
        """
        import pytest
        from kafkalite.client.cluster import Client

        @pytest.mark.kafka_cluster(brokers=2, links=False)
        def test_one(kafka_cluster):
            kafka_cluster.create_topic("orders", partitions=2)
            kafka_cluster.faults.on("Produce", topic="orders").disconnect()
            with Client(kafka_cluster.bootstrap, client_id="mine") as client:
                client.fetch_metadata(["orders"])
            assert False
        """,
        "-W",
        "default",
    )
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "mine" in text
    assert "topic 'orders': offsets 0: 0-0, 1: 0-0" in text
    assert "a fault rule never fired" in text
    assert "--- broker 1, running" in text
