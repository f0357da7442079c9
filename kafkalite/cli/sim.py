"""`kafkalite sim`: run brokers in a simulated world in which everything goes wrong."""

import itertools
import random
import subprocess
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

import kafkalite
from kafkalite.cli.output import examples, progress
from kafkalite.sim.campaign import LEVELS, Failure, Plan, Summary, run_seeds
from kafkalite.sim.traces import Trace

if TYPE_CHECKING:
    from collections.abc import Iterable

SHOWN_LINES: Final = 30
SHOWN_COLUMNS: Final = 240
"""Of the trace of a run that failed."""


class SeedRange(click.ParamType):  # type: ignore[type-arg]
    """`A..B`, both included."""

    name = "A..B"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        """Return the seeds."""
        if isinstance(value, range):
            return value
        first, dots, last = str(value).partition("..")
        try:
            seeds = range(int(first), int(last) + 1)
        except ValueError:
            self.fail(f"{value!r} is no range such as 0..999", param, ctx)
        if not dots or not seeds:
            self.fail(f"{value!r} is no range such as 0..999", param, ctx)
        return seeds


@click.command(
    epilog=examples(
        "kafkalite sim --seed 7 --level 2",
        "kafkalite sim --seeds 0..999",
        "kafkalite sim --level 2 --minutes 10",
    )
)
@click.option("--seed", type=int, help="Run this one.")
@click.option("--seeds", type=SeedRange(), help="Run these, both ends included.")
@click.option(
    "--level",
    type=click.Choice([str(level) for level in LEVELS]),
    default="1",
    show_default=True,
    help="1: roles and controllers over messages; 2: whole brokers.",
)
@click.option("--minutes", type=click.FloatRange(min=0), help="Begin no run after this time.")
@click.option(
    "--brokers",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Of level 2; 1 is a broker that is alone.",
)
@click.option(
    "--grows", is_flag=True, help="Of level 2: a topic grows while producers write to it."
)
@click.option("--trace", is_flag=True, help="Print everything that happens.")
def sim(
    seed: int | None,
    seeds: range | None,
    level: str,
    minutes: float | None,
    brokers: int,
    grows: bool,
    trace: bool,
) -> int:
    """Run brokers, their network, disks and metadata store in simulation, by seed.

    Messages are delayed and lost, brokers crash and lose what was not synced, networks part,
    sessions expire; and at every step it is checked that nothing acknowledged is lost or changed.
    A seed gives the same run each time. Ends with 1 if a run failed.
    """
    if seed is not None and seeds is not None:
        raise click.UsageError("--seed and --seeds exclude each other.")
    plan = Plan(level=int(level), brokers=brokers, grows=grows)
    if seed is not None:
        return _run_one(plan, seed, trace=trace)
    chosen: Iterable[int] = seeds if seeds is not None else itertools.count(_any_seed())
    if seeds is None and minutes is None:
        minutes = 1.0
    total = None if seeds is None else len(seeds)
    with progress("sim", total=total, unit="runs", shown=sys.stderr.isatty()) as bar:
        summary = run_seeds(
            plan,
            chosen,
            end_s=None if minutes is None else minutes * 60,
            on_run=lambda _: bar.update(1),
        )
    return _report(summary)


def _run_one(plan: Plan, seed: int, *, trace: bool) -> int:
    traced = Trace(click.echo if trace else None)
    try:
        outcome = plan.run(seed, traced)
    except Exception as error:
        if not trace:
            for line in list(traced.lines)[-SHOWN_LINES:]:
                click.echo(line[:SHOWN_COLUMNS])
        traceback.print_exception(error)
        _show_failure(Failure(plan, seed, error))
        return 1
    click.echo(
        f"seed {seed}: {outcome.events:,} events, {outcome.acknowledged:,} records acknowledged, "
        f"faults {outcome.faults or 'none'}, trace {outcome.digest}"
    )
    return 0


def _report(summary: Summary) -> int:
    for line in summary.lines():
        click.echo(line)
    for failure in summary.failures[:1]:
        _show_failure(failure)
    return 1 if summary.failures else 0


def _show_failure(failure: Failure) -> None:
    click.echo(f"{failure}", err=True)
    click.echo(f"commit {_commit()}; again: {failure.plan.command(failure.seed)}", err=True)


def _any_seed() -> int:
    return random.SystemRandom().randrange(1 << 40)


def _commit() -> str:
    """Return the commit of a source tree, the version of an installed package."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return f"of version {kafkalite.__version__}"
    return found.stdout.strip()
