"""RemoveRaftVoter (API key 81), version 0, flexible.

KIP-853.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Uuid
from kafkalite.wire.schema import String, nullable, structure

RemoveRaftVoterRequest = structure(
    "RemoveRaftVoterRequest",
    "cluster_id" / nullable(String),
    "voter_id" / Int32,
    "voter_directory_id" / Uuid,
)

RemoveRaftVoterResponse = structure(
    "RemoveRaftVoterResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / nullable(String),
)

REMOVE_RAFT_VOTER = Api(
    ApiKey.REMOVE_RAFT_VOTER,
    versions=(0, 0),
    flexible_from=0,
    request=RemoveRaftVoterRequest,
    response=RemoveRaftVoterResponse,
)
