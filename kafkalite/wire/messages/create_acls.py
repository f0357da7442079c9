"""CreateAcls (API key 30), versions 1-3, flexible from 2.

KIP-140.

v1: the type of a pattern (KIP-290).
v2: compact encoding and tag sections (KIP-482).
v3: resource type user (KIP-373).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, default, nullable, structure

AclCreation = structure(
    "AclCreation",
    "resource_type" / Int8,
    "resource_name" / String,
    "resource_pattern_type" / default(Int8, 3),
    "principal" / String,
    "host" / String,
    "operation" / Int8,
    "permission_type" / Int8,
)

CreateAclsRequest = structure(
    "CreateAclsRequest",
    "creations" / ArrayOf(AclCreation),
)

AclCreationResult = structure(
    "AclCreationResult",
    "error_code" / Int16,
    "error_message" / nullable(String),
)

CreateAclsResponse = structure(
    "CreateAclsResponse",
    "throttle_time_ms" / Int32,
    "results" / ArrayOf(AclCreationResult),
)

CREATE_ACLS = Api(
    ApiKey.CREATE_ACLS,
    versions=(1, 3),
    flexible_from=2,
    request=CreateAclsRequest,
    response=CreateAclsResponse,
)
