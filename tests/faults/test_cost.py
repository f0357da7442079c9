"""A broker without fault rules does what one does that never had any: not a byte, not a step."""

from collections.abc import Iterable

import pytest
import trio

from benchmarks import guarded, guards
from kafkalite.config import load_config
from kafkalite.faults.specification import parse
from kafkalite.server.broker import Broker

pytestmark = pytest.mark.slow


def flat(chunks: Iterable) -> bytes:
    return b"".join(chunk.read() if hasattr(chunk, "read") else bytes(chunk) for chunk in chunks)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Answers and bytecodes: before any rule, with one that matches nothing, and after it."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path_factory.mktemp("data")),
        "kafkalite.profile": "test",
        "offsets.topic.num.partitions": "1",
    }

    async def main():
        found = {}
        async with trio.open_nursery() as nursery:
            broker = await nursery.start(Broker(load_config(overrides=settings)).run)
            heartbeat = await guarded._prepare(broker)
            client = guarded.Client(broker)
            batch = guarded._batch(1)
            frames = {
                "Metadata": guarded._frame(guarded.METADATA, guarded._metadata()),
                "Fetch": guarded._frame(guarded.FETCH, guarded._fetch(1)),
                "Heartbeat": heartbeat,
            }
            produce = guarded._frame(guarded.PRODUCE, guarded._produce(1, batch))
            client.serve(produce)

            def measure():
                answers = {name: flat(client.serve(frame)) for name, frame in frames.items()}
                costs = {
                    name: guards.cost_of(lambda frame=frame: client.serve(frame)).bytecodes
                    for name, frame in {**frames, "Produce": produce}.items()
                }
                return answers, costs

            found["never"] = measure()
            rules = broker.control.injector
            rule = rules.add(parse({"api": "DescribeGroups", "error": 15}))
            found["another"] = {name: flat(client.serve(frame)) for name, frame in frames.items()}
            rules.remove(rule.rule_id)
            found["removed"] = measure()
            nursery.cancel_scope.cancel()
        return found

    return trio.run(main)


def test_answers_are_the_same_bytes(measured):
    assert measured["never"][0] == measured["removed"][0] == measured["another"]
    assert all(measured["never"][0].values())


def test_not_a_step_more_is_done(measured):
    before, after = measured["never"][1], measured["removed"][1]
    for name, cost in before.items():
        # A log that has grown takes some steps more or less; an interceptor takes hundreds.
        assert abs(after[name] - cost) <= cost * 0.01, name
