"""Counts by topic."""

from kafkalite.isr.traffic import Traffic


def test_what_a_forgotten_topic_had_stays_in_the_total():
    traffic = Traffic()
    traffic.of("a").messages_in += 3
    traffic.of("b").messages_in += 4
    traffic.forget("a")
    traffic.forget("unknown")
    assert [*traffic.topics] == ["b"]
    assert traffic.total().messages_in == 7
    assert traffic.of("a").messages_in == 0
