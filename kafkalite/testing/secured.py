"""Users, encryption and rules of a broker in a test."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from kafkalite.wire.errors import KafkaError

if TYPE_CHECKING:
    from kafkalite.api.context import Services
    from kafkalite.meta.events import Event
    from kafkalite.security.acls import Rule
    from kafkalite.server.broker import Broker as ServerBroker
    from kafkalite.testing.security import BrokerSecurity, Certificates


Result = TypeVar("Result")


class Secured:
    """A broker or a cluster, and how clients get in."""

    security: "BrokerSecurity | None" = None
    mechanism: str = "SCRAM-SHA-512"
    """By which clients log in, if their settings say nothing else."""
    if TYPE_CHECKING:  # what the rest of it has

        @property
        def bootstrap(self) -> str: ...  # noqa: D102

    @property
    def certs(self) -> "Certificates":
        """The certificate of all servers: `expire`, `wrong_host`, `stranger`, and `renew` again."""
        if self.security is None or self.security.certificates is None:
            raise RuntimeError(f"this {type(self).__name__.lower()} was made without tls=True")
        return self.security.certificates

    @property
    def ca_file(self) -> str:
        """The certificate that clients have to trust, as a PEM file; with `tls` only."""
        return str(self.certs.ca_file)

    def client_settings(
        self, client: str = "confluent", *, user: str | None = None, mechanism: str | None = None
    ) -> dict[str, str]:
        """Return settings by which a client gets in, for "confluent" (librdkafka) or "java".

        Args:
            client: which form they have.
            user: who logs in, by default the first; without users whose certificate is shown.
            mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; by default `mechanism`.
        """
        if self.security is None:
            return {"bootstrap.servers": self.bootstrap}
        where = self._secured_bootstrap(self.security)
        found = self.security.client_settings(where, user, mechanism or self.mechanism)
        if client == "confluent":
            return found
        from kafkalite.testing.security import as_java

        return as_java(found)

    def _secured_bootstrap(self, security: "BrokerSecurity") -> str:
        """Return the addresses of the listeners that want TLS or a login."""
        del security
        return self.bootstrap


class SecuredBroker(Secured):
    """The part of `kafkalite.Broker` that is about who may come in and do what."""

    if TYPE_CHECKING:  # what the rest of a broker has

        @property
        def server(self) -> "ServerBroker": ...  # noqa: D102
        @property
        def _services(self) -> "Services": ...
        def _in_loop(self, function: Callable[[], Result]) -> Result: ...
        def _await(self, function: Callable[[], Awaitable[Result]]) -> Result: ...

    def _secure(
        self,
        settings: Mapping[str, str],
        *,
        tls: bool,
        users: Mapping[str, str] | None,
        acls: "Iterable[Rule | Iterable[Rule]] | None",
        host: str,
    ) -> dict[str, str]:
        """Return the settings that what is asked for needs, where they are not given."""
        if not tls and users is None and acls is None:
            return {}
        # Most tests do without.
        from kafkalite.testing.security import BrokerSecurity

        self.security = BrokerSecurity(tls=tls, users=users, acls=acls, hosts=[host])
        more = self.security.settings(settings["listeners"])
        return {
            name: value
            for name, value in more.items()
            if name == "listeners" or name not in settings
        }

    def bootstrap_for(self, listener: str) -> str:
        """Return `HOST:PORT` of a listener, by its name."""
        return self.server.bootstrap_for(listener)

    def _secured_bootstrap(self, security: "BrokerSecurity") -> str:
        return self.bootstrap_for(security.listener)

    def add_user(self, name: str, password: str) -> None:
        """Let a user log in, or give it another password."""
        from kafkalite.testing.security import user_events

        self._submit_all(user_events(name, password))

    def revoke(self, name: str) -> None:
        """Take a user's password away, and end all sessions: it does not get in again."""
        from kafkalite.testing.security import user_events

        self._submit_all(user_events(name, None))
        self.expire_sessions()

    def allow(self, rules: "Iterable[Rule | Iterable[Rule]]") -> None:
        """Have more rules, from the next request on; `remove_rules` takes them back."""
        from kafkalite.testing.security import rule_events

        self._submit_all(rule_events(rules, wanted=True))

    def remove_rules(self, rules: "Iterable[Rule | Iterable[Rule]]") -> None:
        """Have these rules no more, from the next request on."""
        from kafkalite.testing.security import rule_events

        self._submit_all(rule_events(rules, wanted=False))

    def _submit_all(self, events: "Sequence[Event]") -> None:
        async def submit() -> None:
            for result in await self._services.metadata.submit_all(events):
                if isinstance(result, KafkaError):
                    raise result

        self._await(submit)

    def expire_sessions(self) -> None:
        """End the sessions of all clients that have logged in, as when their time is over.

        One that knows how logs in again, on the same connection; others are disconnected with their
        next request.
        """
        for login in self._in_loop(self.server.connections.logins):
            self._in_loop(login.expire)
