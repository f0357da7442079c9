"""OffsetCommit, OffsetFetch, OffsetDelete over the wire, in every version."""

from uuid import UUID

import pytest

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkalite.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkalite.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.api.group_context import OFFSETS, codes, run, topic_image

TOPIC_ID = UUID(int=7)
UNKNOWN_ID = UUID(int=12345)


def commit_request(*partitions, group_id="g", topic="topic", topic_id=TOPIC_ID, **changes):
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=40 + index,
                        committed_leader_epoch=3,
                        committed_metadata="m",
                    )
                    for index in partitions or (0,)
                ],
            )
        ],
        **changes,
    )


def fetch_request(version, *, group_id="g", topics=(("topic", TOPIC_ID, (0, 1)),), **changes):
    if version < 8:
        wanted = None
        if topics is not None:
            wanted = [
                OffsetFetchRequestTopic(name=name, partition_indexes=[*indexes])
                for name, _, indexes in topics
            ]
        return OffsetFetchRequest(group_id=group_id, topics=wanted, **changes)
    wanted = None
    if topics is not None:
        wanted = [
            OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=[*indexes])
            for name, topic_id, indexes in topics
        ]
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=wanted)], **changes
    )


def group_of(answer, version):
    return answer.groups[0] if version >= 8 else answer


def only(answer):
    return set(codes(answer.topics).values())


class TestCommit:
    @pytest.mark.parametrize("version", range(2, 11))
    def test_every_version(self, version):
        async def main(broker):
            answer = await broker.call("OFFSET_COMMIT", version, commit_request(0, 1))
            (topic,) = answer.topics
            assert topic.name == ("topic" if version < 10 else "")
            assert topic.topic_id == (TOPIC_ID if version >= 10 else UUID(int=0))
            assert [p.error_code for p in topic.partitions] == [ErrorCode.NONE] * 2
            fetched = await broker.call("OFFSET_FETCH", 9, fetch_request(9))
            partition = fetched.groups[0].topics[0].partitions[1]
            assert partition.committed_offset == 41
            assert partition.committed_leader_epoch == (3 if version >= 6 else -1)
            assert partition.metadata == "m"

        run(main)

    @pytest.mark.parametrize("version", [2, 9])
    def test_unknown_topics_and_partitions_are_refused_by_themselves(self, version):
        """Rule 147."""

        async def main(broker):
            request = commit_request(0, 3, -1)
            request.topics += commit_request(0, topic="unknown").topics
            request.topics += commit_request(0, 7, topic="other").topics
            request.topics += commit_request(5, topic="other").topics
            answer = await broker.call("OFFSET_COMMIT", version, request)
            assert codes(answer.topics) == {
                ("topic", 0): ErrorCode.NONE,
                ("topic", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ("topic", -1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ("unknown", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ("other", 0): ErrorCode.NONE,
                ("other", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ("other", 5): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }

        run(main)

    def test_nothing_but_unknown_topics_asks_no_coordinator(self):
        async def main(broker):
            broker.runtime.set_leaderships(OFFSETS, 5, {})
            answer = await broker.call("OFFSET_COMMIT", 8, commit_request(topic="unknown"))
            assert only(answer) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

        run(main)

    def test_unknown_topic_id(self):
        async def main(broker):
            request = commit_request(topic_id=UNKNOWN_ID)
            request.topics += commit_request(0).topics
            answer = await broker.call("OFFSET_COMMIT", 10, request)
            assert {t.topic_id: t.partitions[0].error_code for t in answer.topics} == {
                TOPIC_ID: ErrorCode.NONE,
                UNKNOWN_ID: ErrorCode.UNKNOWN_TOPIC_ID,
            }

        run(main)

    def test_no_topics_at_all(self):
        async def main(broker):
            answer = await broker.call("OFFSET_COMMIT", 8, OffsetCommitRequest(group_id="g"))
            assert answer.topics == []

        run(main)

    @pytest.mark.parametrize(
        ("refusal", "told"),
        [
            (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
            (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
            (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        ],
    )
    def test_refused_append(self, refusal, told):
        """Rule 148."""

        async def main(broker):
            broker.refuse_appends(refusal)
            answer = await broker.call("OFFSET_COMMIT", 8, commit_request(0, 1))
            assert codes(answer.topics) == {("topic", 0): told, ("topic", 1): told}

        run(main)

    def test_refusal_covers_every_partition_of_the_request(self):
        async def main(broker):
            broker.refuse_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
            answer = await broker.call("OFFSET_COMMIT", 8, commit_request(0, 9))
            assert set(codes(answer.topics)) == {("topic", 0), ("topic", 9)}

        run(main)

    def test_answer_waits_for_replication(self):
        """Rule 148."""

        async def main(broker):
            broker.stop_replication()
            commit = broker.handle("OFFSET_COMMIT", 8, commit_request(0, 9))
            assert commit.is_pending
            await broker.replicate()
            assert codes((await commit()).topics)["topic", 0] is ErrorCode.NONE

        run(main)

    def test_not_replicated_in_time(self):
        async def main(broker):
            broker.stop_replication()
            answer = await broker.call("OFFSET_COMMIT", 8, commit_request(0))
            assert only(answer) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}

        run(main)


class TestFetch:
    @pytest.mark.parametrize("version", range(1, 11))
    def test_every_version(self, version):
        async def main(broker):
            await broker.call("OFFSET_COMMIT", 8, commit_request(0))
            answer = await broker.call("OFFSET_FETCH", version, fetch_request(version))
            group = group_of(answer, version)
            assert group.error_code == ErrorCode.NONE
            there, missing = group.topics[0].partitions
            assert (there.committed_offset, there.metadata) == (40, "m")
            assert there.committed_leader_epoch == (3 if version >= 5 else -1)
            assert (missing.committed_offset, missing.metadata) == (-1, "")
            assert missing.error_code == ErrorCode.NONE
            if version >= 10:
                assert group.topics[0].topic_id == TOPIC_ID

        run(main)

    @pytest.mark.parametrize("version", range(2, 11))
    def test_all_topics(self, version):
        """Rule 150."""

        async def main(broker):
            await broker.call("OFFSET_COMMIT", 8, commit_request(0, 1))
            answer = await broker.call("OFFSET_FETCH", version, fetch_request(version, topics=None))
            (topic,) = group_of(answer, version).topics
            assert [p.partition_index for p in topic.partitions] == [0, 1]
            if version >= 10:
                assert topic.topic_id == TOPIC_ID

        run(main)

    def test_all_topics_by_id_leave_out_those_that_are_gone(self):
        async def main(broker):
            broker.metadata.add(topic_image("brief", 9, 1))
            await broker.call("OFFSET_COMMIT", 8, commit_request(topic="brief"))
            await broker.call("OFFSET_COMMIT", 8, commit_request())
            del broker.metadata.image.topics["brief"]
            answer = await broker.call("OFFSET_FETCH", 10, fetch_request(10, topics=None))
            assert [topic.topic_id for topic in answer.groups[0].topics] == [TOPIC_ID]

        run(main)

    def test_unknown_topic_id(self):
        async def main(broker):
            topics = [("", TOPIC_ID, (0,)), ("", UNKNOWN_ID, (0,))]
            answer = await broker.call("OFFSET_FETCH", 10, fetch_request(10, topics=topics))
            found = {t.topic_id: t.partitions[0] for t in answer.groups[0].topics}
            assert found[TOPIC_ID].error_code == ErrorCode.NONE
            assert found[UNKNOWN_ID].error_code == ErrorCode.UNKNOWN_TOPIC_ID
            assert found[UNKNOWN_ID].committed_offset == -1

        run(main)

    @pytest.mark.parametrize("version", [8, 9])
    def test_several_groups(self, version):
        """KIP-709."""

        async def main(broker):
            await broker.call("OFFSET_COMMIT", 8, commit_request(0, group_id="a"))
            request = fetch_request(version, group_id="a")
            request.groups += fetch_request(version, group_id="b").groups
            answer = await broker.call("OFFSET_FETCH", version, request)
            assert [(g.group_id, g.topics[0].partitions[0].committed_offset)
                    for g in answer.groups] == [("a", 40), ("b", -1)]  # fmt: skip

        run(main)

    @pytest.mark.parametrize("version", [1, 2, 7, 8, 10])
    def test_refusal_is_where_the_version_has_it(self, version):
        async def main(broker):
            broker.runtime.set_leaderships(OFFSETS, 5, {})
            answer = await broker.call("OFFSET_FETCH", version, fetch_request(version))
            group = group_of(answer, version)
            if version == 1:
                assert only(group) == {ErrorCode.NOT_COORDINATOR}
            else:
                assert (group.error_code, group.topics) == (ErrorCode.NOT_COORDINATOR, [])

        run(main)

    def test_read_that_waits_too_long_sends_the_client_to_look_again(self):
        """Consumers before 3.9 do not know COORDINATOR_NOT_AVAILABLE here."""

        async def main(broker):
            broker.stop_replication()
            broker.handle("OFFSET_COMMIT", 8, commit_request(0))
            answer = await broker.call("OFFSET_FETCH", 10, fetch_request(10))
            assert answer.groups[0].error_code == ErrorCode.NOT_COORDINATOR

        run(main)

    def test_read_behind_a_write_sees_it(self):
        async def main(broker):
            broker.stop_replication()
            broker.handle("OFFSET_COMMIT", 8, commit_request(0))
            fetch = broker.handle("OFFSET_FETCH", 10, fetch_request(10))
            assert fetch.is_pending
            await broker.replicate()
            answer = await fetch()
            assert answer.groups[0].topics[0].partitions[0].committed_offset == 40

        run(main)

    @pytest.mark.parametrize("version", [1, 9])
    def test_unexpected_failures_are_said_of_every_group(self, version):
        from kafkalite.wire.errors import KafkaError
        from tests.api.group_context import HANDLERS

        async def main(broker):
            broker.context.api_version = version
            error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            refuse = HANDLERS["OFFSET_FETCH"].refuse
            answer = refuse(fetch_request(version), error, broker.context)
            assert group_of(answer, version).error_code == -1

        run(main)


class TestDelete:
    def delete_request(self, *partitions, group_id="g"):
        return OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                    ],
                )
                for topic, indexes in partitions
            ],
        )

    def test_offsets_are_gone_and_the_unknown_is_refused(self):
        """Rule 153."""

        async def main(broker):
            await broker.call("OFFSET_COMMIT", 8, commit_request(0, 1))
            request = self.delete_request(("topic", (0, 9)), ("unknown", (0,)))
            answer = await broker.call("OFFSET_DELETE", 0, request)
            assert answer.error_code == ErrorCode.NONE
            assert codes(answer.topics) == {
                ("topic", 0): ErrorCode.NONE,
                ("topic", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ("unknown", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }
            fetched = await broker.call("OFFSET_FETCH", 8, fetch_request(8, topics=None))
            assert [p.partition_index for p in fetched.groups[0].topics[0].partitions] == [1]

        run(main)

    @pytest.mark.parametrize(
        ("group_id", "code"),
        [("", ErrorCode.INVALID_GROUP_ID), ("unknown", ErrorCode.GROUP_ID_NOT_FOUND)],
    )
    def test_refusals(self, group_id, code):
        async def main(broker):
            request = self.delete_request(("topic", (0,)), group_id=group_id)
            answer = await broker.call("OFFSET_DELETE", 0, request)
            assert answer.error_code == code

        run(main)
