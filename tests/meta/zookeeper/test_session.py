"""The session with ZooKeeper, as it is counted for dashboards."""

from time import perf_counter

from kafkalite.meta.zookeeper.session import LATENCIES_KEPT, Session


def test_states_are_counted_as_kazoo_tells_them():
    session = Session()
    assert session.state == "CONNECTING"
    told = []
    for state in ("CONNECTED", "SUSPENDED", "CONNECTED", "SUSPENDED", "LOST", "CONNECTED"):
        session.on_state(state)
        told.append(session.state)
    assert told == ["CONNECTED", "CONNECTING", "CONNECTED", "CONNECTING", "EXPIRED", "CONNECTED"]
    assert (session.connects, session.disconnects, session.expires) == (3, 2, 1)


def test_a_session_lost_at_once_is_a_lost_connection_too():
    session = Session()
    session.on_state("CONNECTED")
    session.on_state("LOST")
    assert (session.disconnects, session.expires, session.state) == (1, 1, "EXPIRED")


def test_latencies_are_kept_of_the_latest_and_counted_of_all():
    session = Session()
    for _ in range(LATENCIES_KEPT + 5):
        session.on_answer(perf_counter() - 0.25)
    assert session.request_count == LATENCIES_KEPT + 5
    assert len(session.latencies_s) == LATENCIES_KEPT
    assert 0.25 <= session.latencies_s[0] < 5
    assert session.latency_sum_s >= 0.25 * session.request_count
