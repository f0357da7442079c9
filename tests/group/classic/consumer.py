"""A consumer that keeps to the protocol, one step at a time, as client libraries do."""

from enum import Enum, auto

from kafkalite.wire.errors import ErrorCode
from tests.group.harness import Client

PARTITIONS = 6


class Doing(Enum):
    NOTHING = auto()
    JOINING = auto()
    SYNCING = auto()
    CONSUMING = auto()


class Consumer:
    """Joins, syncs, heartbeats; the leader spreads the partitions over the members."""

    def __init__(self, harness, client=None, *, version=9):
        self.harness = harness
        self.client = client or Client()
        self.version = version
        self.doing = Doing.NOTHING
        self.partitions = frozenset()
        self.fenced = False

    def step(self):
        """Do the next thing that is to be done; waiting is done by doing nothing."""
        if self.fenced:
            return
        {
            Doing.NOTHING: self.join,
            Doing.JOINING: self.look_at_join,
            Doing.SYNCING: self.look_at_sync,
            Doing.CONSUMING: self.heartbeat,
        }[self.doing]()

    def join(self):
        self.partitions = frozenset()
        self.doing = Doing.JOINING
        self.harness.join(self.client, version=self.version)

    def look_at_join(self):
        if self.harness.is_parked(self.client.join_ticket):
            return
        code = self.harness.code(self.client.join_ticket)
        if code is ErrorCode.NONE:
            self.harness.learn(self.client)
            self.doing = Doing.SYNCING
            self.harness.sync(self.client, self.assignments())
        else:
            self.begin_again(code)

    def look_at_sync(self):
        if self.harness.is_parked(self.client.sync_ticket):
            return
        code = self.harness.code(self.client.sync_ticket)
        if code is ErrorCode.NONE:
            self.client.assignment = self.harness.answer(self.client.sync_ticket).assignment
            self.partitions = frozenset(self.client.assignment)
            self.doing = Doing.CONSUMING
        else:
            self.begin_again(code)

    def heartbeat(self):
        code = self.harness.heartbeat(self.client)
        if code is not ErrorCode.NONE:
            self.begin_again(code)

    def commit(self):
        """Commit something; whether it is accepted is the coordinator's to say."""
        return self.harness.commit({("topic", 0): 1}, client=self.client)

    def begin_again(self, code):
        self.partitions = frozenset()
        self.doing = Doing.NOTHING
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.client.member_id = ""
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            self.fenced = True
        else:
            # Everything else is to be tried again with the same id.
            assert code in (
                ErrorCode.REBALANCE_IN_PROGRESS,
                ErrorCode.NOT_COORDINATOR,
                ErrorCode.NOT_ENOUGH_REPLICAS,
                ErrorCode.GROUP_MAX_SIZE_REACHED,
            ), code

    def assignments(self):
        members = self.client.members
        return {
            member: bytes(range(number, PARTITIONS, len(members)))
            for number, member in enumerate(members)
        }

    def moved_to(self, harness):
        """The coordinator has moved: what was parked is lost."""
        self.harness = harness
        if self.doing in (Doing.JOINING, Doing.SYNCING):
            self.begin_again(ErrorCode.NOT_COORDINATOR)


def run(consumers, harness, milliseconds, *, every=1000):
    """Let consumers do their steps for some virtual time."""
    for _ in range(milliseconds // every):
        for consumer in consumers:
            consumer.step()
            consumer.step()
        harness.advance(every)
