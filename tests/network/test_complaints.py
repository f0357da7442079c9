"""Log lines that clients can cause."""

import logging

import pytest

from kafkalite.network.complaints import LINES_MAX, PERIOD_S, Complaints

logger = logging.getLogger("kafkalite.server")


@pytest.fixture
def clock():
    class Clock:
        now_s = 1_000.0

        def __call__(self):
            return self.now_s

    return Clock()


@pytest.fixture
def complaints(clock):
    return Complaints(logger, clock)


def test_so_many_lines_of_a_kind_are_written_and_no_more(complaints, caplog):
    for port in range(10 * LINES_MAX):
        complaints.warning("refusing %s:%d", "10.0.0.1", port)
    assert len(caplog.records) == LINES_MAX
    assert caplog.messages[-1] == f"refusing 10.0.0.1:{LINES_MAX - 1}"


def test_each_kind_has_its_own_lines(complaints, caplog):
    for port in range(10 * LINES_MAX):
        complaints.warning("refusing %d", port)
    complaints.warning("closing %d", 1)
    assert caplog.messages[-1] == "closing 1"


def test_what_was_left_out_is_told_after_a_while(complaints, clock, caplog):
    for port in range(LINES_MAX + 7):
        complaints.warning("refusing %d", port)
    clock.now_s += PERIOD_S
    complaints.warning("refusing %d", 99)
    complaints.warning("refusing %d", 100)
    assert caplog.messages[-2:] == ["refusing 99 (7 more such lines left out)", "refusing 100"]


def test_an_error_has_its_traceback(complaints, caplog):
    error = ValueError("so")
    complaints.error("connection from %s", "10.0.0.1", error=error)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info[1] is error
