"""The table of states."""

from kafkalite.group.classic.states import LEGAL_PREDECESSORS, GroupState


def test_names_are_those_that_clients_know():
    """Rule 154."""
    assert {state.value for state in GroupState} == {
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "Dead",
    }


def test_every_state_says_who_may_come_before_and_what_it_answers():
    assert set(LEGAL_PREDECESSORS) == set(GroupState)
    for state, predecessors in LEGAL_PREDECESSORS.items():
        assert predecessors
        assert state not in predecessors


def test_a_rebalance_passes_through_both_phases():
    assert LEGAL_PREDECESSORS[GroupState.STABLE] == {GroupState.COMPLETING_REBALANCE}
    assert LEGAL_PREDECESSORS[GroupState.COMPLETING_REBALANCE] == {GroupState.PREPARING_REBALANCE}
