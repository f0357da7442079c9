"""The leader's decisions: high watermark, ISR, acknowledgement (rules 52 and 163-168, 176, 183)."""

import pytest

from kafkalite.isr.state import CommittedIsr, IsrChange, IsrMember, PendingExpand, PendingShrink
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.isr.leader_kit import LAG_MS, accept, fetch, make_leader


class TestHighWatermark:
    """Rule 167."""

    def test_it_is_the_least_log_end_in_the_isr(self):
        leader = make_leader()
        assert not fetch(leader, 2, 10)
        assert fetch(leader, 3, 8)
        assert leader.high_watermark == 8

    def test_it_waits_for_those_who_have_not_fetched_yet(self):
        leader = make_leader()
        fetch(leader, 2, 10)
        assert leader.high_watermark == 4

    def test_it_never_falls(self):
        leader = make_leader()
        fetch(leader, 2, 10)
        fetch(leader, 3, 10)
        fetch(leader, 3, 5)
        leader.on_append(12)
        assert leader.high_watermark == 10

    def test_a_leader_alone_in_its_isr_has_all_at_once(self):
        leader = make_leader(isr=(1,))
        assert leader.high_watermark == 10
        assert leader.on_append(12)
        assert leader.high_watermark == 12

    def test_it_stays_while_the_isr_is_too_small(self):
        """KAFKA-15583."""
        leader = make_leader(isr=(1,), min_insync_replicas=2)
        assert not leader.on_append(12)
        assert leader.high_watermark == 4

    def test_replicas_bound_the_minimum(self):
        leader = make_leader(replicas=(1, 2), isr=(1, 2), min_insync_replicas=3)
        leader.check_enough_replicas()
        assert leader.effective_min_isr == 2

    def test_it_waits_for_a_replica_that_is_about_to_join(self):
        leader = make_leader(isr=(1, 2))
        fetch(leader, 3, 10, now_ms=1)
        accept(leader, (1, 2))  # refused in effect; 3 is caught up, though
        leader.on_append(20)
        fetch(leader, 2, 20, now_ms=2)
        assert leader.high_watermark == 10
        assert leader.on_tick(LAG_MS + 2)
        assert leader.high_watermark == 20

    @pytest.mark.parametrize("eligible", [True, False])
    def test_it_does_not_wait_for_one_that_may_not_join(self, eligible):
        """Rule 183."""
        leader = make_leader(isr=(1, 2), is_eligible=lambda broker, epoch: eligible)
        fetch(leader, 3, 10)
        leader.on_append(20)
        fetch(leader, 2, 20)
        assert leader.high_watermark == (10 if eligible else 20)


class TestExpanding:
    """Rule 166."""

    def test_follower_that_has_caught_up_is_proposed(self):
        leader = make_leader(isr=(1, 2))
        fetch(leader, 3, 10, epoch=33)
        fetch(leader, 2, 10, epoch=22)
        assert leader.take_isr_change() == IsrChange(
            leader_epoch=5,
            partition_epoch=7,
            isr=(IsrMember(1, -1), IsrMember(2, -1), IsrMember(3, 33)),
        )
        assert leader.take_isr_change() is None
        assert leader.state.isr == (1, 2)
        assert leader.state.maximal_isr == (1, 2, 3)

    @pytest.mark.parametrize(
        ("offset", "high_watermark", "proposed"),
        [(9, 10, False), (9, 4, False), (10, 10, True), (3, 4, False)],
    )
    def test_it_needs_what_is_committed_and_what_is_older_than_the_epoch(
        self, offset, high_watermark, proposed
    ):
        leader = make_leader(isr=(1, 2), high_watermark=high_watermark)
        fetch(leader, 3, offset)
        assert leader.has_proposal is proposed

    def test_epoch_start_is_enough_in_a_long_reign(self):
        leader = make_leader(isr=(1, 2))
        leader.on_append(50)
        fetch(leader, 3, 10)
        assert leader.has_proposal

    def test_shutting_down_broker_is_not_let_in(self):
        """Rule 183."""
        leader = make_leader(isr=(1, 2), is_eligible=lambda broker, epoch: broker != 3)
        fetch(leader, 3, 10)
        assert not leader.has_proposal

    def test_eligibility_is_that_of_the_broker_epoch_it_fetches_in(self):
        """KIP-903."""
        leader = make_leader(isr=(1, 2), is_eligible=lambda broker, epoch: epoch == 9)
        fetch(leader, 3, 10, epoch=8)
        assert not leader.has_proposal
        fetch(leader, 3, 10, epoch=9)
        assert leader.has_proposal

    def test_one_change_at_a_time(self):
        leader = make_leader(isr=(1,))
        fetch(leader, 2, 10)
        fetch(leader, 3, 10)
        assert leader.state == PendingExpand(CommittedIsr((1,)), 2)
        accept(leader, (1, 2))
        fetch(leader, 3, 10)
        assert leader.state == PendingExpand(CommittedIsr((1, 2)), 3)

    def test_pending_member_does_not_count_for_acks(self):
        """Rule 168."""
        leader = make_leader(isr=(1,), min_insync_replicas=2)
        fetch(leader, 2, 10)
        with pytest.raises(KafkaError, match=r"1 in-sync replicas \[1\]") as refused:
            leader.check_enough_replicas()
        assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
        assert accept(leader, (1, 2))
        leader.check_enough_replicas()
        assert leader.high_watermark == 10


class TestShrinking:
    """Rule 165."""

    def test_follower_that_lags_is_proposed_to_go(self):
        leader = make_leader()
        fetch(leader, 2, 10)
        leader.on_tick(LAG_MS)
        assert not leader.has_proposal
        leader.on_tick(LAG_MS + 1)
        assert leader.state == PendingShrink(CommittedIsr((1, 2, 3)), (3,))

    def test_follower_that_has_all_may_be_silent(self):
        leader = make_leader()
        fetch(leader, 2, 10)
        fetch(leader, 3, 10)
        leader.on_tick(10 * LAG_MS)
        assert not leader.has_proposal

    def test_follower_that_always_has_what_was_there_a_fetch_ago_is_caught_up(self):
        """Rule 164."""
        leader = make_leader()
        end = 10
        for now_ms in range(0, 5 * LAG_MS, 100):
            fetch(leader, 2, end, now_ms=now_ms)
            fetch(leader, 3, end, now_ms=now_ms)
            leader.on_append(end + 5)
            end += 5
        leader.on_tick(5 * LAG_MS)
        assert not leader.has_proposal

    def test_it_counts_until_the_controller_has_put_it_out(self):
        """Rule 168."""
        leader = make_leader()
        fetch(leader, 2, 10)
        leader.on_tick(LAG_MS + 1)
        assert leader.high_watermark == 4
        assert accept(leader, (1, 2))
        assert leader.high_watermark == 10

    def test_all_laggards_go_at_once(self):
        leader = make_leader()
        leader.on_tick(LAG_MS + 1)
        assert leader.take_isr_change().isr == (IsrMember(1, -1),)


class TestAnswers:
    """Rule 176."""

    @pytest.fixture
    def pending(self):
        leader = make_leader(isr=(1, 2))
        fetch(leader, 3, 10)
        self.proposal = leader.take_isr_change()
        return leader

    @pytest.mark.parametrize(
        "code", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA]
    )
    def test_what_was_surely_not_done_is_taken_back(self, pending, code):
        pending.on_isr_rejected(self.proposal, code)
        assert pending.state == CommittedIsr((1, 2))
        assert not pending.has_proposal

    @pytest.mark.parametrize(
        "code",
        [
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.INVALID_UPDATE_VERSION,
            ErrorCode.NEW_LEADER_ELECTED,
            ErrorCode.UNKNOWN_TOPIC_ID,
        ],
    )
    def test_after_a_final_refusal_the_larger_set_counts_until_news_come(self, pending, code):
        pending.on_isr_rejected(self.proposal, code)
        assert pending.state.maximal_isr == (1, 2, 3)
        assert not pending.has_proposal
        pending.on_state(
            replicas=(1, 2, 3), isr=(1, 2), leader_epoch=5, partition_epoch=8, now_ms=0
        )
        assert pending.state == CommittedIsr((1, 2))

    def test_what_became_of_it_is_unknown_so_it_is_asked_again(self, pending):
        pending.on_isr_rejected(self.proposal, ErrorCode.NETWORK_EXCEPTION)
        assert pending.take_isr_change() == self.proposal
        assert pending.state.maximal_isr == (1, 2, 3)

    def test_answers_to_what_is_settled_mean_nothing(self, pending):
        accept(pending, (1, 2, 3))
        pending.on_isr_rejected(self.proposal, ErrorCode.NETWORK_EXCEPTION)
        assert pending.state == CommittedIsr((1, 2, 3))
        assert not pending.has_proposal
        assert not accept(pending, (1,), partition_epoch=7)
        assert not pending.on_isr_accepted(leader_epoch=4, partition_epoch=99, isr=(1,))
        assert pending.state == CommittedIsr((1, 2, 3))

    def test_answer_to_another_change_of_the_same_version_means_nothing(self, pending):
        pending.on_isr_rejected(self.proposal, ErrorCode.INELIGIBLE_REPLICA)
        fetch(pending, 3, 10, now_ms=5)
        pending.take_isr_change()
        other = IsrChange(leader_epoch=5, partition_epoch=7, isr=(IsrMember(1, -1),))
        pending.on_isr_rejected(other, ErrorCode.INELIGIBLE_REPLICA)
        assert pending.state.maximal_isr == (1, 2, 3)


class TestResigning:
    """Rule 185: a leader that cannot write has another one lead."""

    def test_it_asks_for_an_isr_without_itself(self):
        leader = make_leader()
        fetch(leader, 2, 10, epoch=22)
        leader.step_down()
        assert leader.take_isr_change() == IsrChange(
            leader_epoch=5, partition_epoch=7, isr=(IsrMember(2, 22), IsrMember(3, -1))
        )
        assert leader.state == PendingShrink(CommittedIsr((1, 2, 3)), (1,))
        leader.step_down()
        assert not leader.has_proposal

    def test_the_high_watermark_goes_on_waiting_for_all(self):
        leader = make_leader()
        fetch(leader, 2, 10)
        leader.step_down()
        assert leader.high_watermark == 4
        fetch(leader, 3, 10)
        assert leader.high_watermark == 10

    def test_alone_in_the_isr_it_stays(self):
        leader = make_leader(isr=(1,))
        leader.step_down()
        assert leader.state == CommittedIsr((1,))
        assert not leader.has_proposal

    @pytest.mark.parametrize(
        ("isr", "is_lost", "others"),
        [
            ((1, 2, 3), False, (2, 3)),
            ((1, 2), False, None),
            ((1, 2), True, (2,)),
        ],
    )
    def test_what_can_be_read_is_not_left_to_too_few(self, isr, is_lost, others):
        """The other one was dead, and had lost what only it and the leader had: seed 382."""
        leader = make_leader(isr=isr, min_insync_replicas=2)
        leader.step_down(is_lost=is_lost)
        proposal = leader.take_isr_change()
        assert (proposal and tuple(member.broker_id for member in proposal.isr)) == others

    def test_it_has_resigned_when_another_leader_is_elected(self):
        leader = make_leader()
        leader.step_down()
        leader.on_isr_rejected(leader.take_isr_change(), ErrorCode.NEW_LEADER_ELECTED)
        leader.step_down()
        assert not leader.has_proposal

    def test_it_goes_on_where_nobody_can_lead_and_may_ask_again(self):
        leader = make_leader()
        leader.step_down()
        leader.on_isr_rejected(leader.take_isr_change(), ErrorCode.INELIGIBLE_REPLICA)
        assert leader.state == CommittedIsr((1, 2, 3))
        assert not leader.has_proposal
        leader.step_down()
        assert leader.has_proposal

    @pytest.mark.parametrize("accepted", [True, False])
    def test_a_change_under_way_is_waited_for(self, accepted):
        leader = make_leader(isr=(1, 2))
        fetch(leader, 3, 10)
        expand = leader.take_isr_change()
        leader.step_down()
        assert not leader.has_proposal
        if accepted:
            accept(leader, (1, 2, 3))
        else:
            leader.on_isr_rejected(expand, ErrorCode.INELIGIBLE_REPLICA)
        assert leader.state.proposed_isr == ((2, 3) if accepted else (2,))
        assert leader.has_proposal

    def test_it_stays_if_it_could_write_meanwhile(self):
        leader = make_leader(isr=(1, 2))
        fetch(leader, 3, 10)
        leader.take_isr_change()
        leader.step_down()
        leader.on_append(11)
        accept(leader, (1, 2, 3))
        assert leader.state == CommittedIsr((1, 2, 3))


class TestStates:
    def test_older_state_is_ignored(self):
        leader = make_leader()
        for leader_epoch, partition_epoch in [(4, 9), (5, 6)]:
            leader.on_state(
                replicas=(1,),
                isr=(1,),
                leader_epoch=leader_epoch,
                partition_epoch=partition_epoch,
                now_ms=0,
            )
        assert (leader.replicas, leader.state.isr) == ((1, 2, 3), (1, 2, 3))

    def test_answer_that_comes_after_the_metadata_does_not_end_the_next_proposal(self):
        leader = make_leader(isr=(1, 2))
        fetch(leader, 3, 10, epoch=33)
        leader.take_isr_change()
        leader.on_state(
            replicas=(1, 2, 3), isr=(1, 2, 3), leader_epoch=5, partition_epoch=8, now_ms=0
        )
        leader.on_append(20)
        fetch(leader, 3, 20)
        leader.on_tick(LAG_MS + 1)
        accept(leader, (1, 2, 3), partition_epoch=8)
        assert isinstance(leader.state, PendingShrink)
        assert leader.take_isr_change() is not None

    def test_late_answer_does_not_end_a_proposal_that_is_under_way(self):
        """Or the high watermark passes who may be in the ISR already: simulated, seed 8147."""
        leader = make_leader(isr=(1, 2))
        fetch(leader, 2, 10)
        fetch(leader, 3, 10, epoch=33)
        leader.take_isr_change()
        leader.on_state(replicas=(1, 2, 3), isr=(1, 2), leader_epoch=5, partition_epoch=8, now_ms=0)
        fetch(leader, 3, 10, epoch=33)
        assert leader.take_isr_change() is not None
        accept(leader, (1, 2), partition_epoch=8)
        assert isinstance(leader.state, PendingExpand)
        assert leader.state.maximal_isr == (1, 2, 3)

    def test_same_state_does_not_end_a_proposal(self):
        leader = make_leader(isr=(1, 2))
        fetch(leader, 3, 10)
        leader.on_state(replicas=(1, 2, 3), isr=(1, 2), leader_epoch=5, partition_epoch=7, now_ms=0)
        assert isinstance(leader.state, PendingExpand)

    def test_what_followers_have_is_unknown_after_a_reign_that_was_missed(self):
        """They may have been cut to the log of whoever led in epoch 6."""
        leader = make_leader(isr=(1, 2, 3))
        fetch(leader, 3, 10)
        leader.on_state(
            replicas=(1, 2, 3), isr=(1, 2, 3), leader_epoch=7, partition_epoch=9, now_ms=0
        )
        assert not fetch(leader, 2, 10)
        assert leader.high_watermark == 4

    def test_next_reign_begins_at_the_log_end_and_keeps_progress(self):
        leader = make_leader()
        fetch(leader, 2, 10)
        leader.on_append(20)
        leader.on_state(
            replicas=(1, 2, 4), isr=(1, 2), leader_epoch=6, partition_epoch=8, now_ms=50
        )
        assert leader.epoch_start_offset == 20
        assert sorted(leader.followers) == [2, 4]
        assert leader.followers[2].log_end_offset == 10
        assert leader.high_watermark == 10
        leader.on_tick(50 + LAG_MS)
        assert not leader.has_proposal

    def test_fetch_of_one_that_is_no_replica_is_refused(self):
        with pytest.raises(KafkaError) as refused:
            fetch(make_leader(), 9, 10)
        assert refused.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH

    def test_fetch_from_an_earlier_life_of_a_broker_is_refused(self):
        """KIP-903."""
        leader = make_leader()
        fetch(leader, 2, 3, epoch=9)
        with pytest.raises(KafkaError) as refused:
            fetch(leader, 2, 10, epoch=8)
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert leader.followers[2].log_end_offset == 3

    def test_low_watermark_is_that_of_the_living(self):
        """Rule 35."""
        leader = make_leader()
        assert leader.low_watermark(7, lambda broker: True) == -1
        fetch(leader, 2, 10, start=5)
        assert leader.low_watermark(7, lambda broker: broker == 2) == 5
        assert leader.low_watermark(7, lambda broker: False) == 7
