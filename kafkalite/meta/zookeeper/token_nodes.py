"""Nodes of delegation tokens, and of clients of users, which lie below those of their users."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from kafkalite.meta.delegation_tokens import Token, token_of
from kafkalite.meta.entities import CLIENTS_FOLDER, USER_ENTITY, sanitized
from kafkalite.meta.zookeeper.znodes import (
    CONFIG_FOLDERS,
    TOKENS,
    NotKafka,
    config_data,
)

TOKEN_VERSION: Final = 3


def token_path(token_id: str) -> str:
    """Return a token's node."""
    return f"{TOKENS}/{token_id}"


def token_data(token_id: str, settings: Mapping[str, str]) -> bytes:
    """Return what a token's node holds (rule 575)."""
    token = token_of(token_id, settings)
    values = {
        "version": TOKEN_VERSION,
        "owner": sanitized(token.owner),
        "tokenRequester": sanitized(token.requester),
        "renewers": list(map(sanitized, token.renewers)),
        "issueTimestamp": token.issue_ms,
        "maxTimestamp": token.max_ms,
        "expiryTimestamp": token.expiry_ms,
        "tokenId": token_id,
    }
    return json.dumps(values, separators=(",", ":")).encode()


def read_token(path: str, data: bytes) -> dict[str, str]:
    """Return a token's settings, as the node of any version holds them.

    Raises:
        NotKafka: it holds no token.
    """
    try:
        values: dict[str, Any] = json.loads(data)
        owner = unquote(values["owner"])
        token = Token(
            token_id=values["tokenId"],
            owner=owner,
            requester=unquote(values.get("tokenRequester", owner)),
            renewers=tuple(map(unquote, values["renewers"])),
            issue_ms=int(values["issueTimestamp"]),
            expiry_ms=int(values["expiryTimestamp"]),
            max_ms=int(values["maxTimestamp"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise NotKafka(f"{path}: {data[:200]!r} is no delegation token") from error
    return token.settings()


def parents_of(path: str) -> Iterator[tuple[str, bytes]]:
    """Yield the nodes above that of a client of a user, with what they hold if they are new."""
    folder = f"{CONFIG_FOLDERS[USER_ENTITY]}/"
    user, clients, _ = path.removeprefix(folder).partition(CLIENTS_FOLDER)
    if path.startswith(folder) and clients:
        yield f"{folder}{user}", config_data({})
        yield f"{folder}{user}{CLIENTS_FOLDER.removesuffix('/')}", b""
