"""How a member comes to its target, one heartbeat after another (rule 484).

After the cases of Kafka's CurrentAssignmentBuilderTest, by process ids.
"""

from dataclasses import replace

import pytest

from kafkalite.group.streams.member import (
    MemberState,
    StreamsMember,
    TaskHolders,
    reconcile,
)
from kafkalite.group.streams.tasks import HOLDS_NOTHING, NO_TASKS, HeldTasks, TaskId, Tasks
from kafkalite.wire.errors import ErrorCode, KafkaError

EPOCH = 10
STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_TASKS
UNRELEASED = MemberState.UNRELEASED_TASKS


def ids(text):
    """Tasks in words: "0_1 0_2"."""
    return frozenset(
        TaskId(name, int(number)) for name, _, number in (t.partition("_") for t in text.split())
    )


def tasks(active="", standby="", warmup=""):
    return Tasks(active=ids(active), standby=ids(standby), warmup=ids(warmup))


def held(active="", standby="", warmup="", *, since=EPOCH):
    """Held tasks; "0_1@7" was given at epoch 7."""
    epochs = {}
    for text in active.split():
        name, _, epoch = text.partition("@")
        (task,) = ids(name)
        epochs[task] = int(epoch) if epoch else since
    return HeldTasks(active=epochs, standby=ids(standby), warmup=ids(warmup))


def member(
    *,
    state=STABLE,
    assigned=HOLDS_NOTHING,
    revoked=HOLDS_NOTHING,
    epoch=EPOCH,
    process="p",
    member_id="m",
):
    return StreamsMember(
        member_id=member_id,
        process_id=process,
        member_epoch=epoch,
        previous_member_epoch=epoch - 1,
        state=state,
        assigned=assigned,
        pending_revocation=revoked,
    )


def step(before, target, *, epoch=EPOCH + 1, owned=None, others=()):
    holders = TaskHolders()
    for each in (before, *others):
        holders.add(each)
    return reconcile(before, target_epoch=epoch, target=target, owned=owned, holders=holders)


def other(assigned=HOLDS_NOTHING, revoked=HOLDS_NOTHING, process="q"):
    return member(assigned=assigned, revoked=revoked, process=process, member_id="other")


class TestStable:
    def test_nothing_happens_at_the_target_epoch(self):
        before = member(assigned=held("0_1"))
        assert step(before, tasks("0_1"), epoch=EPOCH) is before

    def test_a_new_epoch_with_the_same_target_is_taken_over(self):
        before = member(assigned=held("0_1@3", "1_1"))
        assert step(before, tasks("0_1", "1_1")) == replace(
            before, member_epoch=EPOCH + 1, previous_member_epoch=EPOCH
        )

    def test_free_tasks_are_taken_at_the_target_epoch(self):
        before = member(assigned=held("0_1@3"))
        after = step(before, tasks("0_1 0_2", "1_1", "1_2"))
        assert after == replace(
            before,
            member_epoch=EPOCH + 1,
            previous_member_epoch=EPOCH,
            assigned=held(f"0_1@3 0_2@{EPOCH + 1}", "1_1", "1_2"),
        )

    @pytest.mark.parametrize("kind", ["active", "standby", "warmup"])
    def test_what_the_target_lacks_is_to_be_given_up_in_the_old_epoch(self, kind):
        before = member(assigned=held(**{kind: "0_1 0_2"}))
        after = step(before, tasks(**{kind: "0_1 0_3"}))
        assert after == replace(
            before,
            state=UNREVOKED,
            previous_member_epoch=EPOCH,
            assigned=held(**{kind: "0_1"}),
            pending_revocation=held(**{kind: "0_2"}),
        )

    def test_who_says_that_it_owns_none_of_that_goes_on_at_once(self):
        before = member(assigned=held("0_1 0_2"))
        after = step(before, tasks("0_1 0_3"), owned=tasks("0_1"))
        assert after.state is STABLE
        assert after.assigned == held(f"0_1 0_3@{EPOCH + 1}")
        assert after.member_epoch == EPOCH + 1
        assert after.pending_revocation == HOLDS_NOTHING

    def test_who_says_that_it_still_owns_it_has_to_give_it_up(self):
        before = member(assigned=held("0_1 0_2"))
        assert step(before, tasks("0_1"), owned=tasks("0_1 0_2")).state is UNREVOKED


class TestUnrevoked:
    BEFORE = member(state=UNREVOKED, assigned=held("0_1"), revoked=held("0_2", "1_2"))

    def test_it_stays_until_the_client_says_what_it_owns(self):
        assert step(self.BEFORE, tasks("0_1")) is self.BEFORE

    @pytest.mark.parametrize("owned", [tasks("0_1 0_2"), tasks("0_1", "1_2")])
    def test_it_stays_while_one_task_is_owned(self, owned):
        assert step(self.BEFORE, tasks("0_1"), owned=owned) is self.BEFORE

    def test_it_is_stable_when_all_is_given_up(self):
        after = step(self.BEFORE, tasks("0_1"), owned=tasks("0_1"))
        assert after == replace(
            self.BEFORE,
            state=STABLE,
            member_epoch=EPOCH + 1,
            previous_member_epoch=EPOCH,
            pending_revocation=HOLDS_NOTHING,
        )

    def test_a_newer_target_may_take_more_in_the_next_epoch(self):
        """As Kafka has it: the member's epoch grows by one, whatever the target's is."""
        after = step(self.BEFORE, tasks("0_3"), epoch=EPOCH + 5, owned=tasks("0_1"))
        assert after.state is UNREVOKED
        assert after.member_epoch == EPOCH + 1
        assert after.assigned == HOLDS_NOTHING
        assert after.pending_revocation == held("0_1")

    def test_a_task_that_comes_back_is_released_by_the_member_itself_first(self):
        """It holds the task until the record is written, so it waits one heartbeat more."""
        after = step(self.BEFORE, tasks("0_1 0_2"), owned=tasks("0_1"))
        assert after.state is UNRELEASED
        assert after.assigned == held("0_1")
        again = step(after, tasks("0_1 0_2"))
        assert again.state is STABLE
        assert again.assigned == held(f"0_1 0_2@{EPOCH + 1}")


class TestUnreleased:
    def test_tasks_of_others_are_waited_for_at_the_target_epoch(self):
        before = member()
        after = step(before, tasks("0_1"), others=[other(held("0_1"))])
        assert after == replace(
            before, state=UNRELEASED, member_epoch=EPOCH + 1, previous_member_epoch=EPOCH
        )

    def test_free_ones_are_taken_while_others_are_waited_for(self):
        after = step(member(), tasks("0_1 0_2", "1_1", "1_2"), others=[other(revoked=held("0_1"))])
        assert after.state is UNRELEASED
        assert after.assigned == held(f"0_2@{EPOCH + 1}", "1_1", "1_2")

    def test_released_tasks_are_taken_with_a_later_heartbeat(self):
        before = member(state=UNRELEASED, epoch=EPOCH + 1, assigned=held("0_2"))
        after = step(before, tasks("0_1 0_2"))
        assert after.state is STABLE
        assert after.assigned == held(f"0_2 0_1@{EPOCH + 1}")

    def test_it_still_waits_and_its_previous_epoch_becomes_the_present_one(self):
        before = member(state=UNRELEASED, epoch=EPOCH + 1)
        after = step(before, tasks("0_1"), others=[other(held("0_1"))])
        assert after == replace(before, previous_member_epoch=EPOCH + 1)
        assert step(after, tasks("0_1"), others=[other(held("0_1"))]) == after

    def test_a_newer_target_may_take_what_it_has(self):
        before = member(state=UNRELEASED, assigned=held("0_1"))
        after = step(before, tasks("0_2"), epoch=EPOCH + 2)
        assert after.state is UNREVOKED
        assert after.member_epoch == EPOCH
        assert after.pending_revocation == held("0_1")


class TestProcesses:
    @pytest.mark.parametrize("kind", ["standby", "warmup"])
    @pytest.mark.parametrize("way", ["assigned", "revoked"])
    def test_no_task_is_active_where_its_process_has_a_copy(self, kind, way):
        copy = other(process="p", **{way: held(**{kind: "0_1"})})
        assert step(member(), tasks("0_1"), others=[copy]).state is UNRELEASED

    @pytest.mark.parametrize("kind", ["standby", "warmup"])
    def test_copies_in_other_processes_do_not_matter_to_active_tasks(self, kind):
        after = step(member(), tasks("0_1"), others=[other(held(**{kind: "0_1"}))])
        assert after.state is STABLE

    @pytest.mark.parametrize("kind", ["active", "standby", "warmup"])
    @pytest.mark.parametrize("wanted", ["standby", "warmup"])
    def test_no_copy_is_where_its_process_has_the_task(self, wanted, kind):
        holder = other(held(**{kind: "0_1"}), process="p")
        assert step(member(), tasks(**{wanted: "0_1"}), others=[holder]).state is UNRELEASED

    @pytest.mark.parametrize("kind", ["active", "standby", "warmup"])
    @pytest.mark.parametrize("wanted", ["standby", "warmup"])
    def test_copies_may_be_where_another_process_has_the_task(self, wanted, kind):
        after = step(member(), tasks(**{wanted: "0_1"}), others=[other(held(**{kind: "0_1"}))])
        assert after.state is STABLE
        assert getattr(after.assigned, wanted) == ids("0_1")

    def test_a_member_exchanges_its_own_roles_one_after_the_other(self):
        """Standby becomes active: given up, released, taken."""
        before = member(assigned=held(standby="0_1"))
        first = step(before, tasks("0_1"))
        assert first.state is UNREVOKED
        second = step(first, tasks("0_1"), owned=NO_TASKS)
        assert (second.state, second.assigned) == (UNRELEASED, HOLDS_NOTHING)
        third = step(second, tasks("0_1"))
        assert (third.state, third.assigned) == (STABLE, held(f"0_1@{EPOCH + 1}"))


class TestUnknownState:
    BEFORE = member(state=MemberState.UNKNOWN, assigned=held("0_1"))

    @pytest.mark.parametrize("owned", [None, tasks("0_1"), tasks(warmup="0_1")])
    def test_who_has_tasks_or_does_not_say_is_fenced(self, owned):
        with pytest.raises(KafkaError) as refusal:
            step(self.BEFORE, tasks("0_1"), owned=owned)
        assert refusal.value.code is ErrorCode.FENCED_MEMBER_EPOCH

    def test_who_has_nothing_begins_anew_at_the_target_epoch(self):
        after = step(self.BEFORE, tasks("0_1"), owned=NO_TASKS)
        assert (after.state, after.member_epoch) == (STABLE, EPOCH + 1)


class TestHolders:
    def test_a_member_that_goes_holds_nothing(self):
        holders = TaskHolders()
        one = member(assigned=held("0_1", "1_1", "1_2"), revoked=held("0_2", "1_3", "1_4"))
        holders.add(one)
        assert all(holders.is_unreleased_active(task, "q") for task in ids("0_1 0_2"))
        assert all(holders.is_unreleased_copy(task, "p") for task in ids("1_1 1_2 1_3 1_4"))
        holders.remove(one)
        assert not any(holders.is_unreleased_active(task, "q") for task in ids("0_1 0_2"))
        assert not any(holders.is_unreleased_copy(task, "p") for task in ids("1_1 1_2 1_3 1_4"))

    def test_a_task_that_another_process_got_meanwhile_stays_its_own(self):
        holders = TaskHolders()
        first, second = member(assigned=held("0_1")), other(held("0_1"))
        holders.add(first)
        holders.add(second)
        holders.remove(first)
        assert holders.is_unreleased_copy(TaskId("0", 1), "q")

    def test_copies_of_other_processes_stay(self):
        holders = TaskHolders()
        first, second = member(assigned=held(standby="0_1")), other(held(standby="0_1"))
        holders.add(first)
        holders.add(second)
        holders.remove(first)
        holders.remove(first)
        assert holders.is_unreleased_copy(TaskId("0", 1), "q")
        assert not holders.is_unreleased_copy(TaskId("0", 1), "p")
