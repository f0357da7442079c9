"""Rules 2 and 3: header versions follow the request's version, but for ApiVersions."""

import pytest

from kafkalite.wire.api import ApiKey
from kafkalite.wire.apis import APIS
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.header import (
    RequestHeader,
    UnsupportedApi,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)

API_VERSIONS = APIS[ApiKey.API_VERSIONS]
FETCH = APIS[ApiKey.FETCH]
OFFSET_DELETE = APIS[ApiKey.OFFSET_DELETE]


def request(key, version, rest, correlation_id=5):
    return b"".join(
        number.to_bytes(size, "big", signed=True)
        for number, size in ((key, 2), (version, 2), (correlation_id, 4))
    ) + bytes(rest)


def test_header_v1_has_no_tags():
    header, position = decode_request_header(request(1, 11, b"\0\3abc" + b"body"))
    assert header == RequestHeader(1, 11, 5, "abc")
    assert position == 13


def test_header_v2_keeps_the_int16_client_id_and_adds_tags():
    tags = b"\2" + b"\0\1x" + b"\x81\x01\0"
    raw = request(1, 12, b"\0\3abc" + tags + b"body")
    header, position = decode_request_header(raw)
    assert header == RequestHeader(1, 12, 5, "abc")
    assert raw[position:] == b"body"


def test_a_null_client_id_is_empty():
    assert decode_request_header(request(1, 4, b"\xff\xff"))[0].client_id == ""


def test_a_client_id_that_is_not_utf8_is_read_with_replacement_characters():
    header, _ = decode_request_header(request(1, 4, b"\0\1\xe9"))
    assert header.client_id == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("correlation_id", [0, -1, 2**31 - 1, -(2**31)])
def test_any_correlation_id_is_kept(correlation_id):
    header, _ = decode_request_header(request(1, 4, b"\0\0", correlation_id))
    assert header.correlation_id == correlation_id


def test_api_versions_from_the_future_has_header_v2():
    """Rule 5: it must be answered, and so its correlation id be read."""
    header, position = decode_request_header(request(18, 99, b"\0\1a" + b"\0"))
    assert (header.api_version, header.client_id, position) == (99, "a", 12)


def test_sasl_handshake_never_has_tags():
    header, position = decode_request_header(request(17, 1, b"\0\0" + b"\0\5PLAIN"))
    assert (header.api_key, position) == (17, 10)


@pytest.mark.parametrize(("key", "version"), [(95, 0), (-1, 0), (32767, 3), (1, -1)])
def test_an_unknown_key_or_negative_version_is_refused(key, version):
    with pytest.raises(UnsupportedApi) as refused:
        decode_request_header(request(key, version, b"\0\0"))
    assert (refused.value.api_key, refused.value.api_version) == (key, version)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        request(1, 4, b"\0"),
        request(1, 4, b"\0\2a"),
        request(1, 12, b"\0\1a"),
        request(1, 12, b"\0\0" + b"\1\0\5a"),
        request(1, 12, b"\0\0" + b"\1"),
        request(1, 12, b"\0\0" + b"\xff\xff\xff\xff\xff\xff"),
    ],
)
def test_a_header_cut_short_is_malformed(raw):
    with pytest.raises(MalformedMessage):
        decode_request_header(raw)


@pytest.mark.parametrize("client_id", ["", "grüße", None])
@pytest.mark.parametrize("version", [11, 12])
def test_a_request_header_is_read_as_it_was_written(version, client_id):
    raw = encode_request_header(FETCH, version, correlation_id=-7, client_id=client_id)
    header, position = decode_request_header(raw + b"body")
    assert header == RequestHeader(ApiKey.FETCH, version, -7, client_id or "")
    assert position == len(raw)


@pytest.mark.parametrize(
    ("api", "version", "expected"),
    [
        (FETCH, 11, b"\0\0\0\x09"),
        (FETCH, 12, b"\0\0\0\x09\0"),
        (API_VERSIONS, 0, b"\0\0\0\x09"),
        (API_VERSIONS, 3, b"\0\0\0\x09"),
        (API_VERSIONS, 4, b"\0\0\0\x09"),
        (OFFSET_DELETE, 0, b"\0\0\0\x09"),
    ],
)
def test_a_response_header_has_tags_if_flexible_and_not_of_api_versions(api, version, expected):
    assert encode_response_header(api, version, correlation_id=9) == expected
    assert decode_response_header(api, version, expected + b"body") == (9, len(expected))


@pytest.mark.parametrize("raw", [b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\1\0\x05"])
def test_a_response_header_cut_short_is_malformed(raw):
    with pytest.raises(MalformedMessage):
        decode_response_header(FETCH, 12, raw)
