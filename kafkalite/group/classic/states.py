"""The states of a classic group, what each answers to every API, and which may follow which.

"Unknown", "fenced" and "generation" stand for the checks that come before the state is looked at:
UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID and ILLEGAL_GENERATION (rules 129, 140, 143, 145).
"""

from enum import Enum


class GroupState(Enum):
    """State of a classic group; values are the names that ListGroups and DescribeGroups show."""

    EMPTY = "Empty"
    """No members; perhaps ids that were handed out (rule 128), perhaps offsets.

    JoinGroup: a new member is added, then PREPARING_REBALANCE after the initial delay (rule 131);
    a known id is UNKNOWN_MEMBER_ID, unless it was handed out. SyncGroup, Heartbeat, LeaveGroup:
    UNKNOWN_MEMBER_ID. OffsetCommit: accepted with generation -1, otherwise UNKNOWN_MEMBER_ID.
    DeleteGroups: deleted. OffsetDelete: done.

    Exits: PREPARING_REBALANCE by a join; DEAD by DeleteGroups or when the last offset expires.
    """

    PREPARING_REBALANCE = "PreparingRebalance"
    """Waiting for the members to join the next generation.

    JoinGroup: parked until all have joined or the join timer fires (rules 131, 132). SyncGroup:
    REBALANCE_IN_PROGRESS. Heartbeat: REBALANCE_IN_PROGRESS, and the session goes on. LeaveGroup:
    removed; the phase may be complete now. OffsetCommit: accepted for the last generation
    (rule 146). DeleteGroups: NON_EMPTY_GROUP.

    Invariant: the join timer is set. Exits: COMPLETING_REBALANCE when it fires or all have joined;
    EMPTY if nobody is left.
    """

    COMPLETING_REBALANCE = "CompletingRebalance"
    """Waiting for the leader's assignment.

    JoinGroup: with unchanged metadata the generation's answer again (rule 135), otherwise a new
    rebalance. SyncGroup: parked; the leader's stores the assignment (rule 137). Heartbeat: NONE.
    LeaveGroup: a new rebalance. OffsetCommit: REBALANCE_IN_PROGRESS (rule 146). DeleteGroups:
    NON_EMPTY_GROUP.

    Invariant: the sync timer is set. Exits: STABLE by the leader's sync; PREPARING_REBALANCE by a
    join, a leave, an expired session or the sync timer.
    """

    STABLE = "Stable"
    """Everybody's assignment is in the log.

    JoinGroup: the leader's, or changed metadata, starts a rebalance; a follower's is answered with
    the current generation (rule 135); a static member with a new id takes the place of the old one
    (rule 143). SyncGroup: the assignment. Heartbeat: NONE. LeaveGroup: a rebalance. OffsetCommit:
    accepted. DeleteGroups: NON_EMPTY_GROUP. OffsetDelete: GROUP_SUBSCRIBED_TO_TOPIC for topics in
    use.

    Exits: PREPARING_REBALANCE.
    """

    DEAD = "Dead"
    """There is no such group: what DescribeGroups says of an unknown one up to v5 (rule 154).

    JoinGroup with an empty member id makes the group. Everything else: UNKNOWN_MEMBER_ID, or
    GROUP_ID_NOT_FOUND where the API has that. OffsetCommit: rule 145. OffsetFetch: no offsets.
    """


LEGAL_PREDECESSORS: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset({GroupState.EMPTY}),
}
"""Who may come before; a state is never entered from itself. Recovery restores EMPTY and STABLE
straight from the log, since the states between leave no record."""
