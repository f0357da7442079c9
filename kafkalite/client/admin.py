"""Administrative requests: topics, partitions and settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from kafkalite.client.cluster import Client
from kafkalite.client.connection import Connection
from kafkalite.client.errors import ClientError, check, error_of
from kafkalite.client.offsets import by_topic
from kafkalite.types import TopicPartition
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages import alter_configs as replacing
from kafkalite.wire.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkalite.wire.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkalite.wire.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from kafkalite.wire.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from kafkalite.wire.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

BROKER_DEFAULT: Final = -1
"""Partition count and replication factor that leave the choice to the broker (KIP-464)."""


class ResourceType(IntEnum):
    """Kind of thing that settings belong to (Kafka's ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Source of a setting's value (Kafka's ConfigEntry.ConfigSource)."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigOperation(IntEnum):
    """Change to one setting (Kafka's AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(slots=True, frozen=True)
class ConfigChange:
    """One change of one setting; APPEND and SUBTRACT are for settings that are lists."""

    name: str
    operation: ConfigOperation
    value: str | None = None


def create_topic(
    client: Client,
    name: str,
    *,
    partitions: int = BROKER_DEFAULT,
    replication_factor: int = BROKER_DEFAULT,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create a topic, and return when it is there.

    Raises:
        KafkaError: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_CONFIG...
    """
    if client.controller().version_of(CREATE_TOPICS) < 4:
        # Brokers before 2.4 have no defaults of their own here.
        partitions = max(1, partitions)
        replication_factor = max(1, replication_factor)
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replication_factor,
                configs=[
                    CreatableTopicConfig(name=key, value=value)
                    for key, value in (configs or {}).items()
                ],
            )
        ],
        timeout_ms=client.timeout_ms,
    )
    answer = client.ask_controller(
        CREATE_TOPICS, request, lambda answer: [topic.error_code for topic in answer.topics]
    )
    for topic in answer.topics:
        check(topic.error_code, topic.error_message or f"topic {name!r}")


def delete_topics(client: Client, names: Sequence[str]) -> dict[str, KafkaError | None]:
    """Delete topics, each by itself; return what each one's answer was."""
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=client.timeout_ms)
    answer = client.ask_controller(
        DELETE_TOPICS, request, lambda answer: [each.error_code for each in answer.responses]
    )
    client.forget_leaders(names)
    return {
        each.name or "": error_of(each.error_code, each.error_message or f"topic {each.name!r}")
        for each in answer.responses
    }


def create_partitions(client: Client, name: str, count: int) -> None:
    """Give a topic more partitions, up to `count` in all.

    Raises:
        KafkaError: INVALID_PARTITIONS if it has as many already.
    """
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)],
        timeout_ms=client.timeout_ms,
    )
    answer = client.ask_controller(
        CREATE_PARTITIONS, request, lambda answer: [each.error_code for each in answer.results]
    )
    for result in answer.results:
        check(result.error_code, result.error_message or f"topic {name!r}")


def delete_records(
    client: Client, before: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Delete all records before an offset of each partition; return where each begins now.

    An offset of -1 stands for the partition's end.

    Raises:
        KafkaError: any partition failed.
    """
    beginnings: dict[TopicPartition, int] = {}
    for leader, places in client.by_leader(before).items():
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        DeleteRecordsPartition(partition_index=p.partition, offset=before[p])
                        for p in members
                    ],
                )
                for name, members in by_topic(places)
            ],
            timeout_ms=client.timeout_ms,
        )
        answer = client.broker(leader).request(DELETE_RECORDS, request, wait_ms=client.timeout_ms)
        for topic in answer.topics:
            for result in topic.partitions:
                place = TopicPartition(topic.name, result.partition_index)
                if result.error_code == ErrorCode.POLICY_VIOLATION:
                    raise KafkaError(
                        ErrorCode.POLICY_VIOLATION,
                        f"{place}: the topic's cleanup.policy is not delete",
                    )
                check(result.error_code, str(place))
                beginnings[place] = result.low_watermark
    return beginnings


def describe_configs(
    client: Client, resource_type: ResourceType, name: str, *, documentation: bool = False
) -> list[DescribeConfigsResourceResult]:
    """Return all settings of a resource, by name.

    Raises:
        KafkaError: there is no such resource.
    """
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource_type, resource_name=name, configuration_keys=None
            )
        ],
        include_synonyms=False,
        include_documentation=documentation,
    )
    answer = _responsible(client, resource_type, name).request(DESCRIBE_CONFIGS, request)
    (result,) = answer.results
    check(result.error_code, result.error_message or f"{resource_type.name.lower()} {name!r}")
    return sorted(result.configs, key=lambda config: config.name)


def alter_configs(
    client: Client, resource_type: ResourceType, name: str, changes: Sequence[ConfigChange]
) -> None:
    """Change some settings of a resource, leaving the others as they are.

    Brokers before 2.3 can only replace all settings of a resource, so there its settings are read
    first; what another client changes between the two is lost.

    Raises:
        KafkaError: INVALID_CONFIG and others; then nothing has changed.
        ClientError: the broker is too old for APPEND or SUBTRACT.
    """
    connection = _responsible(client, resource_type, name)
    if connection.supports(INCREMENTAL_ALTER_CONFIGS):
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=resource_type,
                    resource_name=name,
                    configs=[
                        AlterableConfig(
                            name=change.name, config_operation=change.operation, value=change.value
                        )
                        for change in changes
                    ],
                )
            ]
        )
        for response in connection.request(INCREMENTAL_ALTER_CONFIGS, request).responses:
            check(response.error_code, response.error_message)
    else:
        whole = _changed(client, resource_type, name, changes)
        resource = replacing.AlterConfigsResource(
            resource_type=resource_type,
            resource_name=name,
            configs=[
                replacing.AlterableConfig(name=key, value=value) for key, value in whole.items()
            ],
        )
        replace = replacing.AlterConfigsRequest(resources=[resource])
        for replaced in connection.request(replacing.ALTER_CONFIGS, replace).responses:
            check(replaced.error_code, replaced.error_message)


def _changed(
    client: Client, resource_type: ResourceType, name: str, changes: Sequence[ConfigChange]
) -> dict[str, str | None]:
    """Return the settings that the resource has of its own, after the changes."""
    own = {ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_BROKER_CONFIG}
    found = describe_configs(client, resource_type, name)
    values = {config.name: config.value for config in found if config.config_source in own}
    for change in changes:
        if change.operation is ConfigOperation.SET:
            values[change.name] = change.value
        elif change.operation is ConfigOperation.DELETE:
            values.pop(change.name, None)
        else:
            raise ClientError("the broker is too old to append to a list; set the whole list")
    return values


def _responsible(client: Client, resource_type: ResourceType, name: str) -> Connection:
    """Return a connection to the broker that a resource's settings are asked of.

    A broker's own settings are known to that broker alone; the rest anyone answers or forwards.
    """
    if resource_type is ResourceType.BROKER and name:
        if not name.isdigit():
            raise ClientError(f"{name!r} is no broker id")
        return client.broker(int(name))
    return client.controller()
