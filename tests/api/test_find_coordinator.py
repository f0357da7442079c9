"""FindCoordinator over the wire, in every version (rules 101, 124)."""

import dataclasses

import pytest

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.api.group_context import OFFSETS, run, topic_image

GROUP, TRANSACTION, SHARE = 0, 1, 2


def request_for(version, *keys, key_type=GROUP):
    if version < 4:
        return FindCoordinatorRequest(key=keys[0], key_type=key_type)
    return FindCoordinatorRequest(coordinator_keys=[*keys], key_type=key_type)


def first(answer, version):
    return answer if version < 4 else answer.coordinators[0]


@pytest.mark.parametrize("version", range(7))
def test_coordinator_is_the_leader_of_the_groups_partition(version):
    async def main(broker):
        answer = await broker.call("FIND_COORDINATOR", version, request_for(version, "g"))
        found = first(answer, version)
        assert found.error_code == ErrorCode.NONE
        assert (found.node_id, found.host, found.port) == (1, "10.0.0.1", 9092)

    run(main)


def test_several_keys():
    """KIP-699."""

    async def main(broker):
        answer = await broker.call("FIND_COORDINATOR", 4, request_for(4, "a", "b"))
        assert [(c.key, c.node_id) for c in answer.coordinators] == [("a", 1), ("b", 1)]

    run(main)


@pytest.mark.parametrize("version", [2, 6])
def test_topic_that_is_not_there_is_made_first(version):
    """Kafka makes the client try again (rule 124)."""

    async def main(broker):
        del broker.metadata.image.topics[OFFSETS]
        answer = await broker.call("FIND_COORDINATOR", version, request_for(version, "g"))
        assert first(answer, version).error_code == ErrorCode.NONE
        assert OFFSETS in broker.metadata.image.topics

    run(main)


def test_topic_that_cannot_be_made():
    async def main(broker):
        del broker.metadata.image.topics[OFFSETS]
        broker.metadata.refusal = ErrorCode.INVALID_REPLICATION_FACTOR
        answer = await broker.call("FIND_COORDINATOR", 3, request_for(3, "g"))
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "INVALID_REPLICATION_FACTOR" in answer.error_message
        assert (answer.node_id, answer.host, answer.port) == (-1, "", -1)

    run(main)


def test_topic_that_is_gone_again():
    async def main(broker):
        del broker.metadata.image.topics[OFFSETS]

        async def forget(name):
            pass

        broker.metadata.ensure_topic = forget
        answer = await broker.call("FIND_COORDINATOR", 3, request_for(3, "g"))
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(main)


def test_partition_without_a_leader():
    async def main(broker):
        broker.metadata.add(topic_image(OFFSETS, 98, 5, leader=-1))
        answer = await broker.call("FIND_COORDINATOR", 4, request_for(4, "g"))
        assert first(answer, 4).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(main)


def test_leader_that_this_listener_does_not_reach():
    async def main(broker):
        broker.context.listener = "OTHER"
        answer = await broker.call("FIND_COORDINATOR", 4, request_for(4, "g"))
        assert first(answer, 4).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(main)


@pytest.mark.parametrize("version", [1, 4, 6])
def test_no_coordinator_of_transactions_here(version):
    async def main(broker):
        request = request_for(version, "t", key_type=TRANSACTION)
        answer = await broker.call("FIND_COORDINATOR", version, request)
        assert first(answer, version).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(main)


def test_coordinator_of_transactions():
    """Rule 101; an empty id is refused by itself."""

    async def main(broker):
        broker.metadata.add(topic_image("__transaction_state", 97, 5))
        broker.context.services.coordinators = dataclasses.make_dataclass("R", [])()
        broker.context.services.coordinators.coordinates = lambda topic: True
        request = request_for(4, "t", "", key_type=TRANSACTION)
        answer = await broker.call("FIND_COORDINATOR", 4, request)
        assert [c.error_code for c in answer.coordinators] == [
            ErrorCode.NONE,
            ErrorCode.INVALID_REQUEST,
        ]

    run(main)


@pytest.mark.parametrize("key_type", [SHARE, 99])
@pytest.mark.parametrize("version", [1, 5, 6])
def test_other_types(key_type, version):
    async def main(broker):
        request = request_for(version, "g:t:0", key_type=key_type)
        answer = await broker.call("FIND_COORDINATOR", version, request)
        assert first(answer, version).error_code == ErrorCode.INVALID_REQUEST

    run(main)
