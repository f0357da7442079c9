"""Others have their turn when a slice is over, and only then."""

import trio

from kafkalite.http import slices
from kafkalite.http.slices import Slices


async def test_others_have_their_turn_when_a_slice_is_over(monkeypatch):
    turns = []
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: _note(turns))
        work = Slices()
        assert work.is_over
        await work.breathe()
        await work.breathe()
        assert turns


async def test_nobody_is_waited_for_before(monkeypatch):
    monkeypatch.setattr(slices, "SLICE_S", 1_000.0)
    turns = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: _note(turns))
        work = Slices()
        assert not work.is_over
        await work.breathe()
        assert not turns


async def _note(turns):
    turns.append(True)
