"""Large answers are stripped of what may not be seen in steps, between which others have turns."""

from types import SimpleNamespace

import pytest
import trio

from kafkalite.api import authorization, metadata
from kafkalite.api.metadata import HANDLERS
from kafkalite.deferred import Deferred, InSteps, in_steps
from kafkalite.security.acls import Operation
from kafkalite.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.api.metadata_kit import MetadataKit

(METADATA,) = HANDLERS
STEP = 8


class EverySecond:
    """An authorizer that lets nobody see topics whose name ends with an odd digit."""

    def __init__(self):
        self.asked_in_turn = [0]

    def allows(self, context, operation, kind, name="", *, quiet=False):
        self.asked_in_turn[-1] += operation is Operation.DESCRIBE
        return name[-1:] not in set("13579")


@pytest.fixture
def kit(monkeypatch):
    made = MetadataKit()
    for index in range(40):
        made.create(f"t{index}", 1)
    monkeypatch.setattr(authorization, "STEP_TOPICS", STEP)
    made.services.authorizer = EverySecond()
    return made


def answered(kit, request):
    """Return the topics of an answer, after all turns that it took."""
    context = kit.context(12)
    asked = kit.services.authorizer.asked_in_turn

    class Turns(trio.abc.Instrument):
        def before_task_step(self, task):
            asked.append(0)

    async def wait():
        result = authorization.handle(METADATA, request, context)
        if not isinstance(result, Deferred):
            return result
        if request.topics is None:
            assert isinstance(result, InSteps), "it is not encoded in steps"
        trio.lowlevel.add_instrument(Turns())
        await trio.lowlevel.checkpoint()
        return await result.wait()

    return [(topic.name, topic.error_code) for topic in trio.run(wait).topics]


@pytest.mark.pure  # numbers are put in the place of others
def test_all_topics_are_stripped_in_steps(kit, monkeypatch):
    at_once = answered(kit, MetadataRequest(topics=None))
    assert at_once == [(f"t{index}", 0) for index in range(0, 40, 2)]
    monkeypatch.setattr(metadata, "PART_MAX", 10)
    kit.services.authorizer.asked_in_turn[:] = [0]
    assert answered(kit, MetadataRequest(topics=None)) == at_once
    assert sum(kit.services.authorizer.asked_in_turn) == 40
    assert max(kit.services.authorizer.asked_in_turn) <= STEP


@pytest.mark.pure  # numbers are put in the place of others
def test_what_is_named_and_denied_is_in_the_answer_too(kit, monkeypatch):
    named = MetadataRequest(
        topics=[MetadataRequestTopic(name=f"t{index}") for index in range(30)],
        include_topic_authorized_operations=True,
    )
    at_once = answered(kit, named)
    assert sorted(at_once) == sorted((f"t{index}", 29 * (index % 2)) for index in range(30))
    monkeypatch.setattr(metadata, "PART_MAX", 10)
    assert answered(kit, named) == at_once


def test_committed_offsets_are_stripped_in_steps(kit):
    topics = [SimpleNamespace(name=f"t{index}", partitions=[]) for index in range(30)]
    steps = authorization._seen(topics, kit.context(8), is_named=False)
    asked = kit.services.authorizer.asked_in_turn

    async def strip():
        return await in_steps(steps)

    class Turns(trio.abc.Instrument):
        def before_task_step(self, task):
            asked.append(0)

    seen = trio.run(strip, instruments=[Turns()])
    assert [topic.name for topic in seen] == [f"t{index}" for index in range(0, 30, 2)]
    assert max(asked) <= STEP
