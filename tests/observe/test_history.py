"""Samples of rates and lag, which nobody may stop."""

from types import SimpleNamespace

import trio

from kafkalite.observe import history
from kafkalite.observe.history import INTERVAL_S, History

TRAFFIC = SimpleNamespace(
    topics={}, total=lambda: SimpleNamespace(messages_in=1, bytes_in=2, bytes_out=3)
)
CLUSTER = SimpleNamespace(
    parts=SimpleNamespace(
        services=SimpleNamespace(
            replicas=SimpleNamespace(traffic=TRAFFIC),
            clock=SimpleNamespace(wall_ms=lambda: int(trio.current_time() * 1_000)),
        )
    )
)


async def test_samples_go_on_after_a_broker_gave_no_answer(monkeypatch, autojump_clock):
    asked = 0

    async def list_groups(cluster):
        nonlocal asked
        asked += 1
        if asked == 2:
            raise trio.TooSlowError
        await trio.lowlevel.checkpoint()
        return []

    monkeypatch.setattr(history, "list_groups", list_groups)
    with trio.move_on_after(3.5 * INTERVAL_S):
        await History(CLUSTER).run()
    assert asked == 4
