"""ControlledShutdown (API key 7), versions 0-3, flexible from 3.

Sent by a broker that is about to stop to the controller. Kafka 4 has it no more: its brokers say
so in their heartbeats. Version 0 had a request header without client id, which is not read here.

v2: broker_epoch (KIP-380).
v3: compact encoding and tag sections (KIP-482).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Int64
from kafkalite.wire.schema import ArrayOf, String, since, structure

RemainingPartition = structure(
    "RemainingPartition",
    "topic_name" / String,
    "partition_index" / Int32,
)

ControlledShutdownRequest = structure(
    "ControlledShutdownRequest",
    "broker_id" / Int32,
    "broker_epoch" / since(2, Int64, default=-1),
)

ControlledShutdownResponse = structure(
    "ControlledShutdownResponse",
    "error_code" / Int16,
    "remaining_partitions" / ArrayOf(RemainingPartition),
)

CONTROLLED_SHUTDOWN = Api(
    ApiKey.CONTROLLED_SHUTDOWN,
    versions=(0, 3),
    flexible_from=3,
    request=ControlledShutdownRequest,
    response=ControlledShutdownResponse,
)
