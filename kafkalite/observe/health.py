"""/health/live and /health/ready: is the broker there, and may clients and tests begin."""

from dataclasses import dataclass
from typing import Any

import trio

from kafkalite.http.routing import HttpRequest, HttpResponse, Route, json_response
from kafkalite.observe.cluster import PAUSE_S, metadata
from kafkalite.observe.groups import wait_settled
from kafkalite.observe.inside import InsideCluster
from kafkalite.wire.errors import ErrorCode

WAIT_MAX_MS = 600_000


@dataclass(slots=True, frozen=True)
class Check:
    """One thing that must be so."""

    name: str
    ok: bool
    detail: str


class Health:
    """Answers for one broker."""

    def __init__(self, cluster: InsideCluster) -> None:
        self._cluster = cluster

    def routes(self) -> list[Route]:
        """Return what is answered, without a token: it tells next to nothing."""
        return [
            Route(method="GET", path="/health/live", handler=self._live, is_open=True),
            Route(method="GET", path="/health/ready", handler=self._ready, is_open=True),
        ]

    async def _live(self, request: HttpRequest) -> HttpResponse:
        del request
        await trio.lowlevel.checkpoint()
        return json_response({"status": "live"})

    async def _ready(self, request: HttpRequest) -> HttpResponse:
        """Answer at once, or as soon as the group and topic that are named are there.

        `timeout` is in milliseconds; without it nobody waits.
        """
        timeout_ms = request.number("timeout", 0, high=WAIT_MAX_MS)
        checks = self.checks()
        with trio.move_on_after(timeout_ms / 1_000):
            while not all(check.ok for check in checks):
                await trio.sleep(PAUSE_S)
                checks = self.checks()
        if "topic" in request.query:
            checks.append(await self._wait_topic(request.text("topic"), timeout_ms))
        if "group" in request.query:
            members = request.number("members", -1, low=0) if "members" in request.query else None
            checks.append(await self._wait_group(request.text("group"), members, timeout_ms))
        ok = all(check.ok for check in checks)
        body: dict[str, Any] = {
            "status": "ready" if ok else "not ready",
            "checks": [
                {"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks
            ],
        }
        if not ok:
            failed = next(check for check in checks if not check.ok)
            body["reason"] = f"{failed.name}: {failed.detail}"
        return json_response(body, 200 if ok else 503)

    def checks(self) -> list[Check]:
        """Return what must be so for clients to be served."""
        parts = self._cluster.parts
        services = parts.services
        image, node_id = services.metadata.image, services.config.node_id
        is_loading = services.coordinators.is_loading()
        controller = image.controller_id
        shrunk = sum(
            each.leader is not None and each.leader.is_under_min_isr
            for each in services.replicas.partitions()
        )
        return [
            Check("listeners", ok=True, detail=f"clients connect to {parts.bootstrap}"),
            Check(
                "registered",
                ok=node_id in image.brokers,
                detail=f"broker {node_id} is in the cluster's metadata"
                if node_id in image.brokers
                else f"broker {node_id} is not among {sorted(image.brokers)}",
            ),
            Check(
                "controller",
                ok=controller in image.brokers,
                detail=f"broker {controller} is the controller"
                if controller in image.brokers
                else "no broker is the controller",
            ),
            Check(
                "coordinators",
                ok=not is_loading,
                detail="groups and transactions are being loaded" if is_loading else "loaded",
            ),
            Check(
                "in-sync replicas",
                ok=True,
                detail=f"{shrunk} partitions led here are below min.insync.replicas",
            ),
        ]

    async def _wait_topic(self, name: str, timeout_ms: int) -> Check:
        detail = f"there is no topic {name!r}"
        with trio.move_on_after(max(timeout_ms, 1_000 * PAUSE_S) / 1_000):
            while True:
                (topic,) = (await metadata(self._cluster, [name])).topics
                if topic.error_code == ErrorCode.NONE:
                    led = sum(each.leader_id >= 0 for each in topic.partitions)
                    detail = f"{led} of {len(topic.partitions)} partitions have a leader"
                    if led == len(topic.partitions):
                        return Check("topic", ok=True, detail=detail)
                if timeout_ms == 0:
                    break
                await trio.sleep(PAUSE_S)
        return Check("topic", ok=False, detail=detail)

    async def _wait_group(self, group_id: str, members: int | None, timeout_ms: int) -> Check:
        with trio.move_on_after(max(timeout_ms, 1_000 * PAUSE_S) / 1_000):
            group = await wait_settled(self._cluster, group_id, members)
            return Check(
                "group", ok=True, detail=f"{group.state} with {len(group.members)} members"
            )
        wanted = "members" if members is None else f"{members} members"
        return Check("group", ok=False, detail=f"{group_id!r} is not stable with {wanted}")
