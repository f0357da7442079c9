"""`kafkalite top`: rates, topics and lag of a broker in the terminal."""

import json
import time
import urllib.error
import urllib.request
from typing import Any

import click

from kafkalite.cli.output import examples
from kafkalite.http.port import DEFAULT_PORT, LOOPBACK

ROWS = 15


@click.command(epilog=examples("kafkalite top", "kafkalite top --http http://127.0.0.1:9081"))
@click.option(
    "--http",
    "url",
    default=f"http://{LOOPBACK}:{DEFAULT_PORT}",
    show_default=True,
    envvar="KAFKALITE_HTTP",
    show_envvar=True,
    metavar="URL",
    help="The HTTP port of a broker or of `kafkalite console`.",
)
@click.option("--interval", type=click.FloatRange(min=0.5), default=2, show_default=True)
@click.option("--count", type=click.IntRange(min=1), help="End after so many pictures.")
def top(url: str, interval: float, count: int | None) -> None:
    """Show topics by records per second, and groups by lag, until Ctrl-C."""
    before: dict[str, int] = {}
    before_s = 0.0
    shown = 0
    while count is None or shown < count:
        if shown:
            time.sleep(interval)
        topics = _ask(url, "/topics")["topics"]
        groups = _ask(url, "/groups?lag=true")["groups"]
        now_s = time.monotonic()
        ends = {topic["name"]: topic["records"] for topic in topics}
        rates = {
            name: max(0.0, (records - before[name]) / (now_s - before_s))
            for name, records in ends.items()
            if name in before
        }
        if shown:
            click.clear()
        click.echo(picture(topics, groups, rates))
        before, before_s = ends, now_s
        shown += 1


def picture(
    topics: list[dict[str, Any]], groups: list[dict[str, Any]], rates: dict[str, float]
) -> str:
    """Return what is shown, the busiest topics and the groups furthest behind first."""
    lines = [f"{'TOPIC':40} {'RECORDS':>14} {'MORE/S':>10} {'PARTITIONS':>10}"]
    topics = sorted(topics, key=lambda each: (-rates.get(each["name"], 0), each["name"]))
    lines += [
        f"{each['name'][:40]:40} {each['records']:>14,} {rates.get(each['name'], 0):>10,.1f} "
        f"{each['partitions']:>10}"
        for each in topics[:ROWS]
    ]
    lines += ["", f"{'GROUP':40} {'LAG':>14} {'STATE':>21}"]
    groups = sorted(groups, key=lambda each: (-(each["lag"] or 0), each["group_id"]))
    lines += [
        f"{each['group_id'][:40]:40} {each['lag'] or 0:>14,} {each['state']:>21}"
        for each in groups[:ROWS]
    ]
    return "\n".join(lines)


def _ask(url: str, path: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/api/v1{path}", timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as error:
        raise click.ClickException(f"{url}: {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise click.ClickException(f"{url}: {error.reason}; is --http right?") from None
    return found
