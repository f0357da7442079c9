"""The leader's core against a plain model of it."""

from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafkalite.wire.errors import ErrorCode
from tests.isr.leader_kit import LAG_MS, accept, fetch, make_leader


@dataclass
class Model:
    """The same rules, plainly: from the whole history each time."""

    replicas: tuple = (1, 2, 3)
    isr: list = field(default_factory=lambda: [1, 2, 3])
    pending: tuple | None = None  # ("expand", who) or ("shrink", who)
    resigns: bool = False
    end: int = 10
    epoch_start: int = 10
    watermark: int = 4
    min_isr: int = 2
    now_ms: int = 0
    told_ms: int = 0
    """The time of the last event that has one: a core has no clock."""
    fetches: dict = field(default_factory=lambda: {2: [], 3: []})  # (time, offset, leader's end)

    def end_of(self, replica):
        return self.fetches[replica][-1][1] if self.fetches[replica] else -1

    def caught_up(self, replica):
        if self.end_of(replica) == self.end:
            return True
        times = [0] if replica in (2, 3) else []
        ends, times_of = [(0, 10)], times
        for at, offset, leader_end in self.fetches[replica]:
            if offset >= leader_end:
                times_of.append(at)
            elif offset >= max(end for _, end in ends):
                times_of.append(ends[-1][0])
            ends.append((at, leader_end))
        return self.told_ms - max(times_of) <= LAG_MS

    def maximal(self):
        added = [self.pending[1]] if self.pending and self.pending[0] == "expand" else []
        return [*self.isr, *added]

    def settle(self):
        awaited = [
            replica
            for replica in (2, 3)
            if replica in self.maximal() or (self.fetches[replica] and self.caught_up(replica))
        ]
        if len(self.isr) >= self.min_isr:
            least = min([self.end, *map(self.end_of, awaited)])
            self.watermark = max(self.watermark, least)

    def fetch(self, replica, offset):
        self.told_ms = self.now_ms
        self.fetches[replica].append((self.now_ms, offset, self.end))
        may = offset >= self.watermark and offset >= self.epoch_start
        if self.pending is None and replica not in self.isr and may:
            self.pending = ("expand", replica)

    def tick(self):
        self.told_ms = self.now_ms
        lagging = [r for r in self.isr if r != 1 and not self.caught_up(r)]
        if self.pending is None and lagging:
            self.pending = ("shrink", lagging)

    def step_down(self):
        self.resigns = True
        self.resign_if_due()

    def resign_if_due(self):
        if self.resigns and self.pending is None:
            self.resigns = False
            if self.isr != [1]:
                self.pending = ("shrink", [1])

    @property
    def is_resigning(self):
        return self.pending == ("shrink", [1])

    def reject(self):
        self.resigns = self.resigns and not self.is_resigning
        self.pending = None
        self.resign_if_due()

    def accept(self):
        kind, who = self.pending
        if kind == "expand":
            self.isr.append(who)
        else:
            self.isr = [member for member in self.isr if member not in who]
        self.pending = None
        self.resign_if_due()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("fetch"), st.sampled_from([2, 3]), st.integers(0, 6)),
        st.tuples(st.just("wait"), st.sampled_from([1, 300, LAG_MS, 2 * LAG_MS])),
        st.tuples(st.just("tick")),
        st.tuples(st.just("accept")),
        st.tuples(st.just("reject")),
        st.tuples(st.just("step_down")),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(steps)
@example(
    [
        *[("wait", 2 * LAG_MS), ("fetch", 2, 0), ("step_down",), ("step_down",), ("reject",)],
        *[("tick",), ("accept",), ("fetch", 3, 0)],
    ]
)
def test_decides_as_the_plain_model_does(steps):
    """Goal: incremental bookkeeping equals what follows from the history of all fetches.

    The example: a resignation that was refused is not made again at the next change of the ISR.
    """
    model = Model()
    leader = make_leader(min_insync_replicas=2)
    proposal = None
    for step in steps:
        before = leader.high_watermark
        moved = None
        match step:
            case ("append", count):
                model.end += count
                model.resigns = False
                moved = leader.on_append(model.end)
                model.settle()
            case ("fetch", replica, behind):
                offset = max(model.end - behind, 0)
                changed = offset != model.end_of(replica)
                model.fetch(replica, offset)
                moved = fetch(leader, replica, offset, now_ms=model.now_ms)
                if changed:
                    model.settle()
            case ("wait", duration_ms):
                model.now_ms += duration_ms
                continue
            case ("tick",):
                model.tick()
                moved = leader.on_tick(model.now_ms)
                model.settle()
            case ("step_down",):
                model.step_down()
                leader.step_down()
            case ("accept",) if model.pending and not model.is_resigning:
                model.accept()
                moved = accept(leader, tuple(model.isr))
                model.settle()
            case ("reject",) if model.pending and proposal:
                model.reject()
                moved = leader.on_isr_rejected(proposal, ErrorCode.INELIGIBLE_REPLICA)
                model.settle()
            case _:
                continue
        proposal = leader.take_isr_change() or proposal
        assert (leader.high_watermark > before) == bool(moved)
        assert leader.state.isr == tuple(model.isr)
        assert sorted(leader.state.maximal_isr) == sorted(model.maximal())
        assert leader.high_watermark == model.watermark
