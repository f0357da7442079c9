"""A member of a share group that speaks requests, to a broker of any make."""

import socket
import time
from uuid import UUID

from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.alter_share_group_offsets import (
    ALTER_SHARE_GROUP_OFFSETS,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kafkalite.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreateTopicsRequest,
)
from kafkalite.wire.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from kafkalite.wire.messages.delete_share_group_offsets import (
    DELETE_SHARE_GROUP_OFFSETS,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kafkalite.wire.messages.describe_share_group_offsets import (
    DESCRIBE_SHARE_GROUP_OFFSETS,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kafkalite.wire.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafkalite.wire.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkalite.wire.messages.initialize_share_group_state import (
    INITIALIZE_SHARE_GROUP_STATE,
    InitializeShareGroupStateRequest,
    InitializeStateData,
)
from kafkalite.wire.messages.initialize_share_group_state import PartitionData as InitializeData
from kafkalite.wire.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkalite.wire.messages.read_share_group_state import (
    READ_SHARE_GROUP_STATE,
    ReadShareGroupStateRequest,
    ReadStateData,
)
from kafkalite.wire.messages.read_share_group_state import PartitionData as ReadData
from kafkalite.wire.messages.share_acknowledge import (
    SHARE_ACKNOWLEDGE,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kafkalite.wire.messages.share_acknowledge import AcknowledgementBatch as AcknowledgeBatch
from kafkalite.wire.messages.share_fetch import (
    SHARE_FETCH,
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
)
from kafkalite.wire.messages.share_group_heartbeat import (
    SHARE_GROUP_HEARTBEAT,
    ShareGroupHeartbeatRequest,
)
from kafkalite.wire.records import Record, build_batch, iterate_batches, iterate_records
from tests.raw_client import RawClient

GROUP_RESOURCE = 32
SET = 0
PARTITION_IS_NEW = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}


class Address:
    """What RawClient needs of a broker."""

    def __init__(self, port):
        self.port = port


class Probe:
    """One connection, on which one member may fetch.

    Args:
        port: of the broker on loopback.
        group, member: in whose names it asks.
    """

    def __init__(self, port, *, group="sh", member="M1"):
        self.client = RawClient(Address(port))
        self.client.socket.settimeout(60)
        self.group = group
        self.member = member
        self.epoch = 0

    def close(self):
        self.client.socket.shutdown(socket.SHUT_RDWR)
        self.client.close()

    def ask(self, api, version, request):
        return self.client.ask(api, version, request)

    # --- Setting up

    def create_topic(self, name, partitions=1):
        response = self.ask(
            CREATE_TOPICS,
            7,
            CreateTopicsRequest(
                topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)],
                timeout_ms=30_000,
            ),
        )
        assert not response.topics[0].error_code, response
        return response.topics[0].topic_id

    def set_group(self, **configs):
        response = self.ask(
            INCREMENTAL_ALTER_CONFIGS,
            1,
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=GROUP_RESOURCE,
                        resource_name=self.group,
                        configs=[
                            AlterableConfig(
                                name=name.replace("_", "."), config_operation=SET, value=str(value)
                            )
                            for name, value in configs.items()
                        ],
                    )
                ]
            ),
        )
        assert not response.responses[0].error_code, response

    def produce(self, topic, count, *, partition=0, value=b"x"):
        """Append records; a partition that its leader does not know yet is asked again."""
        records = bytes(
            build_batch([Record(n, 1_700_000_000_000, None, value) for n in range(count)])
        )
        data = PartitionProduceData(index=partition, records=records)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        deadline = time.monotonic() + 60
        while True:
            response = self.ask(PRODUCE, 9, request)
            (answer,) = response.responses[0].partition_responses
            if answer.error_code not in PARTITION_IS_NEW or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        assert not answer.error_code, response

    # --- A share coordinator's clients

    def find_coordinator(self, *keys, version=6, key_type=2):
        return self.ask(
            FIND_COORDINATOR,
            version,
            FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys)),
        )

    def initialize(self, topic_id, partition=0, *, state_epoch=1, start_offset=-1):
        response = self.ask(
            INITIALIZE_SHARE_GROUP_STATE,
            0,
            InitializeShareGroupStateRequest(
                group_id=self.group,
                topics=[
                    InitializeStateData(
                        topic_id=topic_id,
                        partitions=[
                            InitializeData(
                                partition=partition,
                                state_epoch=state_epoch,
                                start_offset=start_offset,
                            )
                        ],
                    )
                ],
            ),
        )
        return response.results[0].partitions[0].error_code

    def read_state(self, topic_id, partition=0):
        """Return (state epoch, start offset, [(first, last, state, count)])."""
        response = self.ask(
            READ_SHARE_GROUP_STATE,
            0,
            ReadShareGroupStateRequest(
                group_id=self.group,
                topics=[
                    ReadStateData(
                        topic_id=topic_id,
                        partitions=[ReadData(partition=partition, leader_epoch=-1)],
                    )
                ],
            ),
        )
        (found,) = response.results[0].partitions
        assert not found.error_code, response
        return (
            found.state_epoch,
            found.start_offset,
            [
                (b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
                for b in found.state_batches
            ],
        )

    # --- A member

    def heartbeat(self, epoch, topics=None, *, version=1):
        return self.ask(
            SHARE_GROUP_HEARTBEAT,
            version,
            ShareGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member,
                member_epoch=epoch,
                rack_id=None,
                subscribed_topic_names=topics,
            ),
        )

    def fetch(self, topic_id=None, *acks, partitions=(0,), epoch=None, version=2, **options):
        """Fetch with the next epoch of the session, unless `epoch` says another one.

        Each of `acks` is (first offset, last offset, type or types), for the first partition.
        """
        sent = self.epoch if epoch is None else epoch
        values = {
            "max_wait_ms": 500,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            **options,
        }
        topics = []
        if topic_id is not None:
            entries = [FetchPartition(partition_index=index) for index in partitions]
            entries[0].acknowledgement_batches = [
                AcknowledgementBatch(
                    first_offset=first,
                    last_offset=last,
                    acknowledge_types=[kinds] if isinstance(kinds, int) else list(kinds),
                )
                for first, last, kinds in acks
            ]
            topics = [FetchTopic(topic_id=topic_id, partitions=entries)]
        response = self.ask(
            SHARE_FETCH,
            version,
            ShareFetchRequest(
                group_id=self.group,
                member_id=self.member,
                share_session_epoch=sent,
                topics=topics,
                **values,
            ),
        )
        if epoch is None and not response.error_code:
            self.epoch += 1
        return response

    def forget(self, topic_id, *partitions):
        response = self.ask(
            SHARE_FETCH,
            2,
            ShareFetchRequest(
                group_id=self.group,
                member_id=self.member,
                share_session_epoch=self.epoch,
                max_records=0,
                forgotten_topics_data=[
                    ForgottenTopic(topic_id=topic_id, partitions=list(partitions))
                ],
            ),
        )
        self.epoch += 1
        return response

    def acknowledge(self, topic_id, *acks, partition=0, epoch=None, version=2, renews=False):
        sent = self.epoch if epoch is None else epoch
        response = self.ask(
            SHARE_ACKNOWLEDGE,
            version,
            ShareAcknowledgeRequest(
                group_id=self.group,
                member_id=self.member,
                share_session_epoch=sent,
                is_renew_ack=renews,
                topics=[
                    AcknowledgeTopic(
                        topic_id=topic_id,
                        partitions=[
                            AcknowledgePartition(
                                partition_index=partition,
                                acknowledgement_batches=[
                                    AcknowledgeBatch(
                                        first_offset=first,
                                        last_offset=last,
                                        acknowledge_types=[kinds]
                                        if isinstance(kinds, int)
                                        else list(kinds),
                                    )
                                    for first, last, kinds in acks
                                ],
                            )
                        ],
                    )
                ]
                if acks
                else [],
            ),
        )
        if epoch is None and not response.error_code:
            self.epoch += 1
        return response

    # --- Operators

    def describe_offsets(self, topics=None, *, version=1):
        return self.ask(
            DESCRIBE_SHARE_GROUP_OFFSETS,
            version,
            DescribeShareGroupOffsetsRequest(
                groups=[DescribeShareGroupOffsetsRequestGroup(group_id=self.group, topics=topics)]
            ),
        )

    def alter_offsets(self, topic, offsets):
        return self.ask(
            ALTER_SHARE_GROUP_OFFSETS,
            0,
            AlterShareGroupOffsetsRequest(
                group_id=self.group,
                topics=[
                    AlterShareGroupOffsetsRequestTopic(
                        topic_name=topic,
                        partitions=[
                            AlterShareGroupOffsetsRequestPartition(
                                partition_index=index, start_offset=offset
                            )
                            for index, offset in offsets.items()
                        ],
                    )
                ],
            ),
        )

    def delete_offsets(self, *topics):
        response = self.ask(
            DELETE_SHARE_GROUP_OFFSETS,
            0,
            DeleteShareGroupOffsetsRequest(
                group_id=self.group,
                topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics],
            ),
        )
        assert not response.error_code, response
        return response.responses

    def delete_group(self):
        response = self.ask(DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=[self.group]))
        return response.results[0].error_code


def acquired(response, partition=0):
    """Return [(first, last, count)] of one partition; None if the answer does not have it."""
    for topic in response.responses:
        for data in topic.partitions:
            if data.partition_index == partition:
                return [
                    (each.first_offset, each.last_offset, each.delivery_count)
                    for each in data.acquired_records
                ]
    return None


def offsets_in(response, partition=0):
    """Return the offsets of all records in the answer, also of those that were not acquired."""
    found = []
    for topic in response.responses:
        for data in topic.partitions:
            if data.partition_index == partition:
                raw = memoryview(bytes(data.records))
                for position, header in iterate_batches(raw):
                    batch = raw[position : position + header.size]
                    found += [record.offset for record in iterate_records(batch)]
    return found


def shown(message):
    """Return a message as plain data, for comparison."""
    if isinstance(message, list):
        return [shown(each) for each in message]
    if isinstance(message, UUID):
        return "id"
    if isinstance(message, (bytes, bytearray, memoryview)):
        return len(message)
    if hasattr(message, "FIELDS"):
        return {field.name: shown(getattr(message, field.name)) for field in message.FIELDS}
    return message
