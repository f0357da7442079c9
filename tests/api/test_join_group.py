"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup over the wire, in every version."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.heartbeat import HeartbeatRequest
from kafkalite.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkalite.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkalite.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.api.group_context import OFFSETS, run
from tests.group.harness import subscription


def join_request(**changes):
    values = {
        "group_id": "g",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=subscription("topic"))],
        **changes,
    }
    return JoinGroupRequest(**values)


def sync_request(member, generation=1, assignment=b"all", **changes):
    assignments = [SyncGroupRequestAssignment(member_id=member, assignment=assignment)]
    return SyncGroupRequest(
        **{
            "group_id": "g",
            "member_id": member,
            "generation_id": generation,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": assignments,
            **changes,
        }
    )


async def join(broker, version=9, **changes):
    answer = await broker.call("JOIN_GROUP", version, join_request(**changes))
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        changes["member_id"] = answer.member_id
        answer = await broker.call("JOIN_GROUP", version, join_request(**changes))
    return answer


@pytest.mark.parametrize("version", range(10))
def test_a_members_life_in_every_version(version):
    """The four APIs side by side, each at its newest version that is no newer."""

    async def main(broker):
        answer = await join(broker, version)
        assert answer.error_code == ErrorCode.NONE
        assert answer.generation_id == 1
        assert answer.leader == answer.member_id
        assert answer.member_id.startswith("reader-")
        assert answer.protocol_name == "range"
        assert answer.protocol_type == ("consumer" if version >= 7 else None)
        assert [m.member_id for m in answer.members] == [answer.member_id]
        member = answer.member_id

        answer = await broker.call("SYNC_GROUP", min(version, 5), sync_request(member))
        assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"all")
        assert answer.protocol_name == ("range" if version >= 5 else None)

        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)
        answer = await broker.call("HEARTBEAT", min(version, 4), beat)
        assert answer.error_code == ErrorCode.NONE

        leave = LeaveGroupRequest(group_id="g", member_id=member)
        if version >= 3:
            leave = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member)])
        answer = await broker.call("LEAVE_GROUP", min(version, 5), leave)
        assert answer.error_code == ErrorCode.NONE
        assert [m.member_id for m in answer.members] == ([member] if version >= 3 else [])
        answer = await broker.call("HEARTBEAT", min(version, 4), beat)
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    run(main)


@pytest.mark.parametrize("version", [5, 9])
def test_static_members(version):
    """KIP-345."""

    async def main(broker):
        first = await broker.call("JOIN_GROUP", version, join_request(group_instance_id="i"))
        assert first.error_code == ErrorCode.NONE
        assert first.members[0].group_instance_id == "i"
        await broker.call("SYNC_GROUP", 5, sync_request(first.member_id, group_instance_id="i"))
        second = await broker.call("JOIN_GROUP", version, join_request(group_instance_id="i"))
        assert second.generation_id == 1
        assert second.skip_assignment == (version == 9)
        beat = HeartbeatRequest(
            group_id="g", generation_id=1, member_id=first.member_id, group_instance_id="i"
        )
        answer = await broker.call("HEARTBEAT", 4, beat)
        assert answer.error_code == ErrorCode.FENCED_INSTANCE_ID

    run(main)


class TestParkedRequests:
    def test_second_member_waits_for_the_first_one_to_rejoin(self):
        async def main(broker):
            first = await join(broker)
            answers = []

            async def second():
                answers.append(await join(broker))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(second)
                await wait_all_tasks_blocked()
                assert answers == []
                again = await broker.call("JOIN_GROUP", 9, join_request(member_id=first.member_id))
            assert again.generation_id == answers[0].generation_id == 2
            assert len(again.members) == 2

        run(main)

    def test_assignment_waits_for_the_log_to_be_replicated(self):
        """Rule 137."""

        async def main(broker):
            answer = await join(broker)
            broker.stop_replication()
            sync = broker.handle("SYNC_GROUP", 5, sync_request(answer.member_id))
            assert sync.is_pending
            await broker.replicate()
            assert (await sync()).assignment == b"all"

        run(main)

    def test_coordinator_that_moves_says_so_to_everybody(self):
        async def main(broker):
            first = await join(broker)
            parked = broker.handle("JOIN_GROUP", 2, join_request())
            assert parked.is_pending
            broker.runtime.set_leaderships(OFFSETS, 5, {})
            assert (await parked()).error_code == ErrorCode.NOT_COORDINATOR
            answer = await broker.call("SYNC_GROUP", 5, sync_request(first.member_id))
            assert answer.error_code == ErrorCode.NOT_COORDINATOR

        run(main)

    def test_client_that_goes_away_leaves_its_member_until_the_session_ends(self):
        async def main(broker):
            with trio.move_on_after(1):
                await join(broker)
                await join(broker)  # parked until the first one rejoins
            (slot,) = [s for s in broker.runtime._slots[OFFSETS].values() if s.core.groups]
            assert slot.waiting == {}
            assert len(slot.core.groups["g"].members) == 2

        run(main)


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "version", "request_"),
        [
            ("JOIN_GROUP", 9, join_request(group_id="")),
            ("SYNC_GROUP", 5, sync_request("m", group_id="")),
            ("HEARTBEAT", 4, HeartbeatRequest()),
            ("LEAVE_GROUP", 5, LeaveGroupRequest()),
        ],
    )
    def test_empty_group_id(self, name, version, request_):
        """Rule 126."""

        async def main(broker):
            answer = await broker.call(name, version, request_)
            assert answer.error_code == ErrorCode.INVALID_GROUP_ID

        run(main)

    @pytest.mark.parametrize(("version", "protocol"), [(6, ""), (7, None)])
    def test_refused_join_names_the_member_and_no_protocol(self, version, protocol):
        async def main(broker):
            answer = await broker.call("JOIN_GROUP", version, join_request(member_id="x"))
            assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
            assert (answer.member_id, answer.protocol_name) == ("x", protocol)
            assert (answer.generation_id, answer.leader) == (-1, "")

        run(main)

    @pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
    def test_sync_without_a_protocol(self, missing):
        """Rule 139: from v5."""

        async def main(broker):
            member = (await join(broker)).member_id
            request = sync_request(member, **{missing: None})
            answer = await broker.call("SYNC_GROUP", 5, request)
            assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            answer = await broker.call("SYNC_GROUP", 4, request)
            assert answer.error_code == ErrorCode.NONE

        run(main)

    @pytest.mark.parametrize(("version", "top_level"), [(2, True), (3, False), (5, False)])
    def test_leaving_an_unknown_group(self, version, top_level):
        async def main(broker):
            request = LeaveGroupRequest(
                group_id="g", member_id="m", members=[MemberIdentity(member_id="m")]
            )
            answer = await broker.call("LEAVE_GROUP", version, request)
            if top_level:
                assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
            else:
                assert answer.error_code == ErrorCode.NONE
                assert answer.members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID

        run(main)

    def test_leaving_where_nobody_coordinates(self):
        async def main(broker):
            broker.runtime.set_leaderships(OFFSETS, 5, {})
            request = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")])
            answer = await broker.call("LEAVE_GROUP", 5, request)
            assert (answer.error_code, answer.members) == (ErrorCode.NOT_COORDINATOR, [])

        run(main)

    def test_group_too_large_for_the_log_is_a_server_error(self):
        async def main(broker):
            member = (await join(broker)).member_id
            broker.refuse_appends(ErrorCode.MESSAGE_TOO_LARGE)
            answer = await broker.call("SYNC_GROUP", 5, sync_request(member))
            assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR

        run(main)


def test_answers_while_the_coordinator_loads():
    """Rule 125."""

    async def main(broker):
        member = (await join(broker)).member_id
        await broker.call("SYNC_GROUP", 5, sync_request(member))
        broker.runtime.set_leaderships(OFFSETS, 5, {})
        broker.runtime.set_leaderships(OFFSETS, 5, broker.partitions)
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)
        answer = await broker.call("HEARTBEAT", 4, beat)
        assert answer.error_code == ErrorCode.NONE
        answer = await broker.call("SYNC_GROUP", 5, sync_request(member))
        assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        answer = await broker.call("JOIN_GROUP", 9, join_request(member_id=member))
        assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await wait_all_tasks_blocked()
        answer = await broker.call("SYNC_GROUP", 5, sync_request(member))
        assert answer.assignment == b"all"

    run(main)


def test_member_goes_with_its_connection_in_profile_test():
    async def main(broker):
        member = (await join(broker)).member_id
        broker.runtime.on_disconnect(broker.context.connection_id)
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)
        answer = await broker.call("HEARTBEAT", 4, beat)
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    run(main, evict_on_disconnect=True)
