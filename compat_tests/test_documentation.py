"""The snippets of README.md and docs in other languages than Python, run as they stand there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.apache_kafka import classpath
from compat_tests.cache import cached_dir, digest_of
from compat_tests.clients import node_client
from compat_tests.toolchains import find_program, run_build
from kafkalite.testing import Broker
from tests.documentation import snippets

REPOSITORY = Path(__file__).parent.parent

#: Folders whose go.mod pins the module that a snippet imports.
GO_FOLDERS = {
    "github.com/twmb/franz-go": "franz_go",
    "github.com/IBM/sarama": "sarama",
    "github.com/segmentio/kafka-go": "kafka_go",
}


@pytest.fixture(scope="module")
def broker():
    with Broker() as running:
        yield running


def run(broker, command, *, cwd=None, environment=None, timeout=60):
    """Run a program to its end and return what it printed."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def need_programs():
    """Ask for all of them before anything is done."""
    for name in ("java", "kcat", "node", "go"):
        find_program(name)


@pytest.mark.compat
def test_java(broker, tmp_path):
    broker.reset()
    (snippet,) = snippets("java")
    (tmp_path / snippet.argument).write_text(snippet.at(broker.bootstrap))
    command = [find_program("java"), "-cp", classpath(), snippet.argument]
    assert run(broker, command, cwd=tmp_path) == "customer-7 hello\n"


@pytest.mark.compat
def test_kcat(broker):
    broker.reset()
    (snippet,) = snippets("kcat")
    output = run(broker, ["sh", "-e", "-c", snippet.at(broker.bootstrap)])
    assert output.startswith("hello\n")
    assert 'topic "orders" with 1 partitions' in output


@pytest.mark.compat
def test_kafkajs(broker, tmp_path):
    broker.reset()
    (snippet,) = snippets("node")
    (tmp_path / snippet.argument).write_text(snippet.at(broker.bootstrap))
    _, environment = node_client("kafkajs")
    command = [find_program("node"), snippet.argument]
    assert "customer-7 hello\n" in run(broker, command, cwd=tmp_path, environment=environment)


@pytest.mark.compat
@pytest.mark.parametrize("module", GO_FOLDERS)
def test_go(broker, module):
    broker.reset()
    (snippet,) = [snippet for snippet in snippets("go") if snippet.argument == module]
    # The broker is reached by a name in the environment: a build is worth keeping.
    text = snippet.text.replace('"127.0.0.1:9092"', 'os.Getenv("BOOTSTRAP")')
    text = text.replace('\t"fmt"\n', '\t"fmt"\n\t"os"\n')
    assert 'os.Getenv("BOOTSTRAP")' in text
    own = REPOSITORY / "compat_tests" / GO_FOLDERS[module]

    def build(target):
        (target / "main.go").write_text(text)
        for name in ("go.mod", "go.sum"):
            shutil.copy(own / name, target / name)
        run_build([find_program("go"), "build", "-o", "orders", "."], cwd=target)

    name = f"go/readme-{GO_FOLDERS[module]}-{digest_of(text, own / 'go.sum')}"
    built = cached_dir(name, build, lock="go")
    output = run(broker, [str(built / "orders")], environment={"BOOTSTRAP": broker.bootstrap})
    assert output == "customer-7 hello\n"


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark(broker, tmp_path):
    broker.reset()
    (snippet,) = snippets("spark")
    command = [sys.executable, "-c", snippet.at(broker.bootstrap)]
    output = run(broker, command, cwd=tmp_path, timeout=300)
    assert "customer-7|hello" in output
    assert "customer-8|world" in output
