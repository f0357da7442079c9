"""The keys of an issuer of tokens, fetched now and then (`sasl.oauthbearer.jwks.endpoint.url`)."""

import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from urllib.request import urlopen

import trio

from kafkalite.settings.config_def import SettingError

if TYPE_CHECKING:
    from kafkalite.config.security import ListenerSettings
    from kafkalite.security.bearer import SignedTokens

logger = logging.getLogger("kafkalite.security")

FETCH_TIMEOUT_S: Final = 10.0
EARLIEST_S: Final = 10.0
"""After this a token with an unknown key may have keys fetched anew: anybody can send such."""

DOCUMENT_MAX_BYTES: Final = 1_000_000

_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"


class IssuerKeys:
    """Gives a checker of tokens the issuer's keys, and newer ones later.

    A file is read at once. What is fetched over the network is not waited for: until it is here,
    clients with tokens are turned away without a refusal, and come again.

    Raises:
        SettingError: the address is none that keys are fetched from, or a file holds none.
    """

    def __init__(self, settings: "ListenerSettings", checker: "SignedTokens") -> None:
        url = settings.text(_URL)
        assert url is not None
        self._url = url
        self._checker = checker
        self._refresh_s = settings.number("sasl.oauthbearer.jwks.endpoint.refresh.ms") / 1000
        self._backoff_s = settings.number("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms") / 1000
        self._backoff_max_s = (
            settings.number("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms") / 1000
        )
        self._wanted = trio.Event()
        scheme = urlsplit(url).scheme
        if scheme not in ("https", "http", "file"):
            raise SettingError(f"{_URL}: '{url}' has to begin with https://, http:// or file://")
        checker.on_unknown_key = lambda: self._wanted.set()
        if scheme == "file":
            try:
                checker.use_keys(_fetch(url))
            except (OSError, ValueError) as error:
                raise SettingError(f"{_URL}: {url}: {error}") from None

    async def run(self) -> None:
        """Fetch again and again, sooner where a token names a key that is not known."""
        pause_s = 0.0 if self._url.startswith("http") else self._refresh_s
        failures = 0
        while True:
            if pause_s:
                await trio.sleep(min(pause_s, EARLIEST_S))
                with trio.move_on_after(max(pause_s - EARLIEST_S, 0)):
                    await self._wanted.wait()
            self._wanted = trio.Event()
            try:
                self._checker.use_keys(await trio.to_thread.run_sync(_fetch, self._url))
            except (OSError, ValueError) as error:
                pause_s = min(self._backoff_s * 2**failures, self._backoff_max_s)
                failures += 1
                logger.warning("%s: %s: %s", _URL, self._url, error)
            else:
                pause_s, failures = self._refresh_s, 0


def _fetch(url: str) -> bytes:
    # The address is the operator's, and only such that are documents.
    with urlopen(url, timeout=FETCH_TIMEOUT_S) as response:
        data: bytes = response.read(DOCUMENT_MAX_BYTES)
    return data
