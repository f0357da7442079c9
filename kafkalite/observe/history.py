"""Rates and lag over the last hour: one sample every ten seconds, of a bounded number of topics."""

from collections import deque
from contextlib import suppress
from typing import Any, Final

import trio

from kafkalite.http.routing import HttpRequest, Route
from kafkalite.observe.answers import Routes
from kafkalite.observe.api_groups import GroupRoutes
from kafkalite.observe.groups import list_groups
from kafkalite.observe.inside import InsideCluster
from kafkalite.wire.errors import KafkaError

INTERVAL_S: Final = 10.0
SAMPLES_MAX: Final = 361
TOPICS_MAX: Final = 100
GROUPS_MAX: Final = 100

Counts = tuple[int, int, int]
"""Records in, bytes in, bytes out."""


class History:
    """Samples of one broker, taken since somebody first looked."""

    def __init__(self, cluster: InsideCluster) -> None:
        self._cluster = cluster
        self._samples: deque[tuple[int, Counts, dict[str, Counts], dict[str, int]]] = deque(
            maxlen=SAMPLES_MAX
        )

    def routes(self) -> list[Route]:
        """Return what is answered."""
        add = Routes(self._cluster)
        add.get("/rates", self._rates)
        return add.list

    async def run(self) -> None:
        """Take samples until cancelled."""
        while True:
            # An answer that does not come must not end the port, and the broker with it.
            with suppress(trio.TooSlowError):
                await self._sample()
            await trio.sleep(INTERVAL_S)

    async def _sample(self) -> None:
        parts = self._cluster.parts
        traffic = parts.services.replicas.traffic
        total = traffic.total()
        busiest = sorted(traffic.topics.items(), key=lambda each: each[1].bytes_in, reverse=True)[
            :TOPICS_MAX
        ]
        topics = {name: (each.messages_in, each.bytes_in, each.bytes_out) for name, each in busiest}
        lags: dict[str, int] = {}
        try:
            groups = (await list_groups(self._cluster))[:GROUPS_MAX]
            await GroupRoutes(self._cluster).add_lags(groups)
            lags = {group["group_id"]: group["lag"] for group in groups if group["lag"] is not None}
        except KafkaError:
            pass
        self._samples.append(
            (
                parts.services.clock.wall_ms(),
                (total.messages_in, total.bytes_in, total.bytes_out),
                topics,
                lags,
            )
        )

    async def _rates(self, request: HttpRequest) -> dict[str, Any]:
        """Return rates between neighbouring samples, and the lags; of one topic if it is named."""
        await trio.lowlevel.checkpoint()
        topic = request.text("topic")
        if self._samples and not topic:
            now_ms = self._cluster.parts.services.clock.wall_ms()
            if now_ms - self._samples[-1][0] > INTERVAL_S * 500:
                await self._sample()
        points = []
        before = None
        for at_ms, total, topics, lags in self._samples:
            counts = topics.get(topic, (0, 0, 0)) if topic else total
            if before is not None and at_ms > before[0]:
                seconds = (at_ms - before[0]) / 1_000
                rates = [
                    max(0.0, round((now - then) / seconds, 3))
                    for now, then in zip(counts, before[1], strict=True)
                ]
                points.append(
                    {
                        "at_ms": at_ms,
                        "messages_in": rates[0],
                        "bytes_in": rates[1],
                        "bytes_out": rates[2],
                        "lags": lags,
                    }
                )
            before = (at_ms, counts)
        return {"interval_s": INTERVAL_S, "topic": topic or None, "points": points}
