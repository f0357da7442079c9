"""DescribeGroups, ListGroups, DeleteGroups over the wire, in every version."""

import pytest

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.delete_groups import DeleteGroupsRequest
from kafkalite.wire.messages.describe_groups import DescribeGroupsRequest
from kafkalite.wire.messages.list_groups import ListGroupsRequest
from tests.api.group_context import OFFSETS, run
from tests.api.test_join_group import join, sync_request
from tests.api.test_offset_commit import commit_request

NOT_REQUESTED = -(2**31)
READ_DELETE_DESCRIBE_AND_CONFIGS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11


async def stable_group(broker):
    member = (await join(broker)).member_id
    await broker.call("SYNC_GROUP", 5, sync_request(member))
    return member


@pytest.mark.parametrize("version", range(7))
def test_describe(version):
    async def main(broker):
        member = await stable_group(broker)
        request = DescribeGroupsRequest(groups=["g", "unknown"], include_authorized_operations=True)
        known, unknown = (await broker.call("DESCRIBE_GROUPS", version, request)).groups
        assert (known.group_id, known.group_state, known.protocol_data) == ("g", "Stable", "range")
        assert known.members[0].member_id == member
        assert known.members[0].client_host == "/10.0.0.2"
        assert known.members[0].member_assignment == b"all"
        assert known.authorized_operations == (
            READ_DELETE_DESCRIBE_AND_CONFIGS if version >= 3 else NOT_REQUESTED
        )
        assert unknown.group_state == "Dead"
        code = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
        assert unknown.error_code == code

    run(main)


def test_describe_without_authorized_operations():
    async def main(broker):
        await stable_group(broker)
        answer = await broker.call("DESCRIBE_GROUPS", 5, DescribeGroupsRequest(groups=["g"]))
        assert answer.groups[0].authorized_operations == NOT_REQUESTED

    run(main)


@pytest.mark.parametrize("version", range(6))
def test_list(version):
    async def main(broker):
        await stable_group(broker)
        await broker.call("OFFSET_COMMIT", 8, commit_request(group_id="offsets"))
        answer = await broker.call("LIST_GROUPS", version, ListGroupsRequest())
        listed = {g.group_id: (g.protocol_type, g.group_state, g.group_type) for g in answer.groups}
        states = ("Stable", "Empty") if version >= 4 else ("", "")
        kind = "classic" if version >= 5 else ""
        assert listed == {
            "g": ("consumer", states[0], kind),
            "offsets": ("", states[1], kind),
        }

    run(main)


def test_list_by_state_and_type():
    async def main(broker):
        await stable_group(broker)
        await broker.call("OFFSET_COMMIT", 8, commit_request(group_id="offsets"))
        request = ListGroupsRequest(states_filter=["Empty"], types_filter=["classic"])
        answer = await broker.call("LIST_GROUPS", 5, request)
        assert [group.group_id for group in answer.groups] == ["offsets"]

    run(main)


@pytest.mark.parametrize("version", range(3))
def test_delete(version):
    async def main(broker):
        await stable_group(broker)
        await broker.call("OFFSET_COMMIT", 8, commit_request(group_id="offsets"))
        request = DeleteGroupsRequest(groups_names=["offsets", "g", "unknown", "g"])
        answer = await broker.call("DELETE_GROUPS", version, request)
        assert [(r.group_id, r.error_code) for r in answer.results] == [
            ("offsets", ErrorCode.NONE),
            ("g", ErrorCode.NON_EMPTY_GROUP),
            ("unknown", ErrorCode.GROUP_ID_NOT_FOUND),
        ]
        answer = await broker.call("LIST_GROUPS", 0, ListGroupsRequest())
        assert [group.group_id for group in answer.groups] == ["g"]

    run(main)


class TestPartsThatWait:
    def test_each_group_has_its_own_answer(self):
        """One waits for the log, one is refused, one is there at once."""

        async def main(broker):
            for name in ("a", "b", "c"):
                await broker.call("OFFSET_COMMIT", 8, commit_request(group_id=name))
            broker.stop_replication()
            request = DeleteGroupsRequest(groups_names=["a", "unknown"])
            answer = broker.handle("DELETE_GROUPS", 2, request)
            assert answer.is_pending
            describe = broker.handle("DESCRIBE_GROUPS", 5, DescribeGroupsRequest(groups=["a", "b"]))
            listing = broker.handle("LIST_GROUPS", 4, ListGroupsRequest())
            await broker.replicate()
            results = (await answer()).results
            assert [r.error_code for r in results] == [
                ErrorCode.NONE,
                ErrorCode.GROUP_ID_NOT_FOUND,
            ]
            assert [g.group_state for g in (await describe()).groups] == ["Dead", "Empty"]
            assert sorted(g.group_id for g in (await listing()).groups) == ["b", "c"]

        run(main)

    def test_shard_that_moves_away_meanwhile(self):
        async def main(broker):
            await broker.call("OFFSET_COMMIT", 8, commit_request(group_id="a"))
            broker.stop_replication()
            deletion = broker.handle("DELETE_GROUPS", 2, DeleteGroupsRequest(groups_names=["a"]))
            listing = broker.handle("LIST_GROUPS", 4, ListGroupsRequest())
            assert listing.is_pending
            broker.runtime.set_leaderships(OFFSETS, 5, {})
            assert (await deletion()).results[0].error_code == ErrorCode.NOT_COORDINATOR
            answer = await listing()
            assert (answer.error_code, answer.groups) == (ErrorCode.NONE, [])

        run(main)

    def test_listing_that_is_refused_for_another_reason(self):
        async def main(broker):
            await broker.call("OFFSET_COMMIT", 8, commit_request(group_id="a"))
            broker.stop_replication()
            broker.handle("DELETE_GROUPS", 2, DeleteGroupsRequest(groups_names=["a"]))
            answer = await broker.call("LIST_GROUPS", 4, ListGroupsRequest())
            assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

        run(main)


class TestElsewhere:
    def test_groups_of_other_brokers(self):
        async def main(broker):
            broker.runtime.set_leaderships(OFFSETS, 5, {})
            answer = await broker.call("DESCRIBE_GROUPS", 6, DescribeGroupsRequest(groups=["g"]))
            assert answer.groups[0].error_code == ErrorCode.NOT_COORDINATOR
            answer = await broker.call("DELETE_GROUPS", 2, DeleteGroupsRequest(groups_names=["g"]))
            assert answer.results[0].error_code == ErrorCode.NOT_COORDINATOR
            answer = await broker.call("LIST_GROUPS", 5, ListGroupsRequest())
            assert (answer.error_code, answer.groups) == (ErrorCode.NONE, [])

        run(main)

    def test_listing_while_loading(self):
        async def main(broker):
            await stable_group(broker)
            broker.runtime.set_leaderships(OFFSETS, 5, {})
            broker.runtime.set_leaderships(OFFSETS, 5, broker.partitions)
            answer = await broker.call("LIST_GROUPS", 5, ListGroupsRequest())
            assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

        run(main)


def test_unexpected_failures_are_said_of_every_group():
    from kafkalite.api.describe_groups import refuse_delete, refuse_describe
    from kafkalite.wire.errors import KafkaError

    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "why")
    described = refuse_describe(DescribeGroupsRequest(groups=["a", "b"]), error, None)
    assert [g.error_code for g in described.groups] == [-1, -1]
    deleted = refuse_delete(DeleteGroupsRequest(groups_names=["a"]), error, None)
    assert [r.error_code for r in deleted.results] == [-1]
