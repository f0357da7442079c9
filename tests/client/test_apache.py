"""The client and the commands against Apache Kafka, current and old."""

import json

import pytest

from compat_tests.apache_kafka import KAFKA_3_9, KAFKA_4, ApacheBroker
from kafkalite.cli.main import run
from kafkalite.wire.compression import Codec

pytestmark = [pytest.mark.kafka_dir, pytest.mark.slow]


@pytest.fixture(scope="module", params=[KAFKA_4, KAFKA_3_9])
def apache(request):
    with ApacheBroker(request.param) as broker:
        yield broker


@pytest.fixture
def kafkalite(apache, monkeypatch, capsys):
    monkeypatch.setenv("KAFKALITE_BOOTSTRAP", apache.bootstrap)

    def run_command(*arguments, code=0):
        capsys.readouterr()
        assert run(list(arguments)) == code, capsys.readouterr().err
        return capsys.readouterr().out.splitlines()

    return run_command


def test_records_of_every_codec_come_back(kafkalite, tmp_path):
    kafkalite("topics", "create", "codecs", "-p", "3")
    lines = [{"key": f"k{n}", "value": f"v{n}", "headers": [["h", "1"]]} for n in range(100)]
    (tmp_path / "records").write_text("\n".join(map(json.dumps, lines)))
    for codec in Codec:
        name = codec.name.lower()
        kafkalite("produce", "codecs", "-F", "json", "-z", name, str(tmp_path / "records"))
    printed = [json.loads(line) for line in kafkalite("consume", "codecs", "-F", "json")]
    assert len(printed) == 100 * len(Codec)
    assert {record["value"] for record in printed} == {f"v{n}" for n in range(100)}
    assert all(record["headers"] == [["h", "1"]] for record in printed)


def test_topic_is_created_by_writing_to_it(kafkalite):
    kafkalite("produce", "by-writing", "-m", "hello")
    assert kafkalite("consume", "by-writing") == ["hello"]


def test_topics_and_their_settings(kafkalite):
    kafkalite("topics", "create", "t", "-c", "retention.ms=60000")
    kafkalite("topics", "partitions", "t", "2")
    kafkalite("configs", "alter", "topic", "t", "-s", "segment.ms=1000000", "-d", "retention.ms")
    (described,) = json.loads("".join(kafkalite("topics", "describe", "t", "--json")))
    assert described["configs"] == {"segment.ms": "1000000"}
    assert len(described["partitions"]) == 2
    assert "t" in json.loads("".join(kafkalite("topics", "list", "--json")))
    assert kafkalite("configs", "describe", "broker")[1:]
    kafkalite("produce", "t", "-m", "x", "-p", "1")
    assert kafkalite("topics", "trim", "t", "--before", "end") == [
        "t-0 begins at 0",
        "t-1 begins at 1",
    ]
    assert kafkalite("topics", "delete", "t") == ["deleted topic t"]
    kafkalite("topics", "delete", "t", code=1)


def test_groups(kafkalite):
    kafkalite("topics", "create", "grouped")
    kafkalite("produce", "grouped", "-m", "a", "-m", "b")
    assert kafkalite("consume", "grouped", "-g", "g", "-n", "1") == ["a"]
    assert any(line.startswith("g ") for line in kafkalite("groups", "list"))
    assert kafkalite("groups", "describe", "g")[-1].split() == ["grouped", "0", "1", "2", "1", "-"]
    kafkalite("groups", "reset-offsets", "g", "--to", "beginning")
    assert kafkalite("consume", "grouped", "-g", "g") == ["a", "b"]
    assert kafkalite("groups", "delete", "g") == ["deleted group g"]
    kafkalite("groups", "describe", "g", code=1)
