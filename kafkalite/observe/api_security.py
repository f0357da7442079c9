"""The API's security: users that log in, and who may do what. It only looks."""

from typing import Any, Final

from kafkalite.http.routing import HttpRequest, Route
from kafkalite.observe.answers import Routes
from kafkalite.observe.cluster import Cluster, check
from kafkalite.security.acls import Operation, PatternType, Permission, ResourceType
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from kafkalite.wire.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
)

MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
ABSENT: Final = (ErrorCode.SECURITY_DISABLED, ErrorCode.UNSUPPORTED_VERSION)


class SecurityRoutes:
    """Answers about users and access control lists."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def routes(self) -> list[Route]:
        """Return what is answered."""
        add = Routes(self._cluster)
        add.get("/users", self._users)
        add.get("/acls", self._acls)
        return add.list

    async def _users(self, request: HttpRequest) -> dict[str, Any]:
        """List the users with SCRAM credentials; of those, nothing secret is known here."""
        del request
        answer = await self._cluster.ask(
            DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest(users=None)
        )
        check(answer.error_code, answer.error_message)
        users = [
            {
                "name": result.user,
                "credentials": [
                    {
                        "mechanism": MECHANISMS.get(each.mechanism, str(each.mechanism)),
                        "iterations": each.iterations,
                    }
                    for each in result.credential_infos
                ],
            }
            for result in sorted(answer.results, key=lambda each: each.user)
        ]
        return {"count": len(users), "users": users}

    async def _acls(self, request: HttpRequest) -> dict[str, Any]:
        """List who may do what; `authorizer` is false where everybody may do everything."""
        del request
        wanted = DescribeAclsRequest(
            resource_type_filter=ResourceType.ANY,
            pattern_type_filter=PatternType.ANY,
            operation=Operation.ANY,
            permission_type=Permission.ANY,
        )
        try:
            answer = await self._cluster.ask(DESCRIBE_ACLS, wanted)
            check(answer.error_code, answer.error_message)
        except KafkaError as error:
            if error.code in ABSENT:
                return {"authorizer": False, "count": 0, "acls": []}
            raise
        acls = [
            {
                "resource_type": ResourceType(resource.resource_type).name,
                "pattern_type": PatternType(resource.pattern_type).name,
                "resource": resource.resource_name,
                "principal": acl.principal,
                "host": acl.host,
                "operation": Operation(acl.operation).name,
                "permission": Permission(acl.permission_type).name,
            }
            for resource in answer.resources
            for acl in resource.acls
        ]
        acls.sort(key=lambda each: [*each.values()])
        return {"authorizer": True, "count": len(acls), "acls": acls}
