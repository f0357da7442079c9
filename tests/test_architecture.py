"""docs/architecture.md draws what the code does: the functions in its pictures, in their order."""

import ast
import re
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import trio

from kafkalite.config import load_config
from kafkalite.server.broker import Broker
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.log.log_kit import batch
from tests.peers.asking_kit import ask
from tests.server.test_replication import cluster, create_topic, until

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "architecture.md"

PICTURE = re.compile(
    r"### (?P<title>[^\n]+)\n(?:(?!###).)*?```mermaid\n(?P<text>.*?)```", re.DOTALL
)
FUNCTION = re.compile(r"\b(?P<owner>_?[A-Za-z]\w*)\.(?P<name>_?[a-z]\w+)\b")

ACKNOWLEDGEMENT = "An acknowledgement's way through a cluster"
START = "A start, with recovery"
ATTEMPTS = 5


def pictures():
    found = {match["title"]: match["text"] for match in PICTURE.finditer(DOCUMENT.read_text())}
    assert set(found) >= {ACKNOWLEDGEMENT, START}
    return found


def drawn(title):
    """The functions that a picture names, in the order in which it names them."""
    return [f"{found['owner']}.{found['name']}" for found in FUNCTION.finditer(pictures()[title])]


@cache
def functions():
    """Where the package's functions are, by pictures' names: `Class.method`, `module.function`."""
    found = {}
    for path in (ROOT / "kafkalite").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            members = node.body if isinstance(node, ast.ClassDef) else [node]
            owner = node.name if isinstance(node, ast.ClassDef) else path.stem
            for member in members:
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                    name = f"{owner}.{member.name}"
                    found[name] = path.relative_to(ROOT / "kafkalite").as_posix()
    return found


@pytest.mark.parametrize("title", pictures())
def test_functions_in_a_picture_exist(title):
    named = drawn(title)
    assert len(named) > 10
    missing = [name for name in named if name not in functions()]
    assert not missing, (
        f'docs/architecture.md, "{title}": {missing} are not in kafkalite (renamed?)'
    )


def test_an_acknowledgement_takes_the_files_that_are_listed():
    (listed,) = re.findall(
        r"The whole way is in twelve files: (.*?)\. ", DOCUMENT.read_text(), re.DOTALL
    )
    files = set(re.findall(r"`([^`]+)`", listed))
    assert files == {functions()[name] for name in drawn(ACKNOWLEDGEMENT)}
    assert len(files) == 12


@pytest.mark.parametrize("name", ["unregister_broker", "delete_records", "elect_leaders"])
def test_an_api_is_the_files_that_are_listed(name):
    (listed,) = re.findall(r"An API is five files: (.*?); what it", DOCUMENT.read_text(), re.DOTALL)
    files = {path.replace("<name>", name) for path in re.findall(r"`([^`]+)`", listed)}
    assert len(files) == 5
    for path in files:
        text = (ROOT / "kafkalite" / path).read_text()
        assert re.search(rf"\b{name.upper()}\b", text), path


@contextmanager
def calls():
    """The functions of the package that are called meanwhile, as pictures name them."""
    names = {}
    made = []

    def note(frame, event, argument):
        if event != "call":
            return
        code = frame.f_code
        name = names.get(code)
        if name is None:
            is_local_request = "/kafkalite/" in code.co_filename
            name = code.co_qualname if is_local_request else ""
            if name and "." not in name:
                name = f"{Path(code.co_filename).stem}.{name}"
            names[code] = name
        if name:
            made.append(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield made
    finally:
        sys.setprofile(before)


def out_of_order(wanted, made):
    """What is not called after what stands before it in `wanted`; None if all are in order."""
    left = iter(made)
    return next((name for name in wanted if name not in left), None)


async def test_an_acknowledgement_takes_the_way_that_is_drawn(tmp_path):
    async with cluster(tmp_path) as brokers:
        assert await create_topic(brokers[0], "t", replicas=2) == 0
        known = [one.services.metadata for one in brokers]
        await until(lambda: all(each.image.partition("t", 0) for each in known))
        (leader,) = [one for one in brokers if one.services.replicas.replica("t", 0).is_leader]
        partition = leader.services.replicas.replica("t", 0)
        request = produce_request(leader)
        # The first is acknowledged when the follower has joined; then its Fetch waits. Once in half
        # a second that Fetch ends by itself, and the records meet the next one on its way.
        assert await acknowledged(leader, request) == 0
        for _ in range(ATTEMPTS):
            await until(lambda: partition._append_watchers)
            with calls() as made:
                assert await acknowledged(leader, produce_request(leader)) == 0
            missed = out_of_order(drawn(ACKNOWLEDGEMENT), made)
            if missed is None:
                break
    assert missed is None, f"{missed} is not called in its turn: the picture is out of date"


def produce_request(broker):
    topic_id = broker.services.metadata.image.topics["t"].topic_id
    data = PartitionProduceData(index=0, records=memoryview(batch(b"hello")))
    topic = TopicProduceData(name="t", topic_id=topic_id, partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])


async def acknowledged(broker, request):
    response = await ask(broker, PRODUCE, 13, request)
    return response.responses[0].partition_responses[0].error_code


async def test_a_start_after_a_crash_takes_the_way_that_is_drawn(tmp_path):
    settings = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}

    async def run(before_stop):
        async with trio.open_nursery() as nursery:
            broker = await nursery.start(Broker(load_config(overrides=settings)).run)
            await before_stop(broker)
            nursery.cancel_scope.cancel()

    async def leave_records(broker):
        assert await create_topic(broker, "t", replicas=1) == 0
        assert await acknowledged(broker, produce_request(broker)) == 0

    async def look(broker):
        assert broker.services.replicas.partition("t", 0).log_end_offset == 1

    await run(leave_records)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    with calls() as made:
        await run(look)
    missed = out_of_order(drawn(START), made)
    assert missed is None, f"{missed} is not called in its turn: the picture is out of date"


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_files_that_newcomers_are_sent_to_are_there(name):
    text = (ROOT / name).read_text()
    paths = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|md|json))`", text))
    assert len(paths) > 5
    missing = {
        path
        for path in paths
        if not (ROOT / path).exists() and not (ROOT / "kafkalite" / path).exists()
    }
    assert not missing
