"""A group at two coordinators, and what is asked of both whatever its kind."""

from kafkalite.wire.messages.delete_groups import DeleteGroupsRequest
from kafkalite.wire.messages.list_groups import ListGroupsRequest
from kafkalite.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)


class GroupPair:
    """Both brokers and one group; what is sent goes to both, and the answers have to agree.

    Steps take the member that a script has chosen, which some of them do not look at.
    """

    def __init__(self, sides, name, rng):
        self.sides, self.name, self.rng = sides, name, rng
        self.topics = {}
        """How many partitions each has; the first is read by everybody."""

    @property
    def committed_to(self):
        """How many partitions each topic has that members commit offsets of."""
        return self.topics

    def both(self, name, version, build, shown):
        """Ask both; return Apache's answer.

        Args:
            name: of the API.
            version: of the request.
            build: the request, or a function that returns that to a side.
            shown: returns what has to be the same, of an answer and its side.
        """
        answers = [
            side.ask(name, version, build(side) if callable(build) else build)
            for side in self.sides
        ]
        apaches, ours = (
            shown(answer, side) for answer, side in zip(answers, self.sides, strict=True)
        )
        assert ours == apaches, f"{name}: Apache {apaches}, kafkalite {ours}"
        return answers[0]

    def commit_in_transaction(self, member):
        epoch = member.epoch + self.rng.choice([0, 0, -1, -1, -2, 1])
        member_id, epoch = self.rng.choice([(member.member_id, epoch)] * 4 + [("", -1), ("", 1)])
        name = self.rng.choice([*self.committed_to])
        chosen = self.rng.sample(range(self.committed_to[name]), 1)
        apaches, ours = (
            side.committer.codes(self.name, member_id, epoch, name, chosen) for side in self.sides
        )
        assert ours == apaches, f"TXN_OFFSET_COMMIT: Apache {apaches}, kafkalite {ours}"

    def list_by(self, states, types):
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        self.both(
            "LIST_GROUPS",
            5,
            request,
            lambda a, _: [
                (g.protocol_type, g.group_state, g.group_type)
                for g in a.groups
                if g.group_id == self.name
            ],
        )

    def delete_offsets(self, member):
        del member
        topic = OffsetDeleteRequestTopic(
            name=next(iter(self.topics)),
            partitions=[OffsetDeleteRequestPartition(partition_index=0)],
        )
        self.both(
            "OFFSET_DELETE",
            0,
            OffsetDeleteRequest(group_id=self.name, topics=[topic]),
            lambda a, _: (a.error_code, [p.error_code for t in a.topics for p in t.partitions]),
        )

    def delete(self, member):
        del member
        request = DeleteGroupsRequest(groups_names=[self.name])
        self.both("DELETE_GROUPS", 2, request, lambda a, _: [r.error_code for r in a.results])


def committed_codes(answer, _):
    return [(p.partition_index, p.error_code) for t in answer.topics for p in t.partitions]


def fetched_offsets(answer, _):
    return [
        (g.error_code, [(p.committed_offset, p.error_code) for t in g.topics for p in t.partitions])
        for g in answer.groups
    ]
