"""Encryption and a first user for a developer's broker: what `kafkalite serve --secure` makes.

In the folder `secure` of the data directory: the key and the certificate of an authority, a key and
a certificate that it signed for the broker and for a client, the same authority as a store for
Java, and the password of the user `dev`. What is there stays; a broker's certificate is made anew
when it lacks an address or is about to expire.
"""

import json
import os
import secrets
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafkalite.settings.config_def import SettingError

if TYPE_CHECKING:
    import datetime as dt

FOLDER: Final = "secure"
FIRST_USER: Final = "dev"
LISTENER: Final = "SASL_SSL"
MECHANISM: Final = "SCRAM-SHA-512"
MECHANISMS: Final = "SCRAM-SHA-512,SCRAM-SHA-256,PLAIN"

AUTHORITY, AUTHORITY_KEY = "ca.pem", "ca.key"
BROKER, CLIENT = "broker.pem", "client.pem"
TRUSTSTORE: Final = "truststore.p12"
USERS: Final = "users.json"
ADDRESS: Final = "bootstrap"

_SECRET: Final = 0o600
_PUBLIC: Final = 0o644
_USUAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1", "host.docker.internal")


@dataclass(slots=True, frozen=True)
class SecureFolder:
    """The folder of one broker, in its first data directory."""

    path: Path

    @classmethod
    def of(cls, data_dir: str | Path) -> "SecureFolder":
        """Return the folder of a broker, by its data directory."""
        return cls(Path(data_dir).absolute() / FOLDER)

    @property
    def authority(self) -> Path:
        """The certificate that clients have to trust."""
        return self.path / AUTHORITY

    @property
    def truststore(self) -> Path:
        """The same for Java, with the password `changeit`."""
        return self.path / TRUSTSTORE

    def prepare(self, hosts: Iterable[str], now: "dt.datetime") -> None:
        """Make what is missing.

        Args:
            hosts: names and addresses of the broker, besides the usual ones.
            now: when certificates begin.

        Raises:
            SettingError: the package cryptography is not there, or a file is damaged.
        """
        try:
            from kafkalite.security.certificates import Authority, is_good_for
        except ImportError:
            raise SettingError(
                "--secure: certificates need the package cryptography: pip install 'kafkalite[tls]'"
            ) from None
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        names = list(dict.fromkeys((*_USUAL_HOSTS, socket.gethostname(), *filter(None, hosts))))
        try:
            if not (self.path / AUTHORITY_KEY).exists():
                made = Authority.new(now)
                self._write(AUTHORITY_KEY, made.key_pem, _SECRET)
                self._write(AUTHORITY, made.certificate_pem, _PUBLIC)
                self._write(TRUSTSTORE, made.truststore, _PUBLIC)
                (self.path / BROKER).unlink(missing_ok=True)
            authority = Authority.read(
                self.authority.read_bytes(), (self.path / AUTHORITY_KEY).read_bytes()
            )
            broker = self.path / BROKER
            if not broker.exists() or not is_good_for(broker.read_bytes(), names, now):
                issued = authority.issue("kafkalite-broker", now, hosts=names)
                self._write(BROKER, issued.pem, _SECRET)
            if not (self.path / CLIENT).exists():
                self._write(CLIENT, authority.issue(FIRST_USER, now).pem, _SECRET)
        except (OSError, ValueError) as error:
            raise SettingError(f"--secure: {self.path}: {error}") from None
        if FIRST_USER not in self.users():
            self.add_user(FIRST_USER, secrets.token_urlsafe(12))

    def settings(self, listeners: Sequence[str], address: str) -> dict[str, str]:
        """Return a broker's settings: another listener, its certificate, its logins.

        Args:
            listeners: those that there are already.
            address: `HOST:PORT` of the new one.
        """
        prefix = f"listener.name.{LISTENER.lower()}."
        return {
            "listeners": ",".join((*listeners, f"{LISTENER}://{address}")),
            f"{prefix}ssl.keystore.type": "PEM",
            f"{prefix}ssl.keystore.location": str(self.path / BROKER),
            f"{prefix}ssl.truststore.type": "PEM",
            f"{prefix}ssl.truststore.location": str(self.authority),
            f"{prefix}sasl.enabled.mechanisms": MECHANISMS,
        }

    def users(self) -> dict[str, str]:
        """Return the passwords that are kept here, for `kafkalite client-config`.

        Raises:
            SettingError: the file is damaged.
        """
        try:
            found = json.loads((self.path / USERS).read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise SettingError(f"{self.path / USERS}: {error}") from None
        return {str(name): str(password) for name, password in dict(found).items()}

    def add_user(self, name: str, password: str) -> None:
        """Keep a password, so that what to paste into a client can be shown again."""
        text = json.dumps({**self.users(), name: password}, indent=2)
        self._write(USERS, text.encode() + b"\n", _SECRET)

    def note_address(self, bootstrap: str) -> None:
        """Remember where the broker listens now."""
        self._write(ADDRESS, bootstrap.encode() + b"\n", _PUBLIC)

    def address(self) -> str:
        """Return where the broker listens, or did last.

        Raises:
            SettingError: it has never listened there.
        """
        try:
            return (self.path / ADDRESS).read_text().strip()
        except OSError:
            raise SettingError(
                f"{self.path.parent}: no broker was started there with --secure"
            ) from None

    def _write(self, name: str, data: bytes, mode: int) -> None:
        """Write a file whole or not at all, and never readable by others for a moment."""
        new = self.path / f"{name}.new"
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "wb") as file:
            file.write(data)
        new.replace(self.path / name)
