"""In-sync replicas that leaders ask for, elections, and what holds after any events."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.meta.changes import TopicCreated, from_json, snapshot, to_json
from kafkalite.meta.controller import decide
from kafkalite.meta.events import (
    AlterConfigs,
    ElectLeader,
    IncrementalAlterConfigs,
    RebalanceLeaders,
    RegisterBroker,
)
from kafkalite.meta.image import NO_LEADER, Image, PartitionImage
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.meta.meta_kit import (
    ENDPOINTS,
    after,
    events,
    image,
    partition_events,
    proposal,
    refusal,
    rules,
    shutting_down,
    topic_id,
    topics,
    with_partitions,
)

STATE = PartitionImage((1, 2, 3), (1, 2), 1, leader_epoch=5, partition_epoch=9)
RULES = rules()


def only(of_image):
    (state,) = of_image.topics["a"].partitions
    return state


class TestAlterPartition:
    def test_the_leader_changes_the_in_sync_replicas_within_its_reign(self):
        """Rules 176 and 180; in the order of the replicas."""
        before = with_partitions(STATE)
        larger = after(proposal(before, "a", 0, [3, 2, 1]), before)
        assert only(larger) == PartitionImage((1, 2, 3), (1, 2, 3), 1, 5, 10)
        smaller = after(proposal(larger, "a", 0, [1]), larger)
        assert only(smaller) == PartitionImage((1, 2, 3), (1,), 1, 5, 11)

    def test_what_is_already_so_changes_nothing(self):
        """An answer was lost, and the leader asks again."""
        before = with_partitions(STATE)
        event = proposal(before, "a", 0, [2, 1])
        assert decide(event, before, RULES) == []
        assert decide(replace(event, partition_epoch=3), before, RULES) == []

    @pytest.mark.parametrize(
        ("attributes", "code"),
        [
            ({"broker_epoch": 3}, ErrorCode.STALE_BROKER_EPOCH),
            ({"broker_id": 9}, ErrorCode.STALE_BROKER_EPOCH),
            ({"broker_id": 2}, ErrorCode.INVALID_REQUEST),
            ({"topic_id": topic_id(5)}, ErrorCode.UNKNOWN_TOPIC_ID),
            ({"index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"index": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"leader_epoch": 4}, ErrorCode.FENCED_LEADER_EPOCH),
            ({"leader_epoch": 6}, ErrorCode.NOT_CONTROLLER),
            ({"partition_epoch": 8}, ErrorCode.INVALID_UPDATE_VERSION),
            ({"partition_epoch": 10}, ErrorCode.NOT_CONTROLLER),
            ({"new_isr": []}, ErrorCode.INVALID_REQUEST),
            ({"new_isr": [(2, -1), (3, -1)]}, ErrorCode.INVALID_REQUEST),
            ({"new_isr": [(3, -1)]}, ErrorCode.INVALID_REQUEST),
            ({"new_isr": [(1, -1), (1, -1)]}, ErrorCode.INVALID_REQUEST),
            ({"new_isr": [(1, -1), (4, -1)]}, ErrorCode.INVALID_REQUEST),
            ({"new_isr": [(1, -1), (3, 12)]}, ErrorCode.INELIGIBLE_REPLICA),
        ],
    )
    def test_refuses(self, attributes, code):
        """Rule 176, KIP-841, KIP-903."""
        before = with_partitions(STATE, brokers=(1, 2, 3, 4))
        event = replace(proposal(before, "a", 0, [1, 2, 3]), **attributes)
        assert refusal(event, before).code is code

    def test_a_leader_that_leaves_itself_out_resigns(self):
        """Rule 185: it cannot write; another in-sync replica leads, in a new epoch."""
        before = with_partitions(STATE)
        led = after(proposal(before, "a", 0, [2]), before)
        assert only(led) == PartitionImage((1, 2, 3), (2,), 2, 6, 10)

    @pytest.mark.parametrize("isr", [(1, 2), (1,)])
    def test_a_leader_does_not_resign_where_nobody_else_could_lead(self, isr):
        """Rule 185: an in-sync replica that is leaving takes nothing over."""
        before = shutting_down(with_partitions(replace(STATE, isr=isr)), 2)
        error = refusal(proposal(before, "a", 0, [broker for broker in isr if broker != 1]), before)
        assert error.code is (
            ErrorCode.INELIGIBLE_REPLICA if len(isr) > 1 else ErrorCode.INVALID_REQUEST
        )

    def test_a_leader_alone_in_sync_hands_over_to_who_has_more(self):
        """Rule 234: it has lost records since."""
        before = with_partitions(replace(STATE, isr=(1,)))
        led = after(proposal(before, "a", 0, [3]), before)
        assert only(led) == PartitionImage((1, 2, 3), (3,), 3, 6, 10)

    @pytest.mark.parametrize(
        ("new_isr", "code"),
        [
            ([(2, -1), (3, -1)], ErrorCode.INVALID_REQUEST),
            ([(4, -1)], ErrorCode.INVALID_REQUEST),
            ([(3, 12)], ErrorCode.INELIGIBLE_REPLICA),
        ],
    )
    def test_it_hands_over_to_one_living_replica(self, new_isr, code):
        before = with_partitions(replace(STATE, isr=(1,)), brokers=(1, 2, 3, 4))
        event = replace(proposal(before, "a", 0, [3]), new_isr=new_isr)
        assert refusal(event, before).code is code

    def test_a_leader_that_is_to_go_anyway_resigns_to_the_new_replicas(self):
        """KIP-455: and the reassignment that waited for nothing else is complete."""
        state = replace(STATE, replicas=(2, 3, 1), isr=(2, 3, 1), adding=(3,), removing=(1,))
        before = with_partitions(state)
        led = only(after(proposal(before, "a", 0, [2, 3]), before))
        assert (led.replicas, led.isr, led.leader) == ((2, 3), (2, 3), 2)
        assert led.leader_epoch > state.leader_epoch

    def test_a_dead_broker_does_not_join(self):
        """KIP-841."""
        before = with_partitions(STATE, brokers=(1, 2))
        error = refusal(proposal(before, "a", 0, [1, 2, 3]), before)
        assert error.code is ErrorCode.INELIGIBLE_REPLICA
        assert "not registered" in error.message

    def test_a_broker_that_is_shutting_down_stays_but_does_not_join(self):
        """Rule 183."""
        before = shutting_down(with_partitions(STATE), 3)
        error = refusal(proposal(before, "a", 0, [1, 2, 3]), before)
        assert error.code is ErrorCode.INELIGIBLE_REPLICA
        leader = shutting_down(with_partitions(STATE), 1)
        assert only(after(proposal(leader, "a", 0, [1]), leader)).isr == (1,)

    def test_epochs_are_not_checked_where_the_leader_knows_none(self):
        """KIP-903: AlterPartition v2."""
        before = with_partitions(STATE)
        event = proposal(before, "a", 0, [1, 2, 3], unchecked=True)
        assert only(after(event, before)).isr == (1, 2, 3)

    @pytest.mark.parametrize("live", [{}, {1: 5, 2: 6}, {1: 5, 2: 6, 3: 8}])
    def test_who_failed_since_it_was_in_sync_is_not_let_in(self, live):
        """Rule 249: the store has another registration of it, or none, and the image not yet."""
        before = with_partitions(STATE)
        epochs = {each: broker.broker_epoch for each, broker in before.brokers.items()}
        event = proposal(before, "a", 0, [1, 2, 3])

        def decided(epochs):
            live = {
                each: replace(before.brokers[each], broker_epoch=epoch)
                for each, epoch in epochs.items()
            }
            return decide(event, before, replace(RULES, live=live))

        assert decided(epochs) == decide(event, before, RULES) != []
        with pytest.raises(KafkaError) as refused:
            decided({each: epochs[each] + (live[each] == 8) for each in live})
        assert refused.value.code is ErrorCode.INELIGIBLE_REPLICA


class TestElectLeader:
    def test_the_preferred_replica_leads_again(self):
        """Rule 181."""
        before = with_partitions(replace(STATE, leader=2))
        elected = after(ElectLeader(topic="a", index=0), before)
        assert only(elected) == PartitionImage((1, 2, 3), (1, 2), 1, 6, 10)

    def test_nobody_leads_and_a_replica_that_lacks_records_is_taken(self):
        """KIP-460."""
        before = with_partitions(replace(STATE, leader=NO_LEADER), brokers=(3,))
        elected = after(ElectLeader(topic="a", index=0, unclean=True), before)
        assert only(elected) == PartitionImage((1, 2, 3), (3,), 3, 6, 10)

    def test_a_replica_in_sync_is_better(self):
        before = with_partitions(replace(STATE, leader=NO_LEADER))
        assert only(after(ElectLeader(topic="a", index=0, unclean=True), before)).isr == (1, 2)

    @pytest.mark.parametrize(
        ("state", "unclean", "code"),
        [
            (STATE, False, ErrorCode.ELECTION_NOT_NEEDED),
            (STATE, True, ErrorCode.ELECTION_NOT_NEEDED),
            (replace(STATE, leader=2), True, ErrorCode.ELECTION_NOT_NEEDED),
            (
                PartitionImage((3, 1), (1,), 1),
                False,
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            ),
            (
                PartitionImage((9, 1), (9, 1), 1),
                False,
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            ),
            (
                PartitionImage((9,), (9,), NO_LEADER),
                True,
                ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            ),
        ],
    )
    def test_refuses(self, state, unclean, code):
        """Rule 181."""
        event = ElectLeader(topic="a", index=0, unclean=unclean)
        assert refusal(event, with_partitions(state)).code is code

    def test_refuses_what_is_not_there(self):
        for topic, index in (("a", 1), ("b", 0)):
            error = refusal(ElectLeader(topic=topic, index=index), with_partitions(STATE))
            assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestUncleanSetting:
    """Rule 178: a topic without a leader gets one when its settings allow any."""

    WAITING = replace(STATE, leader=NO_LEADER)

    def set(self, value, before):
        event = IncrementalAlterConfigs(
            resource_type=2,
            resource_name="a",
            operations=[("unclean.leader.election.enable", 0, value)],
        )
        return after(event, before)

    def test_a_replica_that_lacks_records_leads_at_once(self):
        before = with_partitions(self.WAITING, brokers=(3,))
        assert only(self.set("true", before)) == PartitionImage((1, 2, 3), (3,), 3, 6, 10)
        event = AlterConfigs(
            resource_type=2,
            resource_name="a",
            configs=[("unclean.leader.election.enable", "true")],
        )
        assert only(after(event, before)).leader == 3

    @pytest.mark.parametrize(
        ("resource_name", "own", "leader"),
        [("", None, 3), ("", "false", NO_LEADER), ("3", None, NO_LEADER)],
    )
    def test_default_of_the_cluster_is_for_topics_that_say_nothing(
        self, resource_name, own, leader
    ):
        before = with_partitions(self.WAITING, brokers=(3,))
        if own is not None:
            configs = {"unclean.leader.election.enable": own}
            topic = replace(before.topics["a"], configs=configs)
            before = replace(before, topics={"a": topic})
        event = IncrementalAlterConfigs(
            resource_type=4,
            resource_name=resource_name,
            operations=[("unclean.leader.election.enable", 0, "true")],
        )
        try:
            state = only(after(event, before))
        except KafkaError:  # a setting of the whole cluster only
            assert resource_name
        else:
            assert state.leader == leader

    def test_nothing_happens_where_it_is_not_allowed_or_not_needed(self):
        waiting = with_partitions(self.WAITING, brokers=(3,))
        assert only(self.set("false", waiting)) == self.WAITING
        assert only(self.set("true", with_partitions(STATE))) == STATE


class TestRebalance:
    HOME = PartitionImage((1, 2), (1, 2), 1)
    AWAY = PartitionImage((1, 2), (1, 2), 2)

    def test_leaderships_go_back_where_too_many_are_away(self):
        """Rule 181."""
        before = with_partitions(self.HOME, self.AWAY)
        assert decide(RebalanceLeaders(imbalance_percentage=50), before, RULES) == []
        balanced = after(RebalanceLeaders(imbalance_percentage=49), before)
        assert [state.leader for state in balanced.topics["a"].partitions] == [1, 1]

    @pytest.mark.parametrize(
        "state",
        [
            PartitionImage((1, 2), (2,), 2),
            PartitionImage((9, 2), (9, 2), 2),
            PartitionImage((1, 2, 3), (1, 2), 2, adding=(3,)),
        ],
    )
    def test_what_cannot_go_back_or_is_reassigned_stays(self, state):
        before = with_partitions(state)
        assert decide(RebalanceLeaders(imbalance_percentage=0), before, RULES) == []


@st.composite
def steps(draw):
    """A random event, or a proposal that fits the state of a partition."""
    if draw(st.integers(0, 2)):
        return draw(partition_events)
    return (draw(topics), draw(st.integers(0, 2)), draw(st.permutations([1, 2, 3, 4])))


def event_of(step, before):
    if not isinstance(step, tuple):
        return step
    topic, index, order = step
    state = before.partition(topic, index)
    if state is None or state.leader == NO_LEADER:
        return None
    chosen = [each for each in order[: order[0]] if each in state.replicas]
    return proposal(before, topic, index, {*chosen, state.leader})


def start_of_cluster():
    before = image(brokers=())
    for broker_id in (1, 2, 3, 4):
        event = RegisterBroker(broker_id=broker_id, endpoints=ENDPOINTS, broker_epoch=0)
        before = after(event, before)
    created = [
        TopicCreated(
            name=name,
            topic_id=topic_id(number),
            partitions=(
                PartitionImage((1, 2, 3), (1, 2, 3), 1),
                PartitionImage((2, 3), (2, 3), 2),
                PartitionImage((4,), (4,), 4),
            ),
        )
        for number, name in enumerate("ab", 1)
    ]
    return before.apply(created)


def assert_sound(live):
    for topic in live.topics.values():
        for state in topic.partitions:
            assert state.isr
            assert set(state.isr) <= set(state.replicas)
            assert len(set(state.replicas)) == len(state.replicas)
            assert state.leader == NO_LEADER or state.leader in state.isr
            assert not set(state.adding) & set(state.removing)
            assert {*state.adding, *state.removing} <= set(state.replicas)
            assert state.leader == NO_LEADER or state.leader in live.brokers


def assert_step(before, after_, event):
    """Epochs grow; who leads was in sync before, unless the election was to be unclean."""
    unclean = getattr(event, "unclean", False)
    for name, topic in before.topics.items():
        for old, new in zip(topic.partitions, after_.topics[name].partitions, strict=True):
            assert new.leader_epoch >= old.leader_epoch
            assert new.partition_epoch >= old.partition_epoch
            if new == old:
                continue
            assert new.partition_epoch > old.partition_epoch
            if new.leader != old.leader:
                assert new.leader_epoch > old.leader_epoch
            joined = set(new.isr) - set(old.isr)
            asked = {each for each, _ in getattr(event, "new_isr", ())}
            assert unclean or joined <= asked
            assert new.leader == NO_LEADER or unclean or new.leader in {*old.isr, *asked}


@settings(max_examples=150, deadline=None)
@given(st.lists(steps(), max_size=40))
def test_whatever_happens_leaders_are_in_sync_and_epochs_grow(sequence):
    """Rules 178-183, KIP-455."""
    live = start_of_cluster()
    history = []
    for step in sequence:
        event = event_of(step, live)
        if event is None:
            continue
        try:
            changes = decide(event, live, RULES)
        except KafkaError:
            continue
        next_ = live.apply(changes)
        assert_sound(next_)
        assert_step(live, next_, event)
        assert next_.apply(changes).topics == next_.topics
        assert next_.apply(changes).brokers == next_.brokers
        live = next_
        history += changes
    again = live.apply(history)
    assert replace(again, version=live.version) == live
    start = Image(cluster_id="cluster", controller_id=1)
    rebuilt = start.apply(map(from_json, map(to_json, snapshot(live))))
    assert replace(rebuilt, version=live.version) == live


@settings(max_examples=100, deadline=None)
@given(st.lists(events, max_size=25))
def test_changes_that_are_told_again_are_without_effect(sequence):
    """A broker that loads a snapshot may be told changes that are in it."""
    live = start_of_cluster()
    history = []
    for event in sequence:
        if isinstance(event, RegisterBroker) and event.broker_epoch < 0:
            continue  # of a lone broker, which is told nothing twice
        try:
            changes = decide(event, live, RULES)
        except KafkaError:
            continue
        live = live.apply(changes)
        history += changes
    again = live.apply(history)
    assert replace(again, version=live.version) == live
