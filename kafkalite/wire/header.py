"""Request headers v1 and v2, response headers v0 and v1, and where ApiVersions departs from them.

A request header has a tag section (v2) if the request's version is flexible; a response header
(v1) likewise, except that ApiVersions responses always have v0: the client does not know yet what
the broker can speak (rules 2, 3).
"""

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafkalite.wire.api import FLEXIBLE_FROM, ApiKey
from kafkalite.wire.errors import MalformedMessage
from kafkalite.wire.primitives import TAGS_MAX, read_unsigned_varint

if TYPE_CHECKING:
    from kafkalite.wire.api import Api
    from kafkalite.wire.primitives import Buffer

_FIXED: Final = struct.Struct(">hhih")
_CORRELATION_ID: Final = struct.Struct(">i")
_NO_TAGS: Final = b"\0"

_FLEXIBLE: Final = {
    int(key): 0x8000 if first is None else first for key, first in FLEXIBLE_FROM.items()
}


class UnsupportedApi(MalformedMessage):
    """A request whose header cannot be read, its API being unknown; the connection is closed."""

    def __init__(self, api_key: int, api_version: int) -> None:
        super().__init__(f"unknown API key {api_key} (version {api_version})")
        self.api_key = api_key
        self.api_version = api_version


@dataclass(slots=True)
class RequestHeader:
    """Header of every request; a null client id is read as "" (rule 2)."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str


def decode_request_header(buffer: "Buffer") -> tuple[RequestHeader, int]:
    """Return (header, position of the body) of a frame.

    The version need not be one that is served: of an ApiVersions request from the future, header
    v2 is still read, since it must be answered (rule 5).

    Raises:
        UnsupportedApi: the key is none of Kafka's, so the layout of the header is unknown.
        MalformedMessage: the bytes are no header.
    """
    try:
        api_key, api_version, correlation_id, size = _FIXED.unpack_from(buffer)
        flexible_from = _FLEXIBLE.get(api_key)
        if flexible_from is None or api_version < 0:
            raise UnsupportedApi(api_key, api_version)
        position = _FIXED.size
        client_id = ""
        if size > 0:
            end = position + size
            if end > len(buffer):
                raise MalformedMessage(f"client id of {size} bytes in a frame of {len(buffer)}")
            client_id = str(buffer[position:end], "utf-8", "replace")
            position = end
        if api_version >= flexible_from:
            position = _skip_tags(buffer, position)
    except (struct.error, IndexError) as error:
        raise MalformedMessage(f"request header is cut short: {error}") from None
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def _skip_tags(buffer: "Buffer", position: int) -> int:
    """Return the position after a tag section; no header tag is known (rule 13)."""
    count, position = read_unsigned_varint(buffer, position)
    if count > TAGS_MAX:
        raise MalformedMessage(f"{count} tags in a header; {TAGS_MAX} are allowed")
    for _ in range(count):
        _, position = read_unsigned_varint(buffer, position)
        size, position = read_unsigned_varint(buffer, position)
        position += size
        if position > len(buffer):
            raise MalformedMessage(f"header tag of {size} bytes in a frame of {len(buffer)}")
    return position


def encode_request_header(
    api: "Api[Any, Any]", version: int, *, correlation_id: int, client_id: str | None
) -> bytes:
    """Return the header of a request; the client id keeps its int16 length even in v2."""
    encoded = b"" if client_id is None else client_id.encode()
    size = -1 if client_id is None else len(encoded)
    tags = _NO_TAGS if api.request.is_flexible(version) else b""
    return _FIXED.pack(api.key, version, correlation_id, size) + encoded + tags


def encode_response_header(api: "Api[Any, Any]", version: int, *, correlation_id: int) -> bytes:
    """Return the header of a response."""
    header = _CORRELATION_ID.pack(correlation_id)
    return header + _NO_TAGS if _has_tags(api, version) else header


def decode_response_header(api: "Api[Any, Any]", version: int, buffer: "Buffer") -> tuple[int, int]:
    """Return (correlation id, position of the body) of a frame.

    Raises:
        MalformedMessage: the bytes are no header.
    """
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(buffer)
        position = _CORRELATION_ID.size
        if _has_tags(api, version):
            position = _skip_tags(buffer, position)
    except (struct.error, IndexError) as error:
        raise MalformedMessage(f"response header is cut short: {error}") from None
    return correlation_id, position


def _has_tags(api: "Api[Any, Any]", version: int) -> bool:
    return api.key is not ApiKey.API_VERSIONS and api.response.is_flexible(version)
