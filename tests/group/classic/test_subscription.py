"""Topics in a consumer's metadata (rule 155)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.group.classic.subscription import subscribed_topics
from tests.group.harness import subscription


def test_topics_are_read():
    assert subscribed_topics(subscription("a", "größe")) == {"a", "größe"}


def test_no_topics():
    assert subscribed_topics(subscription()) == frozenset()


def test_later_versions_begin_like_the_first():
    """Owned partitions, generation and rack follow."""
    assert subscribed_topics(b"\0\x03" + subscription("a")[2:] + b"whatever") == {"a"}


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0\0\0\0\0",
        b"\0\0\0\0\0\1",
        b"\0\0\0\0\0\1\0\5abc",
        b"\0\0\0\0\0\1\xff\xff",
        b"\0\0\0\0\0\1\0\1\xff",
    ],
    ids=["empty", "short", "no topic", "cut topic", "null topic", "not UTF-8"],
)
def test_other_bytes_are_no_subscription(metadata):
    assert subscribed_topics(metadata) is None


@given(st.binary(max_size=40))
def test_no_bytes_do_harm(metadata):
    found = subscribed_topics(metadata)
    assert found is None or isinstance(found, frozenset)
