from datetime import datetime

import click
import pytest

from kafkalite.cli import positions as positions_module
from kafkalite.cli.positions import Anchor, Position, parse_position, position_option
from kafkalite.client.offsets import FoundOffset
from kafkalite.types import TopicPartition

NOW_MS = 1_800_000_000_000
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class TestParse:
    @pytest.mark.parametrize(
        ("text", "position"),
        [
            ("beginning", Position(Anchor.BEGINNING)),
            ("earliest", Position(Anchor.BEGINNING)),
            ("end", Position(Anchor.END)),
            ("latest", Position(Anchor.END)),
            ("42", Position(Anchor.OFFSET, 42)),
            ("-10", Position(Anchor.END, 10)),
            ("@1769860800000", Position(Anchor.TIMESTAMP, 1769860800000)),
            ("@-90s", Position(Anchor.TIMESTAMP, NOW_MS - 90_000)),
            ("@-15m", Position(Anchor.TIMESTAMP, NOW_MS - 900_000)),
            ("@-1h", Position(Anchor.TIMESTAMP, NOW_MS - 3_600_000)),
            ("@-2d", Position(Anchor.TIMESTAMP, NOW_MS - 172_800_000)),
            ("@2026-01-31T12:00Z", Position(Anchor.TIMESTAMP, 1769860800000)),
            ("@2026-01-31T13:00:00.5+01:00", Position(Anchor.TIMESTAMP, 1769860800500)),
        ],
    )
    def test_forms(self, text, position):
        assert parse_position(text, now_ms=NOW_MS) == position

    def test_time_without_a_zone_is_local(self):
        position = parse_position("@2026-01-31T12:00", now_ms=NOW_MS)
        assert position.value == datetime(2026, 1, 31, 12).astimezone().timestamp() * 1000

    @pytest.mark.parametrize("text", ["", "start", "1.5", "-", "--1", "@", "@soon", "@-5y", "²"])
    def test_anything_else_is_none(self, text):
        assert parse_position(text, now_ms=NOW_MS) is None

    def test_option_says_what_may_be_written(self):
        assert position_option(None, click.Option(["--to"]), None) is None
        with pytest.raises(click.BadParameter, match="'soon' is no position; write beginning"):
            position_option(None, click.Option(["--to"]), "soon")


class TestResolve:
    @pytest.fixture(autouse=True)
    def offsets(self, monkeypatch):
        """P0 holds offsets 5 to 19, P1 none; times are ten times the offset."""
        held = {P0: (5, 20), P1: (0, 0)}
        by_time = {
            p: lambda ms, b=b, e=e: (
                FoundOffset(max(b, ms // 10), ms) if ms // 10 < e else FoundOffset(-1, -1)
            )
            for p, (b, e) in held.items()
        }
        monkeypatch.setattr(
            positions_module, "beginnings", lambda client, places: {p: held[p][0] for p in places}
        )
        monkeypatch.setattr(
            positions_module,
            "ends",
            lambda client, places, isolation: {p: held[p][1] for p in places},
        )
        monkeypatch.setattr(
            positions_module,
            "list_offsets",
            lambda client, times, isolation: {p: by_time[p](ms) for p, ms in times.items()},
        )

    @pytest.mark.parametrize(
        ("position", "expected"),
        [
            (Position(Anchor.BEGINNING), {P0: 5, P1: 0}),
            (Position(Anchor.END), {P0: 20, P1: 0}),
            (Position(Anchor.END, 3), {P0: 17, P1: 0}),
            (Position(Anchor.END, 99), {P0: 5, P1: 0}),
            (Position(Anchor.OFFSET, 7), {P0: 7, P1: 0}),
            (Position(Anchor.OFFSET, 1), {P0: 5, P1: 0}),
            (Position(Anchor.OFFSET, 99), {P0: 20, P1: 0}),
            (Position(Anchor.TIMESTAMP, 120), {P0: 12, P1: 0}),
            (Position(Anchor.TIMESTAMP, 999), {P0: 20, P1: 0}),
        ],
    )
    def test_stays_within_what_the_partition_holds(self, position, expected):
        assert position.resolve(None, [P0, P1]) == expected
