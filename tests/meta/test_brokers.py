from dataclasses import replace

import pytest

from kafkalite.meta.brokers import still_led
from kafkalite.meta.changes import (
    BrokerRegistered,
    BrokerUnregistered,
    LeaderEpochsRaised,
    PartitionChanged,
    TopicCreated,
)
from kafkalite.meta.controller import decide
from kafkalite.meta.events import (
    AllocateProducerIds,
    ControlledShutdown,
    RegisterBroker,
    UnregisterBroker,
)
from kafkalite.meta.image import NO_LEADER, PartitionImage
from kafkalite.wire.errors import ErrorCode
from tests.meta.meta_kit import (
    ENDPOINTS,
    after,
    image,
    refusal,
    rules,
    shutting_down,
    topic_id,
    with_partitions,
)

SOLE = PartitionImage((1,), (1,), 1)


def register(broker_id=1, **attributes):
    return RegisterBroker(broker_id=broker_id, endpoints=ENDPOINTS, **attributes)


def states(of_image):
    return of_image.topics["a"].partitions


class TestRegistration:
    def test_a_first_registration_is_only_that(self):
        event = RegisterBroker(broker_id=1, endpoints=ENDPOINTS, rack="r")
        (registered,) = decide(event, image(brokers=()), rules())
        assert registered == BrokerRegistered(broker_id=1, endpoints=ENDPOINTS, rack="r")

    def test_a_restart_begins_a_new_reign(self):
        """Rule 180."""
        event = RegisterBroker(broker_id=1, endpoints=ENDPOINTS)
        changes = decide(event, image("a"), rules())
        assert changes[1:] == [LeaderEpochsRaised(broker_id=1)]
        assert after(event, image("a")).topics["a"].partitions[0].leader_epoch == 1

    def test_new_addresses_begin_no_new_reign(self):
        event = RegisterBroker(broker_id=1, endpoints={"PLAINTEXT": ("x", 1)}, restarted=False)
        assert len(decide(event, image("a"), rules())) == 1

    def test_a_stopped_broker_hands_over_and_comes_back(self):
        """Rules 178 and 179."""
        both = TopicCreated(
            name="a", topic_id=topic_id(1), partitions=(PartitionImage((1, 2), (1, 2), 1), SOLE)
        )
        before = image(both, brokers=(1, 2))
        stopped = decide(UnregisterBroker(broker_id=1), before, rules())
        assert stopped[0] == BrokerUnregistered(broker_id=1)
        assert [change.state.leader for change in stopped[1:]] == [2, NO_LEADER]
        gone = before.apply(stopped)
        back = after(RegisterBroker(broker_id=1, endpoints=ENDPOINTS), gone)
        assert [state.leader for state in back.topics["a"].partitions] == [2, 1]

    def test_a_partition_without_a_leader_waits_for_one_that_was_in_sync(self):
        waiting = PartitionImage((1, 2), (2,), NO_LEADER, 3)
        topic = TopicCreated(name="a", topic_id=topic_id(1), partitions=(waiting,))
        event = RegisterBroker(broker_id=1, endpoints=ENDPOINTS)
        assert len(decide(event, image(topic, brokers=()), rules())) == 1

    def test_what_does_not_concern_a_broker_is_left_alone(self):
        before = image("a", brokers=(1, 2))
        assert len(decide(UnregisterBroker(broker_id=2), before, rules())) == 1

    @pytest.mark.parametrize(
        ("own", "default", "leader"),
        [
            ({}, "true", 2),
            ({}, "false", -1),
            ({"unclean.leader.election.enable": "true"}, "false", 2),
        ],
    )
    def test_unclean_elections_follow_the_topics_setting(self, own, default, leader):
        """Rule 178."""
        topic = TopicCreated(
            name="a",
            topic_id=topic_id(1),
            partitions=(PartitionImage((1, 2), (1,), 1),),
            configs=own,
        )
        with_rules = rules(unclean_leader_election_enable=default)
        (_, change) = decide(
            UnregisterBroker(broker_id=1), image(topic, brokers=(1, 2)), with_rules
        )
        assert isinstance(change, PartitionChanged)
        assert change.state.leader == leader

    def test_an_unknown_broker_cannot_stop(self):
        error = refusal(UnregisterBroker(broker_id=9), image())
        assert error.code is ErrorCode.BROKER_ID_NOT_REGISTERED


class TestRegistrationWithEpoch:
    """In a cluster a registration has an epoch (KIP-380)."""

    def test_who_comes_back_has_failed_and_is_new(self):
        """Rule 197: its leadership and its place in the ISR went with the old session."""
        before = with_partitions(
            PartitionImage((1, 2, 3), (1, 2, 3), 1, 4, 6), PartitionImage((2, 1), (2, 1), 2, 4, 6)
        )
        back = after(register(broker_epoch=20), before)
        assert states(back) == (
            PartitionImage((1, 2, 3), (2, 3), 2, 5, 7),
            PartitionImage((2, 1), (2,), 2, 5, 7),
        )
        assert back.brokers[1].broker_epoch == 20

    def test_who_was_in_sync_alone_leads_again_in_a_new_reign(self):
        """Rule 179: nobody else may; also a lone broker of a cluster after a restart."""
        before = with_partitions(PartitionImage((1, 2), (1,), 1, 4, 6))
        back = after(register(broker_epoch=20), before)
        assert states(back) == (PartitionImage((1, 2), (1,), 1, 5, 7),)

    def test_nobody_else_leads_uncleanly_for_a_broker_that_is_back(self):
        before = with_partitions(
            PartitionImage((1, 2), (1,), 1), unclean_leader_election_enable="true"
        )
        assert states(after(register(broker_epoch=20), before))[0].leader == 1

    def test_a_replica_that_was_not_in_sync_may_lead_uncleanly_where_nobody_leads(self):
        """Rule 178."""
        waiting = PartitionImage((1, 2), (2,), NO_LEADER)
        clean = with_partitions(waiting, brokers=(3,))
        assert states(after(register(broker_epoch=20), clean)) == (waiting,)
        unclean = with_partitions(waiting, brokers=(3,), unclean_leader_election_enable="true")
        back = after(register(broker_epoch=20), unclean)
        assert states(back) == (PartitionImage((1, 2), (1,), 1, 1, 1),)

    def test_the_same_registration_is_nothing_new(self):
        before = with_partitions(PartitionImage((1, 2), (1, 2), 1))
        assert decide(register(broker_epoch=11), before, rules()) == []

    def test_other_addresses_under_the_same_epoch_keep_the_reign(self):
        before = shutting_down(with_partitions(PartitionImage((1, 2), (1, 2), 1)), 1)
        event = replace(register(broker_epoch=11), endpoints={"PLAINTEXT": ("x", 1)})
        (change,) = decide(event, before, rules())
        assert isinstance(change, BrokerRegistered)
        assert change.shutting_down

    def test_an_older_registration_is_refused(self):
        error = refusal(register(broker_epoch=10), with_partitions(SOLE))
        assert error.code is ErrorCode.STALE_BROKER_EPOCH

    def test_a_new_registration_ends_the_shutdown(self):
        """Rule 183."""
        before = shutting_down(with_partitions(SOLE), 1)
        assert not after(register(broker_epoch=20), before).brokers[1].shutting_down


class TestShutdown:
    def test_gives_leaderships_away_and_leaves_the_in_sync_replicas(self):
        """Rule 182."""
        before = with_partitions(
            PartitionImage((1, 2, 3), (1, 2, 3), 1), PartitionImage((2, 1), (2, 1), 2)
        )
        stopping = after(ControlledShutdown(broker_id=1, broker_epoch=11), before)
        assert states(stopping) == (
            PartitionImage((1, 2, 3), (2, 3), 2, 1, 1),
            PartitionImage((2, 1), (2,), 2, 1, 1),
        )
        assert stopping.brokers[1].shutting_down
        assert still_led(stopping, 1) == []
        again = ControlledShutdown(broker_id=1, broker_epoch=11)
        assert decide(again, stopping, rules()) == []

    def test_what_nobody_can_take_stays(self):
        """Rules 182 and 183: partitions with one replica are not told."""
        before = with_partitions(PartitionImage((1, 2), (1,), 1), SOLE)
        stopping = after(ControlledShutdown(broker_id=1, broker_epoch=11), before)
        assert states(stopping) == states(before)
        assert still_led(stopping, 1) == [("a", 0)]

    def test_who_is_shutting_down_gets_no_leadership(self):
        """Rules 182 and 183."""
        before = shutting_down(with_partitions(PartitionImage((1, 2, 3), (1, 2, 3), 1)), 2)
        stopping = after(ControlledShutdown(broker_id=1, broker_epoch=11), before)
        assert states(stopping)[0].leader == 3
        dead = after(UnregisterBroker(broker_id=1), before)
        assert states(dead)[0].leader == 3

    def test_who_still_leads_goes_on_when_another_dies(self):
        before = with_partitions(PartitionImage((1, 2), (1, 2), 1), brokers=(1, 2))
        before = shutting_down(before, 1, 2)
        dead = after(UnregisterBroker(broker_id=2), before)
        assert states(dead) == (PartitionImage((1, 2), (1,), 1, 1, 1),)

    @pytest.mark.parametrize(
        ("broker_id", "epoch", "code"),
        [
            (9, -1, ErrorCode.BROKER_NOT_AVAILABLE),
            (1, 10, ErrorCode.STALE_BROKER_EPOCH),
            (1, 12, ErrorCode.STALE_BROKER_EPOCH),
        ],
    )
    def test_refuses(self, broker_id, epoch, code):
        """Rule 174."""
        event = ControlledShutdown(broker_id=broker_id, broker_epoch=epoch)
        assert refusal(event, with_partitions(SOLE)).code is code


@pytest.mark.parametrize(
    ("broker_id", "epoch", "code"),
    [(9, 1, ErrorCode.BROKER_ID_NOT_REGISTERED), (1, 10, ErrorCode.STALE_BROKER_EPOCH)],
)
def test_producer_ids_are_given_to_registered_brokers(broker_id, epoch, code):
    """Rule 64."""
    event = AllocateProducerIds(broker_id=broker_id, broker_epoch=epoch)
    assert refusal(event, with_partitions(SOLE)).code is code
    assert decide(replace(event, broker_id=1, broker_epoch=11), with_partitions(SOLE), rules())
