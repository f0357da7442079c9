"""AddRaftVoter (API key 80), versions 0-1, all flexible.

KIP-853.

v1: ack_when_committed.
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Bool, Int16, Int32, UInt16, Uuid
from kafkalite.wire.schema import ArrayOf, String, nullable, since, structure

Listener = structure(
    "Listener",
    "name" / String,
    "host" / String,
    "port" / UInt16,
)

AddRaftVoterRequest = structure(
    "AddRaftVoterRequest",
    "cluster_id" / nullable(String),
    "timeout_ms" / Int32,
    "voter_id" / Int32,
    "voter_directory_id" / Uuid,
    "listeners" / ArrayOf(Listener),
    "ack_when_committed" / since(1, Bool, default=True),
)

AddRaftVoterResponse = structure(
    "AddRaftVoterResponse",
    "throttle_time_ms" / Int32,
    "error_code" / Int16,
    "error_message" / nullable(String),
)

ADD_RAFT_VOTER = Api(
    ApiKey.ADD_RAFT_VOTER,
    versions=(0, 1),
    flexible_from=0,
    request=AddRaftVoterRequest,
    response=AddRaftVoterResponse,
)
