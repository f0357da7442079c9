"""Access to the HTTP port: rules against other sites' pages in a browser, and the token.

A browser lets any page send requests to this machine. So a `Host` that is a foreign name is refused
(DNS rebinding, rule 620), and what changes something needs a content type that no foreign page may
send unasked (rule 621).
"""

import binascii
import hmac
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import urlsplit

from kafkalite.http.routing import HttpError

READING: Final = frozenset({"GET", "HEAD"})
OWN_NAMES: Final = frozenset({"localhost"})
COOKIE: Final = "kafkalite-token"
OWN_SITE: Final = frozenset({"same-origin", "none"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """Conditions that a request must meet to be looked at.

    Attributes:
        allowed_hosts: names beside `localhost` and plain addresses that the port is known by.
        token: what must be shown; None for nothing.
    """

    allowed_hosts: frozenset[str] = frozenset()
    token: str | None = None

    @staticmethod
    def of(hosts: Iterable[str], token: str | None) -> "AccessRules":
        """Return the rules for names in any case."""
        return AccessRules(
            allowed_hosts=frozenset(host.lower() for host in hosts if host), token=token
        )

    def check(self, method: str, headers: Mapping[str, str]) -> None:
        """Refuse what a foreign page may have sent.

        Raises:
            HttpError: 421, the host is not this one; 403, another site asks.
        """
        host = headers.get("host", "")
        if not self._is_own(host):
            raise HttpError(
                421,
                f"{host[:100]!r} is no name of this broker; "
                "kafkalite.http.allowed.hosts (--http-allowed-host) adds names",
            )
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise HttpError(403, f"pages of {origin[:100]!r} may not ask here")
        is_foreign = headers.get("sec-fetch-site", "none") not in OWN_SITE
        is_navigation = headers.get("sec-fetch-mode") == "navigate" and method in READING
        if is_foreign and not is_navigation:
            raise HttpError(403, "pages of other sites may not ask here")

    @staticmethod
    def check_content_type(method: str, headers: Mapping[str, str], known: frozenset[str]) -> None:
        """Refuse a change whose content type is one that any site may send (rule 621).

        Raises:
            HttpError: 415.
        """
        if method in READING:
            return
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        # Browsers ask first before they send a DELETE to another site; not all clients name a type.
        if kind not in known and not (method == "DELETE" and not kind):
            names = " or ".join(sorted(known))
            raise HttpError(415, f"what changes something needs Content-Type: {names}")

    def check_token(self, headers: Mapping[str, str], query: Mapping[str, str]) -> bool:
        """Refuse who does not show the token; True if it was in the query, from where it must go.

        Raises:
            HttpError: 401.
        """
        if self.token is None:
            return False
        if self._is_token(query.get("token", "")):
            return True
        if self._is_token(_authorization(headers.get("authorization", ""))):
            return False
        if self._is_token(_cookie(headers.get("cookie", ""))):
            return False
        raise HttpError(
            401,
            "this port is not for everybody: add ?token=..., Authorization: Bearer, or a login "
            "whose password is the token",
        )

    def _is_token(self, shown: str) -> bool:
        assert self.token is not None
        return hmac.compare_digest(shown.encode("utf-8", "replace"), self.token.encode())

    def _is_own(self, host: str) -> bool:
        name = _without_port(host).lower()
        if name in OWN_NAMES or name in self.allowed_hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True  # a page that a foreign name led here names that name


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def _authorization(text: str) -> str:
    """Return the token of a header: a bearer's, or the password of a login by whatever name."""
    scheme, _, shown = text.partition(" ")
    match scheme.lower():
        case "bearer":
            return shown.strip()
        case "basic":
            try:
                login = binascii.a2b_base64(shown.strip(), strict_mode=True).decode()
            except ValueError:
                return ""
            return login.partition(":")[2]
    return ""


def _cookie(text: str) -> str:
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value
