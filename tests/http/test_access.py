"""The rules by themselves; on a socket they are in test_server."""

from base64 import b64encode

import pytest

from kafkalite.http.access import AccessRules
from kafkalite.http.routing import JSON, HttpError

RULES = AccessRules.of(["Example"], "secret")


def status_of(method="GET", **headers):
    named = {"host": "localhost", **{n.replace("_", "-"): v for n, v in headers.items()}}
    try:
        RULES.check(method, named)
        RULES.check_content_type(method, named, frozenset({JSON}))
    except HttpError as error:
        return error.status
    return 200


def test_reading_needs_a_host_of_this_machine():
    assert status_of() == status_of(host="EXAMPLE:1") == status_of(host="[::1]") == 200
    assert status_of(host="other") == status_of(host="") == status_of(host="[x") == 421


def test_writing_needs_json():
    assert status_of("POST") == status_of("POST", content_type="text/plain") == 415
    assert status_of("DELETE", content_type="text/plain") == 415
    assert status_of("DELETE") == 200
    assert status_of("POST", content_type="Application/JSON") == 200


@pytest.mark.parametrize(
    ("headers", "query", "shown"),
    [
        ({}, {"token": "secret"}, True),
        ({"authorization": "bearer secret"}, {}, False),
        ({"authorization": f"Basic {b64encode(b':secret').decode()}"}, {}, False),
        ({"authorization": f"Basic {b64encode(b'anybody:secret').decode()}"}, {}, False),
        ({"cookie": "a=b; kafkalite-token=secret"}, {}, False),
    ],
)
def test_the_token_is_taken_from_four_places(headers, query, shown):
    assert RULES.check_token(headers, query) is shown


@pytest.mark.parametrize("cookie", ["", "kafkalite-token", "kafkalite-token=x", "{}=[", "é=1"])
def test_other_tokens_are_refused(cookie):
    with pytest.raises(HttpError):
        RULES.check_token({"cookie": cookie, "authorization": "Basic secret"}, {"token": "é"})


@pytest.mark.parametrize("login", [b"", b"secret", b"secret:", b":Secret", b":secret:", b":\xff"])
def test_other_logins_are_refused(login):
    with pytest.raises(HttpError):
        RULES.check_token({"authorization": f"Basic {b64encode(login).decode()}"}, {})


def test_without_a_token_nobody_is_asked():
    assert AccessRules().check_token({}, {}) is False
