"""The commands against a broker: what a person types, and what is printed."""

import json
import os
import threading
import time

import pytest

from kafkalite.cli import main as main_module
from kafkalite.cli.main import run
from kafkalite.client.consumer import Consumer
from kafkalite.settings.registry import TOPIC


@pytest.fixture
def stdin(monkeypatch):
    """Standard input as a pipe; call it with what is written there, then closed."""
    files = []

    def feed(data):
        reading, writing = os.pipe()
        os.write(writing, data)
        os.close(writing)
        files.append(os.fdopen(reading))
        monkeypatch.setattr("sys.stdin", files[-1])

    yield feed
    for file in files:
        file.close()


class TestTopics:
    def test_create_and_describe(self, kafkalite):
        made = kafkalite("topics", "create", "orders", "-p", "2", "-c", "retention.ms=60000")
        assert made == ["created topic orders"]
        assert kafkalite("topics", "describe", "orders") == [
            "orders: 2 partitions, 0 offsets",
            "  retention.ms=60000",
            "PARTITION  BEGIN  END  LEADER  REPLICAS  ISR",
            "        0      0    0       1  1         1",
            "        1      0    0       1  1         1",
        ]

    def test_create_again(self, kafkalite):
        kafkalite("topics", "create", "orders")
        kafkalite(
            "topics",
            "create",
            "orders",
            code=1,
            error="TOPIC_ALREADY_EXISTS: Topic 'orders' already exists.",
        )
        again = kafkalite("topics", "create", "orders", "--if-not-exists")
        assert again == ["topic orders exists already"]

    def test_create_with_a_bad_setting(self, kafkalite):
        kafkalite("topics", "create", "orders", "-c", "retention.ms=soon", code=1)
        kafkalite("topics", "create", "orders", "-c", "retention.ms", code=2)

    def test_list(self, kafkalite, broker):
        assert kafkalite("topics", "list") == ["TOPIC  PARTITIONS  REPLICAS"]
        broker.create_topic("b", partitions=12)
        broker.create_topic("a")
        assert kafkalite("topics", "list") == [
            "TOPIC  PARTITIONS  REPLICAS",
            "a               1         1",
            "b              12         1",
        ]
        assert json.loads("".join(kafkalite("topics", "list", "--json"))) == ["a", "b"]

    def test_describe_as_json(self, kafkalite, broker):
        broker.produce("orders", b"v")
        (described,) = json.loads("".join(kafkalite("topics", "describe", "orders", "--json")))
        assert described["partitions"] == [
            {"partition": 0, "leader": 1, "replicas": [1], "isr": [1], "begin": 0, "end": 1}
        ]

    def test_delete(self, kafkalite, broker):
        broker.create_topic("a")
        broker.create_topic("b")
        assert kafkalite("topics", "delete", "a", "b") == ["deleted topic a", "deleted topic b"]
        missing = "UNKNOWN_TOPIC_OR_PARTITION: topic 'a' does not exist"
        kafkalite("topics", "delete", "a", code=1, error=missing)
        assert kafkalite("topics", "delete", "a", "--if-exists") == []

    def test_delete_goes_on_after_a_failure(self, kafkalite, broker):
        broker.create_topic("b")
        assert kafkalite("topics", "delete", "a", "b", code=1) == ["deleted topic b"]

    def test_partitions(self, kafkalite, broker):
        broker.create_topic("orders")
        assert kafkalite("topics", "partitions", "orders", "3") == ["topic orders has 3 partitions"]
        kafkalite("topics", "partitions", "orders", "2", code=1)

    def test_trim(self, kafkalite, broker):
        for _ in range(3):
            broker.produce("orders", b"v")
        assert kafkalite("topics", "trim", "orders", "--before", "2") == ["orders-0 begins at 2"]
        assert kafkalite("topics", "trim", "orders", "--before", "end") == ["orders-0 begins at 3"]

    def test_trim_of_a_compacted_topic_is_refused(self, kafkalite, broker):
        broker.create_topic("orders", config={"cleanup.policy": "compact"})
        broker.produce("orders", b"v", key=b"k")
        kafkalite(
            "topics",
            "trim",
            "orders",
            "--before",
            "end",
            code=1,
            error="POLICY_VIOLATION: orders-0: the topic's cleanup.policy is not delete",
        )


class TestProduce:
    def records(self, broker, topic="orders"):
        return [(r.key, r.value, r.headers) for r in broker.records(topic)]

    def test_messages(self, kafkalite, broker):
        kafkalite("produce", "orders", "-m", "a", "-m", "b", "-k", "k", "-H", "h=1", "-z", "gzip")
        assert self.records(broker) == [
            (b"k", b"a", [("h", b"1")]),
            (b"k", b"b", [("h", b"1")]),
        ]

    def test_lines_of_standard_input(self, kafkalite, broker, stdin, capsys):
        stdin(b"a\nb\r\n\nlast")
        kafkalite("produce", "orders")
        assert [value for _, value, _ in self.records(broker)] == [b"a", b"b", b"", b"last"]

    def test_keys_in_lines(self, kafkalite, broker, stdin):
        stdin(b"k1\tv1\nk2\tv\t2\nk3\t\n")
        kafkalite("produce", "orders", "-K", "\\t", "--empty-as-null")
        assert self.records(broker) == [
            (b"k1", b"v1", []),
            (b"k2", b"v\t2", []),
            (b"k3", None, []),
        ]

    def test_bad_line_is_named_and_those_before_it_are_written(self, kafkalite, broker, stdin):
        stdin(b"k:v\nnothing\n")
        kafkalite(
            "produce",
            "orders",
            "-K:",
            code=1,
            error="standard input, line 2: no ':' between key and value",
        )
        assert len(self.records(broker)) == 1

    def test_files(self, kafkalite, broker, tmp_path):
        (tmp_path / "a").write_bytes(b"1\n2\n")
        (tmp_path / "b").write_bytes(b"3\n4")
        kafkalite("produce", "orders", str(tmp_path / "a"), str(tmp_path / "b"))
        assert [value for _, value, _ in self.records(broker)] == [b"1", b"2", b"3", b"4"]
        kafkalite("produce", "whole", "-F", "whole", str(tmp_path / "a"), str(tmp_path / "b"))
        assert [value for _, value, _ in self.records(broker, "whole")] == [b"1\n2\n", b"3\n4"]

    def test_line_longer_than_a_read(self, kafkalite, broker, tmp_path):
        lines = [b"x" * 300_000, b"y" * 300_000]
        (tmp_path / "a").write_bytes(b"\n".join(lines))
        kafkalite("produce", "orders", str(tmp_path / "a"))
        assert [value for _, value, _ in self.records(broker)] == lines

    def test_what_consume_prints_is_read_back(self, kafkalite, broker, stdin):
        broker.create_topic("orders", partitions=3)
        broker.produce("orders", b"\xff", key=b"k", headers=[("h", None)], partition=2)
        broker.produce("orders", None, timestamp_ms=77, partition=1)
        printed = "\n".join(kafkalite("consume", "orders", "-F", "json")).encode()
        broker.create_topic("same", partitions=3)
        stdin(printed)
        kafkalite("produce", "same", "-F", "json")
        original, copy = broker.records("orders"), broker.records("same")
        for record, copied in zip(original, copy, strict=True):
            for name in ("partition", "key", "value", "headers", "timestamp"):
                assert getattr(record, name) == getattr(copied, name)
        stdin(printed)
        kafkalite("produce", "one", "-F", "json", "--repartition")
        assert {record.partition for record in broker.records("one")} == {0}

    def test_partition_that_is_not_there(self, kafkalite):
        kafkalite(
            "produce",
            "orders",
            "-m",
            "x",
            "-p",
            "1",
            code=1,
            error="topic 'orders' has no partition 1; it has 1, counted from 0",
        )

    def test_pipe_that_pauses_is_not_waited_for(self, broker, monkeypatch):
        reading, writing = os.pipe()
        with os.fdopen(reading) as pipe:
            monkeypatch.setattr("sys.stdin", pipe)
            thread = threading.Thread(target=run, args=[["produce", "orders"]])
            thread.start()
            os.write(writing, b"first\n")
            broker.server.services.metadata  # noqa: B018  the broker is there
            deadline = time.monotonic() + 10
            while not any(r.message.acks for r in broker.requests("Produce")):
                assert time.monotonic() < deadline
                time.sleep(0.001)
            os.write(writing, b"second\n")
            os.close(writing)
            thread.join()
        assert [r.value for r in broker.records("orders")] == [b"first", b"second"]


class TestConsume:
    @pytest.fixture(autouse=True)
    def orders(self, broker):
        broker.create_topic("orders", partitions=2)
        for number in range(5):
            broker.produce(
                "orders", b"v%d" % number, key=b"k", partition=0, timestamp_ms=1000 + number
            )
        broker.produce("orders", b"other", partition=1, timestamp_ms=1)

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ([], ["v0", "v1", "v2", "v3", "v4", "other"]),
            (["-p", "1"], ["other"]),
            (["-p", "0-1", "-n", "2"], ["v0", "v1"]),
            (["--from", "-2", "-p", "0"], ["v3", "v4"]),
            (["--from", "3", "-p", "0"], ["v3", "v4"]),
            (["--from", "@1004"], ["v4"]),
            (["--from", "end"], []),
            (["-F", "key-value", "-p", "0", "-n", "1"], ["k\tv0"]),
            (["--isolation", "read_committed", "-p", "0", "-n", "1"], ["v0"]),
        ],
    )
    def test_what_is_asked_for(self, kafkalite, arguments, expected):
        assert kafkalite("consume", "orders", *arguments) == expected

    def test_group_goes_on_where_it_stopped(self, kafkalite, broker):
        assert kafkalite("consume", "orders", "-p", "0", "-g", "g", "-n", "2") == ["v0", "v1"]
        assert kafkalite("consume", "orders", "-p", "0", "-g", "g") == ["v2", "v3", "v4"]
        assert kafkalite("consume", "orders", "-p", "0", "-g", "g") == []
        broker.wait_committed("g", "orders", 0)

    def test_follow_waits_for_more_until_interrupted(self, kafkalite, broker, monkeypatch):
        polls = []

        def poll(self, **options):
            polls.append(self.positions)
            if len(polls) == 2:
                broker.produce("orders", b"new", partition=0)
            if len(polls) == 4:
                raise KeyboardInterrupt
            return original(self, max_wait_ms=1)

        original = Consumer.poll
        monkeypatch.setattr(Consumer, "poll", poll)
        printed = kafkalite("consume", "orders", "-f", "-g", "g", "-p", "0")
        assert printed == ["new"]
        broker.wait_committed("g", "orders", 0)

    @pytest.mark.parametrize(
        ("arguments", "code", "error"),
        [
            (["nope"], 1, "UNKNOWN_TOPIC_OR_PARTITION: topic 'nope' does not exist"),
            (
                ["orders", "-p", "7"],
                2,
                "Topic 'orders' has no such partitions. See 'kafkalite consume --help'.",
            ),
            (
                ["orders", "-p", "x"],
                2,
                "Invalid value for '-p' / '--partitions': 'x' is no list of partitions such as "
                "0,3,5-7. See 'kafkalite consume --help'.",
            ),
        ],
    )
    def test_what_is_not_there_is_named(self, kafkalite, arguments, code, error):
        kafkalite("consume", *arguments, code=code, error=error)

    def test_reader_that_has_seen_enough_is_no_error(self, monkeypatch, broker):
        def broken(*_):
            raise BrokenPipeError

        duplicated = []
        monkeypatch.setattr("kafkalite.cli.consume._print_records", broken)
        monkeypatch.setattr(main_module.os, "dup2", lambda *files: duplicated.append(files))
        assert run(["consume", "orders"]) == 141
        assert len(duplicated) == 1


class TestConfigs:
    def test_topic(self, kafkalite, broker):
        broker.create_topic("orders", config={"retention.ms": 60_000})
        assert kafkalite("configs", "describe", "topic", "orders") == [
            "SETTING       VALUE  SOURCE",
            "retention.ms  60000  dynamic_topic",
        ]
        changed = kafkalite(
            "configs", "alter", "topic", "orders", "-s", "segment.ms=1000000", "-d", "retention.ms"
        )
        assert changed == ["changed topic orders"]
        document = json.loads(
            "".join(kafkalite("configs", "describe", "topic", "orders", "--json"))
        )
        assert document == [
            {
                "name": "segment.ms",
                "value": "1000000",
                "source": "dynamic_topic",
                "read_only": False,
                "sensitive": False,
            }
        ]
        kafkalite("configs", "alter", "topic", "orders", "--append", "cleanup.policy=compact")
        lines = kafkalite("configs", "describe", "topic", "orders")
        assert any("delete,compact" in line for line in lines)
        kafkalite("configs", "alter", "topic", "orders", "--subtract", "cleanup.policy=delete")
        lines = kafkalite("configs", "describe", "topic", "orders", "--all")
        told = {line.partition("=")[0].split()[0] for line in lines}
        assert told >= {name for name, setting in TOPIC.items() if not setting.internal}

    def test_broker_may_be_left_out(self, kafkalite):
        lines = kafkalite("configs", "describe", "broker")
        assert any(line.startswith("listeners ") for line in lines)
        kafkalite("configs", "alter", "broker", "-s", "log.retention.ms=1000000")
        lines = kafkalite("configs", "describe", "broker", "1")
        assert any("dynamic_broker" in line for line in lines)
        kafkalite("configs", "alter", "broker", "-d", "log.retention.ms")

    def test_documentation_is_readable(self, kafkalite, broker):
        broker.create_topic("orders", config={"retention.ms": 60_000})
        lines = kafkalite("configs", "describe", "topic", "orders", "--doc")
        assert lines[0] == "retention.ms=60000  (dynamic_topic)"
        assert len(lines) > 1
        assert all(line.startswith("    ") and len(line) <= 100 for line in lines[1:])
        assert "<" not in "".join(lines)

    @pytest.mark.parametrize(
        ("arguments", "code", "error"),
        [
            (["describe", "topic"], 2, "Name the topic. See 'kafkalite configs describe --help'."),
            (["describe", "broker", "x"], 1, "'x' is no broker id"),
            (["describe", "broker", "77"], 1, "broker 77 is not in the cluster"),
            (
                ["alter", "topic", "orders"],
                2,
                "Nothing to change: give --set, --delete, --append or --subtract. "
                "See 'kafkalite configs alter --help'.",
            ),
        ],
    )
    def test_what_is_missing_is_named(self, kafkalite, arguments, code, error):
        kafkalite("configs", *arguments, code=code, error=error)

    def test_bad_value_is_refused(self, kafkalite, broker):
        broker.create_topic("orders")
        kafkalite("configs", "alter", "topic", "orders", "-s", "retention.ms=soon", code=1)


class TestDumpLog:
    def test_directory_of_a_partition(self, kafkalite, broker):
        broker.produce("orders", b"value", key=b"k")
        folder = f"{broker.server.data_dirs[0]}/orders-0"
        lines = kafkalite("dump-log", "--contents", folder)
        assert f"Dumping {folder}/00000000000000000000.log" in lines
        assert any(line.endswith("key: k payload: value") for line in lines)
        assert any(line.startswith("topicId: ") for line in lines)

    def test_records_of_groups_are_decoded(self, kafkalite, broker):
        broker.produce("orders", b"value")
        kafkalite("consume", "orders", "-g", "g")
        files = [
            f"{broker.server.data_dirs[0]}/__consumer_offsets-{index}/00000000000000000000.log"
            for index in range(5)
        ]
        lines = kafkalite("dump-log", "-c", *files)
        assert any("OffsetCommitKey(group='g', topic='orders', partition=0)" in x for x in lines)

    def test_records_of_transactions_are_decoded(self, kafkalite, broker):
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "mine"})
        producer.init_transactions(10)
        files = [
            f"{broker.server.data_dirs[0]}/__transaction_state-{index}/00000000000000000000.log"
            for index in range(5)
        ]
        lines = kafkalite("dump-log", "-c", *files)
        assert any("key: 'mine' payload: Transaction(" in line for line in lines)

    def test_damage_is_told_on_stderr(self, kafkalite, tmp_path, capsys):
        (tmp_path / "partition.metadata").write_text("nonsense")
        assert run(["dump-log", str(tmp_path)]) == 1
        assert "partition.metadata" in capsys.readouterr().err

    def test_index_alone_is_told_of(self, tmp_path, capsys):
        (tmp_path / "00000000000000000000.timeindex").write_bytes(b"")
        assert run(["dump-log", str(tmp_path)]) == 1
        assert capsys.readouterr().err.endswith("00000000000000000000.index is missing\n")
