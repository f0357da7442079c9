"""`kafkalite faults` and `kafkalite clock`: make a running broker fail, and move its time."""

import json
import re
from typing import Any, Final

import click

from kafkalite.cli.output import examples
from kafkalite.faults.remote import call

DEFAULT_URL: Final = "http://127.0.0.1:9080"
_UNIT_S: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}

http_option = click.option(
    "--http",
    "url",
    envvar="KAFKALITE_HTTP",
    default=DEFAULT_URL,
    show_default=True,
    metavar="URL",
    help="The broker's HTTP address, as its ready line names it.",
)

broker_option = click.option(
    "--broker", metavar="ID|all", help="Of a cluster: which of kafkalite.control.peers is meant."
)


@click.group(
    epilog=examples(
        "kafkalite faults add api=Produce topic=orders error=NOT_ENOUGH_REPLICAS times=3",
        "kafkalite faults add api=EndTxn lose_reply=true once=true",
        "kafkalite faults add api=Fetch delay_s=2 broker=all",
        "kafkalite faults list",
    )
)
def faults() -> None:
    """Make a running broker fail requests, lose answers, or be slow."""


@faults.command("add")
@click.argument("pairs", nargs=-1, required=True, metavar="NAME=VALUE...")
@http_option
def add_fault(pairs: tuple[str, ...], url: str) -> None:
    """Add a rule: which requests (api, topic...), what is done (error, delay_s...), and when."""
    said: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise click.UsageError(f"{pair!r} is not NAME=VALUE")
        said[name] = _value(text)
    click.echo(_line(call(url, "POST", "/faults", said)))


@faults.command("list")
@broker_option
@http_option
def list_faults(url: str, broker: str | None) -> None:
    """Print the rules there are, and how often they fired."""
    for whose, found in _by_broker(call(url, "GET", f"/faults{_query(broker)}")):
        for rule in found["faults"]:
            click.echo(whose + _line(rule))
        for fault in found["disk_faults"]:
            click.echo(f"{whose}disk  {json.dumps(fault)}")


@faults.command("wait")
@click.argument("rule_id", metavar="ID")
@click.option("--hits", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--timeout", "timeout_s", type=float, default=10.0, show_default=True)
@http_option
def wait_fault(rule_id: str, hits: int, timeout_s: float, url: str) -> None:
    """Return when a rule has fired so often."""
    path = f"/faults/{rule_id}?wait_hits={hits}&timeout_s={timeout_s}"
    click.echo(_line(call(url, "GET", path)))


@faults.command("remove")
@click.argument("rule_id", metavar="ID")
@http_option
def remove_fault(rule_id: str, url: str) -> None:
    """Remove a rule."""
    click.echo(_line(call(url, "DELETE", f"/faults/{rule_id}")))


@faults.command("clear")
@broker_option
@http_option
def clear_faults(url: str, broker: str | None) -> None:
    """Remove all rules; say which of them never fired."""
    for whose, found in _by_broker(call(url, "DELETE", f"/faults{_query(broker)}")):
        for rule in found["removed"]:
            never = "" if rule["hits"] else "  never fired"
            click.echo(whose + _line(rule) + never)


@click.group(
    epilog=examples(
        "kafkalite clock advance 7d",
        "kafkalite clock freeze",
        "kafkalite clock set 2030-01-01T00:00:00Z",
    )
)
def clock() -> None:
    """Move the time of a running broker: sessions, transactions, retention, timestamps."""


@clock.command("show")
@broker_option
@http_option
def show_clock(url: str, broker: str | None) -> None:
    """Print what time it is for the broker."""
    _show(call(url, "GET", f"/clock{_query(broker)}"))


@clock.command("advance")
@click.argument("duration", metavar="DURATION")
@broker_option
@http_option
def advance_clock(duration: str, url: str, broker: str | None) -> None:
    """Let time pass (90s, 5m, 3h, 7d), and return when what was due is done."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|[smhd])", duration)
    if found is None:
        raise click.UsageError(f"{duration!r} is no duration such as 90s, 5m, 3h or 7d")
    _order(url, {"advance_s": float(found[1]) * _UNIT_S[found[2]]}, broker)


@clock.command("freeze")
@broker_option
@http_option
def freeze_clock(url: str, broker: str | None) -> None:
    """Stand still: nothing expires or times out; requests are served."""
    _order(url, {"freeze": True}, broker)


@clock.command("resume")
@broker_option
@http_option
def resume_clock(url: str, broker: str | None) -> None:
    """Go on after `freeze`."""
    _order(url, {"resume": True}, broker)


@clock.command("set")
@click.argument("moment", metavar="TIME")
@broker_option
@http_option
def set_clock(moment: str, url: str, broker: str | None) -> None:
    """Set the wall clock, for timestamps and retention; no deadline moves."""
    _order(url, {"set": moment}, broker)


@clock.command("rate")
@click.argument("rate", type=click.FloatRange(min=0))
@broker_option
@http_option
def set_rate(rate: float, url: str, broker: str | None) -> None:
    """Let so many seconds pass in each second."""
    _order(url, {"rate": rate}, broker)


@clock.command("reset")
@broker_option
@http_option
def reset_clock(url: str, broker: str | None) -> None:
    """Show the machine's time again."""
    _order(url, {"reset": True}, broker)


def _value(text: str) -> Any:
    """Return what a text stands for: JSON if it is some, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _line(rule: dict[str, Any]) -> str:
    return f"{rule['id']}  {rule['rule']}  hits={rule['hits']} matched={rule['matched']}"


def _query(broker: str | None) -> str:
    return "" if broker is None else f"?broker={broker}"


def _order(url: str, said: dict[str, Any], broker: str | None) -> None:
    _show(call(url, "POST", "/clock", said if broker is None else {**said, "broker": broker}))


def _show(found: dict[str, Any]) -> None:
    from datetime import UTC, datetime

    for whose, clock in _by_broker(found):
        moment = datetime.fromtimestamp(clock["now_ms"] / 1_000, UTC)
        state = "frozen" if clock["frozen"] else f"rate {clock['rate']:g}"
        click.echo(
            f"{whose}{moment.isoformat(timespec='milliseconds')}  {clock['ahead_s']:+g} s  {state}"
        )


def _by_broker(found: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return each broker's answer, and what its lines begin with."""
    if "brokers" not in found:
        return [("", found)]
    return [(f"broker {number}: ", each) for number, each in found["brokers"].items()]
