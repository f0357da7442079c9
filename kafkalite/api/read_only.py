"""Refusals of a broker that shows a data directory and changes nothing (`kafkalite.read.only`)."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafkalite.api.handler import Handler
from kafkalite.wire.api import ApiKey
from kafkalite.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafkalite.api.context import RequestContext

    Authorize = Callable[[Handler, Any, RequestContext], Any]

MESSAGE: Final = "this broker is read-only (kafkalite serve --read-only): nothing can be written"

_POLICY, _CLUSTER = ErrorCode.POLICY_VIOLATION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_TOPIC, _GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
_TRANSACTION: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

REFUSALS: Final[Mapping[ApiKey, ErrorCode]] = {
    ApiKey.PRODUCE: _POLICY,
    ApiKey.CREATE_TOPICS: _POLICY,
    ApiKey.CREATE_PARTITIONS: _POLICY,
    ApiKey.ALTER_CONFIGS: _POLICY,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _POLICY,
    ApiKey.DELETE_RECORDS: _POLICY,
    ApiKey.DELETE_TOPICS: _TOPIC,
    ApiKey.OFFSET_COMMIT: _TOPIC,
    ApiKey.OFFSET_DELETE: _GROUP,
    ApiKey.DELETE_GROUPS: _GROUP,
    ApiKey.INIT_PRODUCER_ID: _CLUSTER,
    ApiKey.ADD_PARTITIONS_TO_TXN: _TRANSACTION,
    ApiKey.ADD_OFFSETS_TO_TXN: _TRANSACTION,
    ApiKey.END_TXN: _TRANSACTION,
    ApiKey.TXN_OFFSET_COMMIT: _TRANSACTION,
    ApiKey.SHARE_GROUP_HEARTBEAT: _GROUP,
    ApiKey.SHARE_FETCH: _GROUP,
    ApiKey.SHARE_ACKNOWLEDGE: _GROUP,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _GROUP,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _GROUP,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _GROUP,
    ApiKey.CREATE_ACLS: _CLUSTER,
    ApiKey.DELETE_ACLS: _CLUSTER,
    ApiKey.ELECT_LEADERS: _CLUSTER,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _CLUSTER,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _CLUSTER,
    ApiKey.ALTER_CLIENT_QUOTAS: _CLUSTER,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _CLUSTER,
    ApiKey.UPDATE_FEATURES: _CLUSTER,
    ApiKey.CREATE_DELEGATION_TOKEN: _CLUSTER,
    ApiKey.RENEW_DELEGATION_TOKEN: _CLUSTER,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _CLUSTER,
    ApiKey.WRITE_TXN_MARKERS: _CLUSTER,
}
"""Errors that clients do not try again, by what would write. Members of consumer groups may join:
what is stored of them is gone with the broker."""


def refusing(then: "Authorize | None") -> "Authorize":
    """Return what refuses to write, and has everything else answered by `then` or the handler."""

    def handle(handler: Handler, request: Any, context: "RequestContext") -> Any:
        code = REFUSALS.get(handler.api.key)
        if code is not None:
            raise KafkaError(code, MESSAGE)
        return handler.handle(request, context) if then is None else then(handler, request, context)

    return handle
