"""Which route a path belongs to, and what a query means."""

import json

import pytest

from kafkalite.http.routing import HttpError, HttpRequest, Route, Router, json_pieces, parse_target


async def nobody(request):
    raise NotImplementedError


def router(*paths):
    return Router(Route(method="GET", path=path, handler=nobody) for path in paths)


@pytest.mark.parametrize(
    ("path", "route", "parameters"),
    [
        ("/a", "/a", {}),
        ("/a/b", "/a/{x}", {"x": "b"}),
        ("/a/own", "/a/own", {}),
        ("/a/%2Fb%20c", "/a/{x}", {"x": "/b c"}),
        ("/a/b/c", "/a/{x}/c", {"x": "b"}),
        ("/files/a/b.js", "/files/{rest*}", {"rest": "a/b.js"}),
        ("/files/", "/files/{rest*}", {"rest": ""}),
    ],
)
def test_words_come_before_names_and_names_before_the_rest(path, route, parameters):
    found = router("/a/{x}", "/a", "/a/own", "/a/{x}/c", "/files/{rest*}").find("GET", path)
    assert (found.route.path, found.parameters) == (route, parameters)


@pytest.mark.parametrize("path", ["/", "/a/", "/b", "/a/b/d", "/a//c"])
def test_other_paths_are_not_found(path):
    with pytest.raises(HttpError) as refused:
        router("/a/{x}", "/a", "/a/{x}/c").find("GET", path)
    assert refused.value.status == 404


def test_two_routes_of_one_path_are_a_bug():
    with pytest.raises(AssertionError):
        router("/a", "/a")


def test_flags_and_numbers_are_checked():
    request = HttpRequest(method="GET", path="/", query={"a": "", "b": "false", "c": "2", "d": "x"})
    assert (request.flag("a"), request.flag("b"), request.flag("z")) == (True, False, False)
    assert (request.number("c", 1), request.number("z", 1)) == (2, 1)
    for wrong in (
        lambda: request.flag("d"),
        lambda: request.number("d", 1),
        lambda: request.number("c", 1, low=3),
        lambda: request.number("c", 1, high=1),
    ):
        with pytest.raises(HttpError) as refused:
            wrong()
        assert refused.value.status == 400


def test_targets_are_paths():
    assert parse_target("/a%20b?x=1&x=2&y") == ("/a%20b", {"x": "1", "y": ""})
    for target in ("a", "http://localhost/", "/?" + "&".join("a" * 101)):
        with pytest.raises(HttpError):
            parse_target(target)


@pytest.mark.parametrize(
    "value",
    [{}, [], {"a": 1, "b": [], "c": [1, 2]}, {"n": [*range(1_000)]}, [{"a": "ü"}] * 120, "x", None],
)
def test_pieces_of_json_are_the_whole(value):
    assert json.loads(b"".join(json_pieces(value))) == value
