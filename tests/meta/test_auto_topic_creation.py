"""Topics that are created because they are missing."""

import pytest
import trio

from kafkalite.meta.events import (
    RegisterBroker,
)
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.meta.meta_kit import ENDPOINTS
from tests.meta.runner_kit import Kit


class TestEnsureTopic:
    def ensure(self, kit, name):
        return kit.run(kit.topic_creation.ensure_topic, name)

    def test_creates_with_the_brokers_defaults_once(self):
        """USERS 23: the topic has a leader at once."""
        kit = Kit(num_partitions="3")
        kit.register()
        topic = self.ensure(kit, "a")
        assert [state.leader for state in topic.partitions] == [1, 1, 1]
        assert topic.configs == {}
        assert self.ensure(kit, "a") is topic

    def test_refuses_what_cannot_be_created(self, kit):
        with pytest.raises(KafkaError) as caught:
            self.ensure(kit, "bad name")
        assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION

    def test_several_are_created_with_one_commit(self, kit):
        version = kit.image.version
        refused = kit.run(kit.topic_creation.ensure_topics, ["a", "bad name", "b", "a"])
        assert [(name, error.code) for name, error in refused.items()] == [
            ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION)
        ]
        assert list(kit.image.topics) == ["a", "b"]
        assert kit.image.version == version + 1

    def test_internal_topics_fit_a_lone_broker_in_dev(self, kit):
        """USERS 8 and 9; rule 21."""
        offsets = self.ensure(kit, "__consumer_offsets")
        assert len(offsets.partitions) == 50
        assert offsets.partitions[0].replicas == (1,)
        assert offsets.configs == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }
        transactions = self.ensure(kit, "__transaction_state")
        assert transactions.configs == {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "segment.bytes": "104857600",
            "unclean.leader.election.enable": "false",
        }

    @pytest.mark.parametrize(
        "settings", [{"profile": "kafka"}, {"zookeeper_connect": "127.0.0.1:1"}], ids=str
    )
    def test_profile_kafka_and_clusters_keep_kafkas_replication(self, settings):
        """In a cluster there may be too few brokers for a moment, and the topic stays as it is."""
        kit = Kit(**settings)
        kit.register()
        with pytest.raises(KafkaError) as caught:
            self.ensure(kit, "__consumer_offsets")
        assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
        for broker in (2, 3):
            kit.submit(RegisterBroker(broker_id=broker, endpoints=ENDPOINTS))
        assert len(self.ensure(kit, "__consumer_offsets").partitions[0].replicas) == 3
        assert self.ensure(kit, "__transaction_state").configs["min.insync.replicas"] == "2"

    def test_small_segments_of_internal_topics_are_possible(self):
        kit = Kit(offsets_topic_segment_bytes="1000")
        kit.register()
        self.ensure(kit, "__consumer_offsets")
        assert kit.runner.log_config("__consumer_offsets").segment_bytes == 1000

    def test_a_race_is_won_by_the_first(self, kit):
        async def both():
            topics = []

            async def one():
                topics.append(await kit.topic_creation.ensure_topic("a"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(one)
                nursery.start_soon(one)
            return topics

        first, second = kit.run(both)
        assert first is second

    def test_a_topic_that_is_created_and_deleted_by_others_is_unknown(self, kit, monkeypatch):
        async def too_late(events):
            return [KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS)]

        monkeypatch.setattr(kit.runner, "submit_all", too_late)
        with pytest.raises(KafkaError) as caught:
            self.ensure(kit, "a")
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_too_many_to_be_created_by_default_are_refused_together(self, kit):
        names = [f"t{index}" for index in range(10_001)]
        refused = kit.run(kit.topic_creation.ensure_topics, names)
        assert {error.code for error in refused.values()} == {ErrorCode.POLICY_VIOLATION}
        assert len(refused) == len(names)
        assert not kit.image.topics
