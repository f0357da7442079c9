"""The history checker finds planted anomalies of each kind, and nothing in a good history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.testing.history import Anomaly, History

T = ("t", 0)


def written(history, *values, producer="p", start=0):
    for offset, value in enumerate(values, start):
        history.acknowledge(history.send(producer, *T, value), offset=offset)


def read_all(history, *values, consumer="c", start=0):
    for offset, value in enumerate(values, start):
        history.read(consumer, *T, offset=offset, value=value)
    history.complete(*T, end_offset=start + len(values), start_offset=start)


def kinds(history):
    return [finding.anomaly for finding in history.check()]


def test_good_history_has_no_findings():
    history = History()
    written(history, "a", "b", "c")
    read_all(history, "a", "b", "c")
    read_all(history, "a", "b", "c", consumer="d")
    assert history.check() == []


def test_unknown_write_may_be_there_or_not():
    history = History()
    written(history, "a")
    history.send("p", *T, "b")
    history.send("p", *T, "c")
    read_all(history, "a", "c")
    assert history.check() == []


def test_missing_acknowledged_write_is_lost():
    history = History()
    written(history, "a", "b", "c")
    for offset, value in ((0, "a"), (2, "c")):
        history.read("c", *T, offset=offset, value=value)
    history.complete(*T, end_offset=3)
    assert kinds(history) == [Anomaly.LOST]
    assert "'b' of p was acknowledged at offset 1" in str(history.check()[0])


def test_write_beyond_what_was_read_is_not_lost():
    history = History()
    written(history, "a", "b")
    read_all(history, "a")
    assert history.check() == []


def test_write_below_the_log_start_is_not_lost():
    history = History()
    written(history, "a", "b")
    read_all(history, "b", start=1)
    assert history.check() == []


def test_committed_write_without_an_offset_must_be_read():
    history = History()
    history.acknowledge(history.send("p", *T, "a"))
    written(history, "b", producer="q")
    read_all(history, "b")
    assert kinds(history) == [Anomaly.LOST]


def test_write_at_two_offsets_is_a_duplicate():
    history = History()
    history.acknowledge(history.send("p", *T, "a"))
    read_all(history, "a", "a")
    assert kinds(history) == [Anomaly.DUPLICATE]


def test_write_elsewhere_than_acknowledged_is_inconsistent():
    history = History()
    written(history, "a", start=5)
    read_all(history, "a", start=4)
    assert kinds(history) == [Anomaly.INCONSISTENT_OFFSETS]


def test_two_values_at_one_offset_are_inconsistent():
    history = History()
    for value in ("a", "b"):
        history.send("p", *T, value)
    history.read("c", *T, offset=0, value="a")
    history.read("d", *T, offset=0, value="b")
    assert kinds(history) == [Anomaly.INCONSISTENT_OFFSETS]


def test_value_that_was_read_and_is_beyond_the_end_has_vanished():
    history = History()
    written(history, "a")
    history.send("p", *T, "b")
    read_all(history, "a", "b", consumer="early")
    history.complete(*T, end_offset=1)
    assert kinds(history) == [Anomaly.VANISHED]


def test_aborted_write_must_not_be_read():
    history = History()
    history.fail(history.send("p", *T, "a"))
    read_all(history, "a")
    assert kinds(history) == [Anomaly.ABORTED_READ]


def test_value_that_nobody_wrote_is_a_phantom():
    history = History()
    read_all(history, "a")
    assert kinds(history) == [Anomaly.PHANTOM_READ]


def test_value_in_another_partition_is_a_phantom():
    history = History()
    history.send("p", "t", 1, "a")
    read_all(history, "a")
    assert kinds(history) == [Anomaly.PHANTOM_READ]


def test_reader_that_goes_back_is_found():
    history = History()
    for value in ("a", "b"):
        history.send("p", *T, value)
    history.read("c", *T, offset=1, value="b")
    history.read("c", *T, offset=0, value="a")
    assert kinds(history) == [Anomaly.NON_MONOTONIC]


def test_reader_may_go_back_after_a_seek():
    history = History()
    history.send("p", *T, "a")
    history.read("c", *T, offset=0, value="a")
    history.seek("c", *T)
    history.read("c", *T, offset=0, value="a")
    assert history.check() == []


def test_writes_of_one_producer_out_of_order_are_found():
    history = History()
    for value in ("a", "b"):
        history.send("p", *T, value)
    read_all(history, "b", "a")
    assert kinds(history) == [Anomaly.NON_MONOTONIC]


def test_merged_histories_are_checked_as_one():
    producer, consumer = History(), History()
    written(producer, "a", "b")
    consumer.read("c", *T, offset=0, value="b")
    consumer.complete(*T, end_offset=2)
    producer.merge(consumer)
    assert set(kinds(producer)) == {Anomaly.INCONSISTENT_OFFSETS, Anomaly.LOST}


def test_value_sent_twice_is_the_testers_mistake():
    history = History()
    history.send("p", *T, "a")
    with pytest.raises(AssertionError, match="unique"):
        history.send("p", *T, "a")


PLANTS = ["none", "lose", "duplicate", "swap", "abort", "phantom"]


@given(
    st.lists(st.tuples(st.sampled_from("pqr"), st.booleans()), min_size=2, max_size=30),
    st.sampled_from(PLANTS),
    st.data(),
)
def test_what_is_planted_is_found_and_nothing_else(sends, plant, data):
    """Build the log of a correct broker, then spoil it in one way."""
    history = History()
    log = []
    for number, (producer, committed) in enumerate(sends):
        write = history.send(producer, *T, f"v{number}")
        if committed:
            history.acknowledge(write)
            log.append(write)
        else:
            history.fail(write)
    expected = set()
    if plant == "lose" and len(log) > 1:
        log.pop(data.draw(st.integers(0, len(log) - 1)))
        expected = {Anomaly.LOST}
    elif plant == "duplicate" and log:
        log.insert(0, log[0])
        expected = {Anomaly.DUPLICATE}
    elif plant == "swap" and len(log) > 1 and log[0].producer == log[1].producer:
        log[0], log[1] = log[1], log[0]
        expected = {Anomaly.NON_MONOTONIC}
    values = [write.value for write in log]
    if plant == "abort" and not sends[-1][1]:
        values.append(f"v{len(sends) - 1}")
        expected = {Anomaly.ABORTED_READ}
    elif plant == "phantom":
        values.append("nobody's")
        expected = {Anomaly.PHANTOM_READ}
    read_all(history, *values)
    assert set(kinds(history)) == expected
