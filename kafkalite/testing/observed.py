"""Looks at the clients of a broker under test, and at itself when a test fails."""

import logging
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from kafkalite.api.client_metrics import ClientInstance
from kafkalite.clock import AdjustableClock
from kafkalite.testing.journal import Journal, SeenRequest, find_api
from kafkalite.testing.report import Facts, Report, make_report
from kafkalite.testing.report_facts import facts_of, lines_of
from kafkalite.wire.api import ApiKey

if TYPE_CHECKING:
    from kafkalite.server.broker import Broker as ServerBroker

LOG_LINES: Final = 30


class LogTail(logging.Handler):
    """Keeps the last lines that kafkalite logs in this process."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=LOG_LINES)
        self.setFormatter(logging.Formatter("%(levelname)-7s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.lines.append(self.format(record))


class ObservedBroker:
    """The part of `testing.Broker` that looks at what goes on.

    Attributes:
        log: the last lines that it logged.
    """

    log: LogTail
    _journal: Journal
    _in_loop: Callable[[Callable[[], Any]], Any]

    if TYPE_CHECKING:

        @property
        def server(self) -> ServerBroker:
            """The broker itself."""

    def requests(
        self, api: str | ApiKey | None = None, client_id: str | None = None
    ) -> list[SeenRequest]:
        """Return the requests that clients have sent, oldest first: the latest 32 MB of them.

        Those that still wait for their answers, or never got one, are among them.

        Args:
            api: only of this API, as Kafka's documentation writes it ("JoinGroup").
            client_id: only of clients with this `client.id`.
        """
        wanted = None if api is None else find_api(api)
        found: list[SeenRequest] = self._in_loop(
            lambda: self._journal.find(api=wanted, client_id=client_id)
        )
        return found

    def client_metrics(self) -> list[ClientInstance]:
        """Return the clients that push their metrics, with the last of them (KIP-714).

        Clients push what a resource of the kind CLIENT_METRICS asks them for, and nothing without
        one: `kafka-client-metrics`, or IncrementalAlterConfigs with its settings `metrics`,
        `interval.ms` and `match`.
        """
        found: list[ClientInstance] = self._in_loop(
            lambda: self.server.services.client_metrics.snapshot()
        )
        return found

    def report(self, since_s: float | None = None) -> Report:
        """Return what was asked, what there is, and in words what may be wrong.

        Args:
            since_s: `time.perf_counter` from which on requests count; all that are kept if None.
        """
        seen = self.requests()
        first_s = seen[0].began_s if seen else perf_counter()
        since_s = first_s if since_s is None else since_s
        lines = lines_of([each for each in seen if each.began_s >= since_s], since_s)

        def take() -> Facts:
            facts = facts_of(self.server.services, perf_counter() - since_s, lines)
            control = self.server.control
            facts.faults = [(rule.description, rule.hits) for rule in control.injector.rules]
            clock = control.clock
            if isinstance(clock, AdjustableClock):
                facts.ahead_s, facts.is_frozen = clock.ahead_s, clock.is_frozen
            return facts

        return make_report(self._in_loop(take), "\n".join(self.log.lines))
