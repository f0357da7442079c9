"""Faults, the clock and a fresh start over HTTP, for tests in any language: /api/v1/control/.

Not there where `kafkalite.control` is off, as in profile `kafka`. An order that names a `broker`,
by its id or as `all`, is handed on to the brokers of `kafkalite.control.peers`.
"""

import json
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from kafkalite.clock import AdjustableClock, within_real_time
from kafkalite.faults.disk import DiskFault, FaultyDisk
from kafkalite.faults.injector import Injector
from kafkalite.faults.parts import Control
from kafkalite.faults.remote import ALL, ClusterControl, ControlError
from kafkalite.faults.rules import Rule
from kafkalite.faults.specification import FaultRuleError, chaos, parse
from kafkalite.http.routing import HttpError, HttpRequest, HttpResponse, Route, json_response
from kafkalite.meta.events import DeleteTopic
from kafkalite.wire.errors import KafkaError

if TYPE_CHECKING:
    from kafkalite.meta.runner import MetadataRunner

PREFIX: Final = "/api/v1/control"
WAIT_MAX_S: Final = 600.0
DEFAULT_WAIT_S: Final = 10.0
PYTHON_ONLY: Final = ("where", "transform")
DISK_ERRORS: Final = {"ENOSPC": 28, "EIO": 5}
THREADS_MAX: Final = 16
"""Orders that are handed on at the same time."""

Result = TypeVar("Result")


class ControlApi:
    """Faults and clock of one broker, as a test changes them.

    Args:
        control: its rules, clock and disk.
        metadata: where its topics are deleted by a reset.
    """

    def __init__(self, control: Control, metadata: "MetadataRunner") -> None:
        self._control = control
        self._metadata = metadata
        self._peers = ClusterControl(lambda: control.peers)
        self._limiter = trio.CapacityLimiter(THREADS_MAX)
        self._disk_count = 0

    @property
    def _injector(self) -> Injector:
        return self._control.injector

    @property
    def _clock(self) -> AdjustableClock:
        clock = self._control.clock
        if not isinstance(clock, AdjustableClock):
            raise HttpError(409, "the clock of this broker cannot be changed")
        return clock

    @property
    def _disk(self) -> FaultyDisk | None:
        disk = self._control.disk
        return disk if isinstance(disk, FaultyDisk) else None

    def routes(self) -> list[Route]:
        """Return what is answered."""
        return [
            _route("GET", "/faults", self._list, "The fault rules there are"),
            _route("POST", "/faults", self._add, "Add a fault rule"),
            _route("DELETE", "/faults", self._clear, "Remove all fault rules"),
            _route("POST", "/chaos", self._add_chaos, "Add a mild schedule of random faults"),
            _route("PATCH", "/faults/{id}", self._retrigger, "Say anew when a rule fires"),
            _route("GET", "/faults/{id}", self._show, "A fault rule, at once or when it has fired"),
            _route("DELETE", "/faults/{id}", self._remove, "Remove a fault rule"),
            _route("POST", "/disk-faults", self._add_disk, "Let the disk fail"),
            _route("GET", "/clock", self._show_clock, "The broker's clock"),
            _route("POST", "/clock", self._change_clock, "Turn the broker's clock"),
            _route("POST", "/reset", self._reset, "Delete topics, groups and faults; real time"),
        ]

    async def _reset(self, request: HttpRequest) -> Any:
        """Make the broker as it was at its start; clients stay connected, groups are gone."""
        request.json()
        removed = await self._clear(request)
        if isinstance(self._control.clock, AdjustableClock):
            self._control.clock.restore()
        names = list(self._metadata.image.topics)
        for result in await self._metadata.submit_all([DeleteTopic(name=name) for name in names]):
            if isinstance(result, KafkaError):
                raise result
        return {"topics": sorted(name for name in names if not name.startswith("__")), **removed}

    # --- Faults ----------------------------------------------------------------------------------

    async def _list(self, request: HttpRequest) -> Any:
        brokers = self._brokers(request.query.get("broker"))
        if brokers is not None:
            return await self._hand_on(lambda: self._each(brokers, "GET", "/faults"))
        await trio.lowlevel.checkpoint()
        return {
            "faults": [rule_json(rule) for rule in self._injector.rules],
            "disk_faults": [_disk_json(fault) for fault in self._disk_faults],
        }

    async def _add(self, request: HttpRequest) -> Any:
        said = request.json()
        brokers = self._brokers(said.pop("broker", None))
        for name in PYTHON_ONLY:
            if name in said:
                raise HttpError(422, f"{name} is a function, and only Python has it")
        specification = _fitting(lambda: parse(said))
        if brokers is not None:
            return await self._hand_on(lambda: self._peers.add(said, brokers))
        await trio.lowlevel.checkpoint()
        return rule_json(_fitting(lambda: self._injector.add(specification)))

    async def _add_chaos(self, request: HttpRequest) -> Any:
        said = request.json()
        brokers = self._brokers(said.pop("broker", None))
        specifications = _fitting(lambda: chaos(said))
        if brokers is not None:
            return await self._hand_on(lambda: self._each(brokers, "POST", "/chaos", said))
        await trio.lowlevel.checkpoint()
        added = _fitting(lambda: [self._injector.add(each) for each in specifications])
        return {"faults": [rule_json(rule) for rule in added]}

    async def _retrigger(self, request: HttpRequest) -> Any:
        """Take the whole rule as it is to be: its matches and actions stay what they are."""
        said, rule_id = request.json(), request.parameters["id"]
        specification = _fitting(lambda: parse(said))
        if "." in rule_id:
            return await self._hand_on(lambda: self._peers.change_trigger(rule_id, said))
        await trio.lowlevel.checkpoint()
        rule = self._rule(request)
        self._injector.change_trigger(rule, specification)
        return rule_json(rule)

    async def _clear(self, request: HttpRequest) -> Any:
        brokers = self._brokers(request.query.get("broker"))
        if brokers is not None:
            return await self._hand_on(lambda: self._each(brokers, "DELETE", "/faults"))
        await trio.lowlevel.checkpoint()
        removed = [rule_json(rule) for rule in self._injector.clear()]
        disk_faults = [_disk_json(fault) for fault in self._disk_faults]
        if self._disk is not None:
            self._disk.faults = ()
        return {"removed": removed, "removed_disk_faults": disk_faults}

    async def _show(self, request: HttpRequest) -> Any:
        """Tell of a rule, at once or as soon as it has fired `wait_hits` times."""
        hits = request.number("wait_hits", 0)
        timeout_s = _seconds(request, "timeout_s", DEFAULT_WAIT_S)
        rule_id = request.parameters["id"]
        if "." in rule_id:
            return await self._hand_on(lambda: self._peers.wait(rule_id, hits, timeout_s))
        rule = self._rule(request)
        if rule.hits < hits:
            await within_real_time(timeout_s, partial(self._injector.wait_hits, rule, hits))
        else:
            await trio.lowlevel.checkpoint()
        if rule.hits < hits:
            raise HttpError(
                408,
                f"fault {rule.rule_id} ({rule.description}) fired {rule.hits} of {hits} times in "
                f"{timeout_s:g} s; {rule.matched} matched",
            )
        return rule_json(rule)

    async def _remove(self, request: HttpRequest) -> Any:
        rule_id = request.parameters["id"]
        if "." in rule_id:
            return await self._hand_on(lambda: self._peers.remove(rule_id))
        await trio.lowlevel.checkpoint()
        rule = self._rule(request)
        self._injector.remove(rule.rule_id)
        return rule_json(rule)

    async def _add_disk(self, request: HttpRequest) -> Any:
        said = request.json()
        brokers = self._brokers(said.pop("broker", None))
        if brokers is not None:
            return await self._hand_on(lambda: self._each(brokers, "POST", "/disk-faults", said))
        await trio.lowlevel.checkpoint()
        if self._disk is None:
            raise HttpError(409, "this broker's files cannot be made to fail")
        fault = _fitting(lambda: disk_fault(said))
        self._disk_count += 1
        fault.fault_id = f"d{self._disk_count}"
        self._disk.faults = (*self._disk.faults, fault)
        return _disk_json(fault)

    # --- Other brokers ---------------------------------------------------------------------------

    def _brokers(self, said: object) -> list[int] | None:
        """Return the brokers that an order is for; None if only this one.

        Raises:
            HttpError: 422, it names no broker that is known.
        """
        if said is None:
            return None
        peers = self._control.peers
        if not peers:
            raise HttpError(422, "kafkalite.control.peers names no broker that could be asked")
        if said == ALL:
            return sorted(peers)
        text = str(said)
        if isinstance(said, bool) or not text.isdigit() or int(text) not in peers:
            known = ", ".join(map(str, sorted(peers)))
            raise HttpError(422, f"broker is {ALL!r} or one of {known}, not {said!r}")
        return [int(text)]

    def _each(self, brokers: list[int], method: str, path: str, body: Any = None) -> Any:
        found = self._peers.each(brokers, method, path, body)
        return {"brokers": {str(number): answer for number, answer in found.items()}}

    async def _hand_on(self, ask: Callable[[], Any]) -> Any:
        """Return what others answer, who are asked by a thread."""
        try:
            return await trio.to_thread.run_sync(ask, limiter=self._limiter, abandon_on_cancel=True)
        except ControlError as error:
            raise HttpError(error.status or 502, str(error)) from None

    def _rule(self, request: HttpRequest) -> Rule:
        rule = self._injector.rules.get(request.parameters["id"])
        if rule is None:
            raise HttpError(404, f"there is no fault {request.parameters['id']}")
        return rule

    @property
    def _disk_faults(self) -> tuple[DiskFault, ...]:
        return () if self._disk is None else self._disk.faults

    # --- Clock -----------------------------------------------------------------------------------

    async def _show_clock(self, request: HttpRequest) -> Any:
        brokers = self._brokers(request.query.get("broker"))
        if brokers is not None:
            return await self._hand_on(lambda: self._each(brokers, "GET", "/clock"))
        await trio.lowlevel.checkpoint()
        return clock_json(self._clock)

    async def _change_clock(self, request: HttpRequest) -> Any:
        """Do one of: advance_s, freeze, resume, set (ISO 8601), set_ms, rate, reset."""
        said = request.json()
        brokers = self._brokers(said.pop("broker", None))
        if brokers is not None:
            return await self._hand_on(lambda: self._each(brokers, "POST", "/clock", said))
        if len(said) != 1:
            raise HttpError(422, f"one of {', '.join(_CLOCK_CHANGES)}, advance_s is to be given")
        ((name, value),) = said.items()
        try:
            if name == "advance_s":
                await self._clock.advance(_number(value))
            elif name in _CLOCK_CHANGES:
                _CLOCK_CHANGES[name](self._clock, value)
                await trio.lowlevel.checkpoint()
            else:
                raise HttpError(422, f"a clock has no {name!r}")
        except ValueError as error:
            raise HttpError(422, str(error)) from None
        return clock_json(self._clock)


def disk_fault(said: dict[str, Any]) -> DiskFault:
    """Return the fault of a disk that names and values describe.

    Raises:
        FaultRuleError, ValueError: they do not fit.
    """
    known = {"op", "topic", "partition", "error", "delay_s", "times"}
    unknown = sorted(set(said) - known)
    if unknown:
        raise FaultRuleError(f"a disk fault has no {unknown[0]!r}; it has {sorted(known)}")
    error = said.get("error")
    if error is not None and error not in DISK_ERRORS:
        raise FaultRuleError(f"error is one of {', '.join(DISK_ERRORS)}, not {error!r}")
    return DiskFault(
        operation=said.get("op", "write"),
        topic=said.get("topic"),
        partition=said.get("partition"),
        errno=DISK_ERRORS.get(str(error), 0),
        delay_s=float(said.get("delay_s", 0)),
        times=said.get("times"),
    )


def rule_json(rule: Rule) -> dict[str, Any]:
    """Return a rule as it is told."""
    return {
        "id": rule.rule_id,
        "rule": rule.description,
        "hits": rule.hits,
        "matched": rule.matched,
        "spent": rule.is_spent,
    }


def clock_json(clock: AdjustableClock) -> dict[str, Any]:
    """Return a clock as it is told."""
    return {
        "now_ms": clock.wall_ms(),
        "ahead_s": round(clock.ahead_s, 3),
        "rate": clock.rate,
        "frozen": clock.is_frozen,
    }


def load_rules(text: str, control: Control) -> int:
    """Add the faults of a file, and return how many there are.

    It is a JSON list of objects, each with the names of one rule; of `{"chaos": {...}}`; or of a
    fault of the disk, which has an `op`.

    Raises:
        FaultRuleError: it is none, or one of them does not fit; nothing was added then.
    """
    try:
        said = json.loads(text)
    except ValueError as error:
        raise FaultRuleError(f"no JSON: {error}") from None
    if not isinstance(said, list) or not all(isinstance(each, dict) for each in said):
        raise FaultRuleError("fault rules are a list of objects")
    disk_faults = [disk_fault(each) for each in said if "op" in each]
    rules = []
    for each in said:
        if set(each) == {"chaos"} and isinstance(each["chaos"], dict):
            rules += chaos(each["chaos"])
        elif "op" not in each:
            rules.append(parse(each))
    if disk_faults:
        if not isinstance(control.disk, FaultyDisk):
            raise FaultRuleError("this broker's files cannot be made to fail")
        control.disk.faults = (*control.disk.faults, *disk_faults)
    for specification in rules:
        control.injector.add(specification)
    return len(rules) + len(disk_faults)


def _fitting(make: Callable[[], Result]) -> Result:
    """Return what `make` makes of an order.

    Raises:
        HttpError: 422, it does not fit.
    """
    try:
        return make()
    except (TypeError, ValueError) as error:
        raise HttpError(422, str(error)) from None


def _set(clock: AdjustableClock, value: object) -> None:
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is no time in ISO 8601") from None
    if at.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone; add Z or an offset")
    clock.set_wall_ms(int(at.timestamp() * 1_000))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is no number")  # noqa: TRY004  of JSON
    return float(value)


_CLOCK_CHANGES: Final[dict[str, Callable[[AdjustableClock, Any], None]]] = {
    "freeze": lambda clock, value: clock.freeze() if value else clock.resume(),
    "resume": lambda clock, value: clock.resume() if value else None,
    "set": _set,
    "set_ms": lambda clock, value: clock.set_wall_ms(int(_number(value))),
    "rate": lambda clock, value: clock.set_rate(_number(value)),
    "reset": lambda clock, value: clock.restore() if value else None,
}


def _disk_json(fault: DiskFault) -> dict[str, Any]:
    return {
        "id": fault.fault_id,
        "op": fault.operation,
        "topic": fault.topic,
        "partition": fault.partition,
        "delay_s": fault.delay_s,
        "errno": fault.errno,
        "times": fault.times,
        "hits": fault.hits,
    }


def _seconds(request: HttpRequest, name: str, default: float) -> float:
    text = request.query.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        raise HttpError(400, f"{name}={text!r} is no number") from None
    if not 0 <= value <= WAIT_MAX_S:
        raise HttpError(400, f"{name} is from 0 to {WAIT_MAX_S:g}")
    return value


def _route(method: str, path: str, answer: Callable[[HttpRequest], Any], summary: str) -> Route:
    async def handler(request: HttpRequest) -> HttpResponse:
        return json_response(await answer(request))

    return Route(method=method, path=PREFIX + path, handler=handler, summary=summary)
