"""Fault rules and clocks of several brokers at once, over the HTTP control of each.

A rule of several brokers is one in each of them. Its id names them all ("1.f3+2.f1"), so nobody has
to remember which belong together; what it counts is the sum.
"""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from kafkalite.client.errors import ClientError

PREFIX: Final = "/api/v1/control"
TIMEOUT_S: Final = 610.0
"""A little more than the longest that a broker lets anybody wait."""

LOOK_S: Final = 0.02
"""Pause between two looks at a rule of several brokers that is waited for."""

ALL: Final = "all"

Result = TypeVar("Result")


class ControlError(ClientError):
    """A broker's control API refused, or could not be reached.

    Attributes:
        status: of HTTP; 0 if there was no answer.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def call(url: str, method: str, path: str, body: Any = None, *, prefix: str = PREFIX) -> Any:
    """Return what a broker's API answers.

    Args:
        url: of its HTTP port; `?token=` behind it is shown to it.
        method: of HTTP.
        path: below `prefix`, with its query.
        body: sent as JSON.
        prefix: of the API.

    Raises:
        ControlError: it cannot be reached, or refuses.
    """
    base, _, query = url.rstrip("/").partition("?")
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    if query.startswith("token="):
        headers["Authorization"] = f"Bearer {query.removeprefix('token=')}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        base.rstrip("/") + prefix + path, data=data, method=method, headers=headers
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise ControlError(f"{base}: {_reason(error, path)}", error.code) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise ControlError(f"{base}: {reason}; --http names it") from None


class ClusterControl:
    """Gives the same order to several brokers.

    Args:
        urls: gives those that can be reached by now: HTTP address by broker id.
    """

    def __init__(self, urls: Callable[[], Mapping[int, str]]) -> None:
        self._urls = urls

    def add(self, said: Mapping[str, Any], brokers: Iterable[int] | None = None) -> dict[str, Any]:
        """Add a rule to brokers, to all if None; return it as it is told.

        Raises:
            ControlError: it does not fit, or one of them cannot be asked; no broker has it then.
        """
        chosen = self._chosen(brokers)
        added: dict[int, dict[str, Any]] = {}
        try:
            for number in chosen:
                added[number] = self._ask(number, "POST", "/faults", said)
        except ControlError:
            for number, rule in added.items():
                self._ask(number, "DELETE", f"/faults/{rule['id']}")
            raise
        return summed(added)

    def show(self, rule_id: str) -> dict[str, Any]:
        """Return a rule with the sums of what it counted."""
        return summed(self._each(rule_id, "GET"))

    def wait(self, rule_id: str, hits: int, timeout_s: float) -> dict[str, Any]:
        """Return a rule when it has fired so often on all its brokers together.

        Raises:
            ControlError: 408, it has not within `timeout_s` of real time.
        """
        until_s = time.monotonic() + timeout_s
        while True:
            found = self.show(rule_id)
            if found["hits"] >= hits:
                return found
            if time.monotonic() >= until_s:
                raise ControlError(
                    f"fault {rule_id} ({found['rule']}) fired {found['hits']} of {hits} times in "
                    f"{timeout_s:g} s; {found['matched']} matched",
                    408,
                )
            time.sleep(LOOK_S)

    def change_trigger(self, rule_id: str, said: Mapping[str, Any]) -> dict[str, Any]:
        """Let a rule fire at other matches from now on; return it."""
        found = {
            number: self._ask(number, "PATCH", f"/faults/{part}", said)
            for number, part in parts_of(rule_id)
        }
        return summed(found)

    def remove(self, rule_id: str) -> dict[str, Any]:
        """Remove a rule; return it as it was last."""
        return summed(self._each(rule_id, "DELETE"))

    def all(self, method: str, path: str, body: Any = None) -> dict[int, Any]:
        """Return what each broker answers to the same request, asked at the same time."""
        return self._at_once(self._chosen(None), lambda n: self._ask(n, method, path, body))

    def each(self, brokers: Iterable[int] | None, method: str, path: str, body: Any) -> Any:
        """Return the same of some brokers, or all."""
        return self._at_once(self._chosen(brokers), lambda n: self._ask(n, method, path, body))

    def _each(self, rule_id: str, method: str) -> dict[int, dict[str, Any]]:
        parts = dict(parts_of(rule_id))
        reachable = [number for number in parts if number in self._urls()]
        return self._at_once(reachable, lambda n: self._ask(n, method, f"/faults/{parts[n]}"))

    def _chosen(self, brokers: Iterable[int] | None) -> list[int]:
        urls = self._urls()
        if brokers is None:
            return sorted(urls)
        chosen = [*brokers]
        for number in chosen:
            if number not in urls:
                raise ControlError(f"there is no broker {number} that takes orders", 404)
        return chosen

    def _ask(self, number: int, method: str, path: str, body: Any = None) -> Any:
        return call(self._urls()[number], method, path, body)

    @staticmethod
    def _at_once(numbers: Iterable[int], ask: Callable[[int], Result]) -> dict[int, Result]:
        asked = [*numbers]
        if len(asked) < 2:
            return {number: ask(number) for number in asked}
        with ThreadPoolExecutor(len(asked)) as pool:
            return dict(zip(asked, pool.map(ask, asked), strict=True))


def parts_of(rule_id: str) -> list[tuple[int, str]]:
    """Return broker ids and rule ids of a rule of several brokers.

    Raises:
        ControlError: 404, it is no id of such a rule.
    """
    parts = []
    for part in rule_id.split("+"):
        number, dot, own = part.partition(".")
        if not dot or not number.isdigit():
            raise ControlError(f"{rule_id!r} names no rule of brokers, such as 1.f3+2.f1", 404)
        parts.append((int(number), own))
    return parts


def summed(rules: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Return one rule for those of several brokers: ids together, counts added up."""
    if not rules:
        raise ControlError("no broker that has this rule can be reached", 404)
    return {
        "id": "+".join(f"{number}.{rule['id']}" for number, rule in sorted(rules.items())),
        "rule": next(iter(rules.values()))["rule"],
        "hits": sum(rule["hits"] for rule in rules.values()),
        "matched": sum(rule["matched"] for rule in rules.values()),
        "spent": all(rule["spent"] for rule in rules.values()),
        "brokers": {str(number): rule["hits"] for number, rule in sorted(rules.items())},
    }


def _reason(error: urllib.error.HTTPError, path: str) -> str:
    if error.code == 404 and not path.startswith("/faults/"):
        return "this broker takes no orders (kafkalite.control), or is none of kafkalite's"
    text = error.read(10_000).decode("utf-8", "replace").strip()
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return text
