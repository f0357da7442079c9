"""DeleteAcls (API key 31), versions 1-3, flexible from 2.

KIP-140.

v1: the type of a pattern (KIP-290).
v2: compact encoding and tag sections (KIP-482).
v3: resource type user (KIP-373).
"""

from kafkalite.wire.api import Api, ApiKey
from kafkalite.wire.primitives import Int8, Int16, Int32
from kafkalite.wire.schema import ArrayOf, String, default, nullable, structure

DeleteAclsFilter = structure(
    "DeleteAclsFilter",
    "resource_type_filter" / Int8,
    "resource_name_filter" / nullable(String),
    "pattern_type_filter" / default(Int8, 3),
    "principal_filter" / nullable(String),
    "host_filter" / nullable(String),
    "operation" / Int8,
    "permission_type" / Int8,
)

DeleteAclsRequest = structure(
    "DeleteAclsRequest",
    "filters" / ArrayOf(DeleteAclsFilter),
)

DeleteAclsMatchingAcl = structure(
    "DeleteAclsMatchingAcl",
    "error_code" / Int16,
    "error_message" / nullable(String),
    "resource_type" / Int8,
    "resource_name" / String,
    "pattern_type" / default(Int8, 3),
    "principal" / String,
    "host" / String,
    "operation" / Int8,
    "permission_type" / Int8,
)

DeleteAclsFilterResult = structure(
    "DeleteAclsFilterResult",
    "error_code" / Int16,
    "error_message" / nullable(String),
    "matching_acls" / ArrayOf(DeleteAclsMatchingAcl),
)

DeleteAclsResponse = structure(
    "DeleteAclsResponse",
    "throttle_time_ms" / Int32,
    "filter_results" / ArrayOf(DeleteAclsFilterResult),
)

DELETE_ACLS = Api(
    ApiKey.DELETE_ACLS,
    versions=(1, 3),
    flexible_from=2,
    request=DeleteAclsRequest,
    response=DeleteAclsResponse,
)
