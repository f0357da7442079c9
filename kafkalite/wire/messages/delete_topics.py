"""DeleteTopics (API key 20), versions 1-6, flexible from 4."""

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
