"""What differs between brokers; the rest is tested by the commands against a real one."""

import pytest

from kafkalite.client import cluster as cluster_module
from kafkalite.client.admin import (
    ConfigChange,
    ConfigOperation,
    ResourceType,
    alter_configs,
    create_topic,
    delete_topics,
)
from kafkalite.client.cluster import Client
from kafkalite.client.errors import ClientError
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.alter_configs import (
    ALTER_CONFIGS,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kafkalite.wire.messages.delete_topics import (
    DELETE_TOPICS,
    DeletableTopicResult,
    DeleteTopicsResponse,
)
from kafkalite.wire.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.client.fake_broker import FakeBroker


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(cluster_module, "PAUSE_MS", 0)


def created(*codes, message=None):
    return [
        CreateTopicsResponse(
            topics=[CreatableTopicResult(name="t", error_code=code, error_message=message)]
        )
        for code in codes
    ]


class TestCreateTopic:
    def create(self, broker, **options):
        with broker, Client(broker.bootstrap) as client:
            create_topic(client, "t", **options)
        (*_, last) = broker.seen(CREATE_TOPICS)
        (topic,) = last.topics
        return topic.num_partitions, topic.replication_factor

    def test_numbers_are_left_to_the_broker(self):
        assert self.create(FakeBroker({CREATE_TOPICS: created(0)})) == (-1, -1)

    def test_brokers_before_2_4_are_told_numbers(self):
        old = FakeBroker({CREATE_TOPICS: created(0)}, versions={ApiKey.CREATE_TOPICS: (0, 3)})
        assert self.create(old, partitions=3) == (3, 1)

    def test_refusal_has_the_brokers_words(self):
        broker = FakeBroker({CREATE_TOPICS: created(37, message="too many")})
        with pytest.raises(KafkaError, match="INVALID_PARTITIONS: too many"):
            self.create(broker)

    def test_controller_that_moved_is_followed(self):
        broker = FakeBroker({CREATE_TOPICS: created(41, 0)})
        self.create(broker)
        assert len(broker.seen(CREATE_TOPICS)) == 2


def test_topics_are_deleted_each_by_itself():
    answer = DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name="a"),
            DeletableTopicResult(name="b", error_code=3),
            DeletableTopicResult(name="c", error_code=999),
        ]
    )
    with FakeBroker({DELETE_TOPICS: answer}) as broker, Client(broker.bootstrap) as client:
        results = delete_topics(client, ["a", "b", "c"])
    assert broker.seen(DELETE_TOPICS)[0].topic_names == ["a", "b", "c"]
    assert {name: error and str(error) for name, error in results.items()} == {
        "a": None,
        "b": "UNKNOWN_TOPIC_OR_PARTITION: topic 'b'",
        "c": "UNKNOWN_SERVER_ERROR: error code 999: topic 'c'",
    }


class TestOldAlterConfigs:
    """Brokers before 2.3 replace all settings of a resource (no IncrementalAlterConfigs)."""

    described = DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                configs=[
                    DescribeConfigsResourceResult(name="retention.ms", value="1", config_source=1),
                    DescribeConfigsResourceResult(name="segment.ms", value="2", config_source=1),
                    DescribeConfigsResourceResult(name="flush.ms", value="3", config_source=5),
                ]
            )
        ]
    )

    def alter(self, *changes, code=0):
        done = AlterConfigsResponse(
            responses=[AlterConfigsResourceResponse(error_code=code, error_message="why")]
        )
        broker = FakeBroker({DESCRIBE_CONFIGS: self.described, ALTER_CONFIGS: done})
        with broker, Client(broker.bootstrap) as client:
            alter_configs(client, ResourceType.TOPIC, "t", changes)
        (request,) = broker.seen(ALTER_CONFIGS)
        return {config.name: config.value for config in request.resources[0].configs}

    def test_other_settings_of_its_own_are_kept(self):
        changed = self.alter(
            ConfigChange("retention.ms", ConfigOperation.DELETE),
            ConfigChange("cleanup.policy", ConfigOperation.SET, "compact"),
        )
        assert changed == {"segment.ms": "2", "cleanup.policy": "compact"}

    def test_lists_cannot_be_added_to(self):
        with pytest.raises(ClientError, match="too old"):
            self.alter(ConfigChange("cleanup.policy", ConfigOperation.APPEND, "compact"))

    def test_refusal_has_the_brokers_words(self):
        with pytest.raises(KafkaError, match="INVALID_CONFIG: why"):
            self.alter(ConfigChange("a", ConfigOperation.SET, "b"), code=40)
