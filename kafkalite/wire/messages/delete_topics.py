"""DeleteTopics (API key 20), versions 1-6, flexible from 4.

Version 0 left Kafka with 4.0 (KIP-896).

v2: the throttled client gets its answer before the pause (KIP-219).
v3: TOPIC_DELETION_DISABLED may be answered (KIP-322).
v4: compact encoding and tag sections (KIP-482).
v5: error_message; THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599).
v6: topics by name or by id (KIP-516).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int16, Int32, Uuid
from kafkalite.wire.schema import ArrayOf, String, nullable, optional, since, structure, until

DeleteTopicState = structure(
    "DeleteTopicState",
    "name" / optional(String),
    "topic_id" / Uuid,
)

DeleteTopicsRequest = structure(
    "DeleteTopicsRequest",
    "topics" / since(6, ArrayOf(DeleteTopicState)),
    "topic_names" / until(5, ArrayOf(String)),
    "timeout_ms" / Int32,
)

DeletableTopicResult = structure(
    "DeletableTopicResult",
    "name" / nullable(String, since=6),
    "topic_id" / since(6, Uuid),
    "error_code" / Int16,
    "error_message" / since(5, optional(String)),
)

DeleteTopicsResponse = structure(
    "DeleteTopicsResponse",
    "throttle_time_ms" / Int32,
    "responses" / ArrayOf(DeletableTopicResult),
)

DELETE_TOPICS = Api(
    ApiKey.DELETE_TOPICS,
    versions=(1, 6),
    flexible_from=4,
    request=DeleteTopicsRequest,
    response=DeleteTopicsResponse,
)
