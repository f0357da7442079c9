"""Delegation tokens as credentials: the secret makes them, and knows them again (rule 570)."""

import hmac
import secrets
from base64 import b64encode
from typing import TYPE_CHECKING, Final

from kafkalite.meta.delegation_tokens import TOKEN_ENTITY, Token, find_token
from kafkalite.security import scram
from kafkalite.security.exchanges import TokenCredential

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafkalite.meta.image import Image

CREDENTIALS_MAX: Final = 10_000
"""Of so many tokens it is remembered what a login is compared with, which takes milliseconds."""


class DelegationTokens:
    """The tokens of an image, as brokers see them that have the secret.

    Args:
        secret: `delegation.token.secret.key`, the same on all brokers.
        image: gives that of the moment.
    """

    def __init__(self, secret: str, image: "Callable[[], Image]") -> None:
        self._secret = secret.encode()
        self._image = image
        self._configs: object = None
        self._ids: dict[bytes, str] = {}
        self._credentials: dict[tuple[str, str], scram.Credential] = {}

    def hmac_of(self, token_id: str) -> bytes:
        """Return what a client shows as the password of a token."""
        return hmac.digest(self._secret, token_id.encode(), "sha512")

    def id_of(self, shown: bytes) -> str | None:
        """Return the id of the token that is shown, None if there is none."""
        configs = self._image().configs
        if configs is not self._configs:
            known = {token_id: mac for mac, token_id in self._ids.items()}
            ids = [one.name for one in configs if one.type == TOKEN_ENTITY]
            self._ids = {known.get(each) or self.hmac_of(each): each for each in ids}
            self._configs = configs
        return self._ids.get(shown)

    def find(self, token_id: str) -> Token | None:
        """Return a token, None if there is none of this id."""
        return find_token(self._image(), token_id)

    def credential(self, token_id: str, mechanism: scram.Mechanism) -> TokenCredential | None:
        """Return what a login by a token is compared with; None if there is none, or `prepare`d."""
        token = self.find(token_id)
        credential = self._credentials.get((token_id, mechanism.name))
        if token is None or credential is None:
            return None
        owner = token.owner.partition(":")[2]
        return TokenCredential(owner, credential, min(token.expiry_ms, token.max_ms))

    def needs_preparation(self, token_id: str, mechanism: scram.Mechanism) -> bool:
        """Tell whether `prepare` has to be called before a login by this token."""
        is_known = (token_id, mechanism.name) in self._credentials
        return not is_known and self.find(token_id) is not None

    def prepare(self, token_id: str, mechanism: scram.Mechanism) -> None:
        """Make what a login is compared with, from the token's HMAC; to be called in a thread."""
        password = b64encode(self.hmac_of(token_id)).decode()
        salt = secrets.token_bytes(16)
        credential = scram.Credential.of_password(mechanism, password, salt=salt)
        if len(self._credentials) >= CREDENTIALS_MAX:
            self._credentials.clear()
        self._credentials[token_id, mechanism.name] = credential
