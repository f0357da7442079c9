"""Operations that a client is told it may perform (KIP-430): all, since there is no authorizer.

Each is a bit, numbered as in Kafka's AclOperation.
"""

from typing import Final

NOT_REQUESTED: Final = -(2**31)

_CREATE, _DELETE, _ALTER, _DESCRIBE, _CLUSTER_ACTION = 5, 6, 7, 8, 9
_DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 10, 11, 12
_READ, _WRITE = 3, 4


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


ON_TOPIC: Final = _bits(
    _READ, _WRITE, _CREATE, _DESCRIBE, _DELETE, _ALTER, _DESCRIBE_CONFIGS, _ALTER_CONFIGS
)
ON_CLUSTER: Final = _bits(
    _CREATE,
    _CLUSTER_ACTION,
    _DESCRIBE_CONFIGS,
    _ALTER_CONFIGS,
    _IDEMPOTENT_WRITE,
    _ALTER,
    _DESCRIBE,
)
ON_GROUP: Final = _bits(_READ, _DESCRIBE, _DELETE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS)
