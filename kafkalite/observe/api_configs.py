"""The API's settings: of topics, brokers, groups and the cluster, with where each comes from."""

from typing import Any, Final

from kafkalite.http.routing import HttpError, HttpRequest, Route
from kafkalite.observe.answers import Routes, field
from kafkalite.observe.cluster import Cluster, check
from kafkalite.wire.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkalite.wire.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TYPES: Final = {"topic": 2, "broker": 4, "client-metrics": 16, "group": 32}
SOURCES: Final = {
    0: "unknown",
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "static",
    5: "default",
    6: "logger",
    7: "client metrics",
    8: "group",
}
SET, DELETE = 0, 1


class ConfigRoutes:
    """Answers about settings."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def routes(self) -> list[Route]:
        """Return what is answered."""
        add = Routes(self._cluster)
        add.get("/configs/{type}/{name}", self._describe)
        add.write("POST", "/configs/{type}/{name}", self._alter)
        return add.list

    async def _describe(self, request: HttpRequest) -> dict[str, Any]:
        kind, name = _resource(request)
        message = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=None
                )
            ],
            include_synonyms=True,
            include_documentation=True,
        )
        broker = int(name) if kind == TYPES["broker"] and name.isdigit() else None
        (result,) = (await self._cluster.ask(DESCRIBE_CONFIGS, message, broker=broker)).results
        check(result.error_code, result.error_message)
        configs = [
            {
                "name": each.name,
                "value": None if each.is_sensitive else each.value,
                "source": SOURCES.get(each.config_source, "unknown"),
                "is_default": each.config_source == 5,
                "read_only": each.read_only,
                "sensitive": each.is_sensitive,
                "documentation": each.documentation,
                "synonyms": [
                    {
                        "name": synonym.name,
                        "value": synonym.value,
                        "source": SOURCES.get(synonym.source, "unknown"),
                    }
                    for synonym in each.synonyms or ()
                ],
            }
            for each in sorted(result.configs, key=lambda each: each.name)
        ]
        return {"type": request.parameters["type"], "name": name, "configs": configs}

    async def _alter(self, request: HttpRequest) -> dict[str, Any]:
        kind, name = _resource(request)
        body = request.json()
        changes = [
            AlterableConfig(name=str(key), config_operation=SET, value=str(value))
            for key, value in field(body, "set", dict, {}).items()
        ]
        changes += [
            AlterableConfig(name=str(key), config_operation=DELETE, value=None)
            for key in field(body, "delete", list, [])
        ]
        message = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)
            ],
            validate_only=field(body, "dry_run", bool, False),
        )
        answer = await self._cluster.ask_controller(INCREMENTAL_ALTER_CONFIGS, message)
        (result,) = answer.responses
        check(result.error_code, result.error_message)
        return {"type": request.parameters["type"], "name": name, "changed": len(changes)}


def _resource(request: HttpRequest) -> tuple[int, str]:
    kind = TYPES.get(request.parameters["type"])
    if kind is None:
        raise HttpError(404, f"settings are of {', '.join(TYPES)}")
    name = request.parameters["name"]
    return kind, "" if kind == TYPES["broker"] and name == "default" else name
