"""A developer's way in: `serve --secure`, `client-config`, and each language's client as printed.

Nothing that is printed is changed; around it stands a program of its language that sends a record.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from confluent_kafka import Consumer, TopicPartition

from compat_tests.apache_kafka import KAFKA_4, run_tool
from compat_tests.broker import KafkaliteBroker
from compat_tests.cache import cached_dir, digest_of
from compat_tests.clients import node_client
from compat_tests.driver import REPOSITORY
from compat_tests.spring import spring_command
from compat_tests.toolchains import find_program, run_build
from kafkalite.client.admin import create_topic
from kafkalite.client.cluster import Client

pytestmark = [pytest.mark.compat, pytest.mark.slow]

CONFLUENT = """
from confluent_kafka import Producer
producer = Producer(conf)
producer.produce(TOPIC, b"confluent-kafka")
assert producer.flush(20) == 0
"""
KAFKA_PYTHON = """
from kafka import KafkaProducer
producer = KafkaProducer(**conf)
producer.send(TOPIC, b"kafka-python").get(20)
producer.close()
"""
AIOKAFKA = """
import aiokafka, aiokafka.helpers, asyncio
del conf["ssl_cafile"]
async def main():
    async with aiokafka.AIOKafkaProducer(**conf, {ssl_context}) as producer:
        await producer.send_and_wait(TOPIC, b"aiokafka")
asyncio.run(main())
"""
NODE = """
const {{ Kafka }} = require('kafkajs')
{printed}
async function main() {{
  const producer = kafka.producer()
  await producer.connect()
  await producer.send({{ topic: process.argv[2], messages: [{{ value: 'kafkajs' }}] }})
  await producer.disconnect()
}}
main().catch(error => {{ console.error(error); process.exit(1) }})
"""
GO = """package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func main() {
%s
	if err != nil {
		log.Fatal(err)
	}
	record := &kgo.Record{Topic: os.Getenv("TOPIC"), Value: []byte("franz-go")}
	if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
		log.Fatal(err)
	}
}
"""


@pytest.fixture(scope="module")
def broker():
    with KafkaliteBroker("--secure", "--secure-listen", "127.0.0.1:0") as running:
        yield running


@pytest.fixture(autouse=True)
def need_programs():
    """Ask for all of them before anything is done."""
    for name in ("java", "mvn", "kcat", "node", "go"):
        find_program(name)


def printed(broker, form):
    """Return what `kafkalite client-config` prints."""
    command = [sys.executable, "-m", "kafkalite", "client-config", form]
    return run([*command, "--data-dir", str(broker.data_dir)])


def run(command, *, cwd=None, stdin="", **environment):
    done = subprocess.run(
        command,
        input=stdin,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def values(broker, topic, count):
    """Return the records of a topic, which everybody may read by the listener without TLS."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "reader", "log_level": 0}
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = []
        while len(found) < count:
            messages = consumer.consume(count, 20)
            assert messages, f"{topic} has only {found}"
            found += [one.value().decode() for one in messages if one.error() is None]
        return found
    finally:
        consumer.close()


def test_java_takes_the_file(broker, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(printed(broker, "java"))
    address = re.search("(?m)^bootstrap.servers=(.*)$", file.read_text())[1]
    words = ("--bootstrap-server", address, "--command-config", str(file), "--topic", "java")
    run_tool(KAFKA_4, "kafka-console-producer", *words, stdin="java\n", timeout=120)
    assert values(broker, "java", 1) == ["java"]


def test_librdkafka_takes_the_lines(broker, tmp_path):
    """kcat of Debian 12 by the hint that is printed, for its librdkafka has an old bug."""
    file = tmp_path / "kcat.conf"
    file.write_text(printed(broker, "librdkafka"))
    hint = re.search(r"kcat, needs (-X \S+)", file.read_text())[1].split()
    run(["kcat", "-F", str(file), *hint, "-P", "-t", "kcat"], stdin="kcat\n")
    assert values(broker, "kcat", 1) == ["kcat"]


def test_python_takes_the_settings_of_each_of_its_clients(broker):
    confluent, others = printed(broker, "python").split("# kafka-python\n")
    context = re.search(r"ssl_context=.*", others)[0]
    programs = [confluent + CONFLUENT, others + KAFKA_PYTHON, others + AIOKAFKA]
    for text in programs:
        text = text.replace("{ssl_context}", context)
        run([sys.executable, "-W", "ignore", "-c", f"TOPIC = 'python'\n{text}"])
    assert values(broker, "python", 3) == ["confluent-kafka", "kafka-python", "aiokafka"]


def test_node_takes_the_snippet(broker, tmp_path):
    (tmp_path / "main.js").write_text(NODE.format(printed=printed(broker, "node")))
    _, environment = node_client("kafkajs")
    run([find_program("node"), str(tmp_path / "main.js"), "node"], **environment)
    assert values(broker, "node", 1) == ["kafkajs"]


def test_go_takes_the_snippet(broker):
    # What differs from run to run is put in afterwards: a build is worth keeping.
    text = GO % printed(broker, "go").replace("\n", "\n\t")
    found = dict(re.findall(r'(ReadFile|SeedBrokers|User:|Pass:)[ (]("[^"]*")', text))
    names = {"ReadFile": "CA", "SeedBrokers": "ADDRESS", "User:": "NAME", "Pass:": "PASSWORD"}
    for what, name in names.items():
        text = text.replace(found[what], f'os.Getenv("{name}")')
    own = REPOSITORY / "compat_tests" / "franz_go"

    def build(target):
        (target / "main.go").write_text(text)
        for name in ("go.mod", "go.sum"):
            (target / name).write_bytes((own / name).read_bytes())
        run_build([find_program("go"), "build", "-o", "secured", "."], cwd=target)

    built = cached_dir(f"go/secured-{digest_of(text, own / 'go.sum')}", build, lock="go")
    with Client(broker.bootstrap) as own_client:  # franz-go makes no topics unless it is told to
        create_topic(own_client, "go", partitions=1)
    given = {names[what]: quoted[1:-1] for what, quoted in found.items()}
    run([str(built / "secured")], TOPIC="go", **given)
    assert values(broker, "go", 1) == ["franz-go"]


@pytest.mark.long
def test_spring_takes_the_file(broker, tmp_path):
    (tmp_path / "application.properties").write_text(printed(broker, "spring"))
    run([*spring_command(), "spring", "spring"], cwd=tmp_path)
    assert values(broker, "spring", 1) == ["spring"]
