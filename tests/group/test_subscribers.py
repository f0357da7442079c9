"""Which groups hear of a topic."""

from kafkalite.group.subscribers import Subscribers


def test_groups_of_several_topics_are_told_once():
    subscribers = Subscribers()
    for topic, group in (("a", "g"), ("b", "g"), ("b", "h"), ("c", "i")):
        subscribers.add(topic, group)
    assert subscribers.of(["b", "a", "x"]) == ["g", "h"]


def test_who_is_discarded_hears_nothing():
    subscribers = Subscribers()
    subscribers.add("a", "g")
    subscribers.add("a", "h")
    subscribers.discard("a", "g")
    subscribers.discard("x", "g")
    assert subscribers.of(["a"]) == ["h"]
    subscribers.discard("a", "h")
    assert subscribers.of(["a"]) == []
