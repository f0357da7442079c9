"""TLS, users and rules for a broker in a test, and what its clients need to come in."""

import datetime as dt
import functools
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

from kafkalite.meta.events import AlterScramCredential, CreateAcl, DeleteAcl, Event
from kafkalite.security import scram
from kafkalite.security.acls import Rule
from kafkalite.security.certificates import Authority, Credentials

SUPER_USER: Final = "admin"
HOSTS: Final = ("localhost", "127.0.0.1", "::1")
AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@functools.cache
def _authority() -> Authority:
    """Return the one of this process: a key costs more than all that it signs."""
    return Authority.new(_now())


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class BrokerSecurity:
    """Security of a broker, besides its settings, where it is not open to everybody.

    Its listener with all that is asked for is called SASL_SSL, SSL or SASL_PLAINTEXT, and stands
    beside the one without, which is called PLAINTEXT. With rules there is an authorizer; on the
    listener PLAINTEXT everybody is a super user then, so that a test can do as it likes.

    Args:
        tls: whether there is encryption.
        users: passwords by name.
        acls: rules, as `kafkalite.security.shorthand.allow` and `deny` make them.
        hosts: addresses of the listeners; the first is where the one without all this is.

    Attributes:
        listener: its name.
        certificates: to be made worse, and better again, while the broker runs.
    """

    def __init__(
        self,
        *,
        tls: bool,
        users: Mapping[str, str] | None,
        acls: Iterable[Rule | Iterable[Rule]] | None,
        hosts: Iterable[str],
    ) -> None:
        self.users = dict(users or {})
        self.rules = None if acls is None else list(flat(acls))
        if tls:
            self.listener = "SASL_SSL" if self.users else "SSL"
        else:
            self.listener = "SASL_PLAINTEXT" if self.users else "PLAINTEXT"
        names = list(hosts)
        self._host = names[0]
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.certificates: Certificates | None = None
        if tls:
            self._folder = tempfile.TemporaryDirectory(prefix="kafkalite-secure-")
            self.certificates = Certificates(Path(self._folder.name), *names)

    def settings(self, listeners: str) -> dict[str, str]:
        """Return the settings that are to be added to those of a broker with these listeners."""
        found: dict[str, str] = {}
        if self.listener != "PLAINTEXT":
            host = f"[{self._host}]" if ":" in self._host else self._host
            found["listeners"] = f"{listeners},{self.listener}://{host}:0"
            found["sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
        if self.certificates is not None:
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.certificates.broker_file),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.certificates.ca_file),
                "ssl.client.auth": "requested",
            }
        if self.rules is not None:
            found["authorizer.class.name"] = AUTHORIZER
            found["super.users"] = f"User:{SUPER_USER};User:ANONYMOUS"
        return found

    def events(self) -> list[Event]:
        """Return what makes the users and rules."""
        made: list[Event] = []
        for name, password in self.users.items():
            made += user_events(name, password)
        made += [CreateAcl(rule=rule) for rule in self.rules or ()]
        return made

    def client_settings(self, bootstrap: str, user: str | None, mechanism: str) -> dict[str, str]:
        """Return settings for librdkafka, and for Kafka's own clients but for the login."""
        found = {"bootstrap.servers": bootstrap, "security.protocol": self.listener}
        if self.certificates is not None:
            found["ssl.ca.location"] = str(self.certificates.ca_file)
        if self.users:
            name = next(iter(self.users)) if user is None else user
            found |= {
                "sasl.mechanism": mechanism,
                "sasl.username": name,
                "sasl.password": self.users.get(name, ""),
            }
        elif user is not None and self.certificates is not None:
            file = str(self.certificates.client_file(user))
            found |= {"ssl.certificate.location": file, "ssl.key.location": file}
        return found

    def close(self) -> None:
        """Remove the certificates."""
        if self._folder is not None:
            self._folder.cleanup()


class Certificates:
    """A broker's certificate, signed by an authority of the test's process, in files.

    What is changed holds for connections that are made a second later.
    """

    def __init__(self, folder: Path, *hosts: str) -> None:
        self._folder = folder
        self._hosts = (*HOSTS, *(host for host in hosts if host not in ("", "0.0.0.0", "::")))
        self.ca_file = folder / "ca.pem"
        self.broker_file = folder / "broker.pem"
        self.ca_file.write_bytes(_authority().certificate_pem)
        self.renew()

    def also_for(self, *hosts: str) -> Self:
        """Show a good certificate that is for more hosts."""
        self._hosts = (*self._hosts, *hosts)
        return self.renew()

    def renew(self) -> Self:
        """Show a good certificate again."""
        return self._show(_authority().issue("broker", _now(), hosts=self._hosts))

    def expire(self, *, in_days: float = -1 / (24 * 60)) -> Self:
        """Show one that expires in so many days; by default it did so a minute ago."""
        return self._show(_authority().issue("broker", _now(), hosts=self._hosts, days=in_days))

    def wrong_host(self) -> Self:
        """Show one that is for another host."""
        return self._show(_authority().issue("broker", _now(), hosts=["elsewhere.invalid"]))

    def stranger(self) -> Self:
        """Show one that was signed by somebody whom no client trusts."""
        other = Authority.new(_now(), "somebody else")
        return self._show(other.issue("broker", _now(), hosts=self._hosts))

    def client_file(self, name: str) -> Path:
        """Return a file with key and certificate of a client, whose principal is `User:CN=name`."""
        path = self._folder / f"client-{name}.pem"
        if not path.exists():
            path.write_bytes(_authority().issue(name, _now()).pem)
        return path

    def _show(self, credentials: Credentials) -> Self:
        new = self._folder / "new.pem"
        new.write_bytes(credentials.pem)
        new.replace(self.broker_file)
        return self


def as_java(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings of librdkafka as Kafka's own clients have them."""
    found = dict(settings)
    if "ssl.ca.location" in found:
        found["ssl.truststore.type"] = "PEM"
        found["ssl.truststore.location"] = found.pop("ssl.ca.location")
    if "ssl.key.location" in found:
        found["ssl.keystore.type"] = "PEM"
        found["ssl.keystore.location"] = found.pop("ssl.key.location")
        del found["ssl.certificate.location"]
    if "sasl.username" in found:
        plain = found["sasl.mechanism"] == "PLAIN"
        module = "plain.PlainLoginModule" if plain else "scram.ScramLoginModule"
        name, password = (
            found.pop(each).replace("\\", "\\\\").replace('"', '\\"')
            for each in ("sasl.username", "sasl.password")
        )
        found["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{module} required "
            f'username="{name}" password="{password}";'
        )
    return found


def user_events(name: str, password: str | None) -> list[Event]:
    """Return what lets a user log in with a password, by both SCRAMs; None takes that away."""
    events: list[Event] = []
    for mechanism in (scram.SHA_256, scram.SHA_512):
        text = None
        if password is not None:
            text = str(scram.Credential.of_password(mechanism, password, salt=os.urandom(16)))
        events.append(AlterScramCredential(user=name, mechanism=mechanism.name, credential=text))
    return events


def rule_events(rules: Iterable[Rule | Iterable[Rule]], *, wanted: bool) -> list[Event]:
    """Return what makes rules, or takes them away."""
    make: Any = CreateAcl if wanted else DeleteAcl
    return [make(rule=rule) for rule in flat(rules)]


def flat(rules: Iterable[Rule | Iterable[Rule]]) -> Iterable[Rule]:
    """Return rules that stand in a list or in lists of lists, as `shorthand` makes them."""
    for one in rules:
        if isinstance(one, Rule):
            yield one
        else:
            yield from one
