import pytest

from kafkalite.meta.names import alike, collision_key, refusal_of_name


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "__consumer_offsets"])
def test_legal_names(name):
    """Rule 22."""
    assert refusal_of_name(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        (".", "directory"),
        ("..", "directory"),
        ("x" * 250, "250 characters, at most 249"),
        ("a b", "ASCII letters"),
        ("a/b", "ASCII letters"),
        ("ä", "ASCII letters"),
        ("a\n", "ASCII letters"),
    ],
)
def test_illegal_names_are_refused_with_the_reason(name, reason):
    """Rule 22."""
    assert reason in refusal_of_name(name)


def test_names_that_differ_by_dot_and_underscore_collide():
    """Rule 22."""
    assert collision_key("a.b_c") == collision_key("a_b.c")
    assert collision_key("a.b") != collision_key("ab")


def test_names_that_are_alike_are_found():
    assert {*alike("a.b_c")} == {"a_b_c", "a.b.c", "a_b.c"}
    assert [*alike("plain")] == []
    assert "_" + "." * 19 in {*alike("." * 20)}
