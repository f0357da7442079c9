"""`python -m benchmarks compare`: rows, profiles, and where the results go."""

import importlib.util
import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import click
from tqdm import tqdm

from benchmarks import machine
from benchmarks.compare import bare_loops, startup
from benchmarks.compare.brokers import (
    KFAKE,
    MOCK,
    Apache,
    BrokerUnderTest,
    Kafkalite,
    Kfake,
    MockCluster,
)
from benchmarks.compare.clusters import ApacheCluster, KafkaliteCluster
from benchmarks.compare.measure import Case, Outcome, run_case, summary
from benchmarks.compare.rows.choices import choices
from benchmarks.compare.rows.consumers import consumers, together
from benchmarks.compare.rows.fairness import fairness
from benchmarks.compare.rows.groups import groups
from benchmarks.compare.rows.latency import latency
from benchmarks.compare.rows.limits import limits
from benchmarks.compare.rows.producers import producers
from benchmarks.compare.rows.replication import failover, replicated
from benchmarks.compare.rows.requests import small_requests
from benchmarks.compare.rows.scale import scale, stored_sizes

DOCS = Path(__file__).parent.parent.parent / "docs"
ROWS: dict[str, tuple[str, Callable[[float], list[Case]]]] = {
    "producers": ("1", producers),
    "consumers": ("2", consumers),
    "together": ("3", together),
    "latency": ("5", latency),
    "requests": ("6", small_requests),
    "limits": ("7", limits),
    "scale": ("8", scale),
    "stored": ("8", stored_sizes),
    "choices": ("10", choices),
    "fairness": ("12", fairness),
    "groups": ("13", groups),
}
CLUSTER_ROWS: dict[str, tuple[str, Callable[[float], list[Case]]]] = {
    "replicated": ("4", replicated),
    "failover": ("11", failover),
}
START = "start"
SPEED = "speed"
SPEED_CASES: dict[str, tuple[str, ...]] = {
    "requests": ("10 conn", "50 conn", "1,000 conn"),
    "producers": ("8 KiB batches", "batch.size=0"),
    "scale": ("1,000 partitions",),
}
"""Cases of the rows in which the builds and several processes differ most."""
QUICK_FACTOR, QUICK_RUNS, QUICK_WARM_UP = 0.5, 3, 0.4
FULL_FACTOR, FULL_RUNS, FULL_WARM_UP = 2.5, 5, 0.4
LIMIT_SECONDS = 3


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*ROWS, START, *CLUSTER_ROWS, SPEED]))
@click.option("--quick", is_flag=True, help="Fewer and shorter runs: minutes instead of an hour.")
@click.option("--factor", type=float, help="Length of a run instead of the profile's.")
@click.option("--runs", type=int, help="Runs instead of the profile's.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Where results go.")
@click.option("--keep", is_flag=True, help="Keep the other cases that the file has.")
@click.option("--case", "part", default="", help="Only cases with this text in their name.")
@click.option(
    "--compiled",
    metavar="PYTHON",
    help="Measure the compiled build beside, which this interpreter has installed.",
)
@click.option("--processes", type=int, help="Measure --processes N beside, of the fastest build.")
@click.option("--deadline", type=float, help="Begin no case after so many seconds.")
def main(
    names: tuple[str, ...],
    quick: bool,
    factor: float | None,
    runs: int | None,
    json_path: Path | None,
    keep: bool,
    part: str,
    compiled: str | None,
    processes: int | None,
    deadline: float | None,
) -> None:
    """Measure kafkalite and Apache Kafka side by side, and write docs/performance.md.

    The rows are all of them unless some are named; "speed" is a few cases of several rows.
    """
    from benchmarks.compare import report

    if importlib.util.find_spec("matplotlib") is None:  # found missing after an hour otherwise
        raise click.ClickException("plots need matplotlib: pip install '.[benchmarks]'")
    factor = factor or (QUICK_FACTOR if quick else FULL_FACTOR)
    runs = runs or (QUICK_RUNS if quick else FULL_RUNS)
    warm_up = QUICK_WARM_UP if quick else FULL_WARM_UP
    json_path = json_path or DOCS / "performance.json"
    results = {
        "machine": machine.describe(compiled),
        "peer": f"Apache Kafka {Apache.version}",
        "when": time.strftime("%Y-%m-%d"),
        "profile": "quick" if quick else "full",
        "runs": runs,
        "lines": [],
        "failures": [],
    }
    ends = time.monotonic() + deadline if deadline else None
    parts = {name: (part,) for name in names or (*ROWS, START, *CLUSTER_ROWS) if name != SPEED}
    if SPEED in names:
        parts = {**SPEED_CASES, **parts}
    builds = [Kafkalite()]
    if compiled:
        builds.append(Kafkalite(compiled=compiled))
    if processes:
        builds.append(Kafkalite(compiled=compiled, processes=processes))
    outcomes = list(_outcomes(parts, builds, factor, runs, warm_up, ends))
    for outcome in outcomes:
        if outcome.failure:
            results["failures"].append([outcome.row, outcome.case.name, outcome.failure])
        results["lines"] += summary(outcome)
    if keep and json_path.exists():
        old = json.loads(json_path.read_text())
        done = {(line["row"], line["case"]) for line in results["lines"]}
        was_done = {(line["row"], line["case"]) for line in old["lines"]}
        results["lines"] = [
            *(line for line in old["lines"] if (line["row"], line["case"]) not in done),
            *results["lines"],
        ]
        tried = {(row, case) for row, case, _ in results["failures"]} | done
        results["failures"] = [
            *(one for one in old["failures"] if (one[0], one[1]) not in tried),
            *(one for one in results["failures"] if (one[0], one[1]) not in was_done),
        ]
        results["lines"].sort(key=lambda line: line["row"])
    json_path.write_text(json.dumps(results, indent=1) + "\n")
    report.write(json_path, DOCS if json_path.parent == DOCS else json_path.parent)
    click.echo(report.table(results))


def _outcomes(
    names: Mapping[str, tuple[str, ...]],
    builds: list[Kafkalite],
    factor: float,
    runs: int,
    warm_up: float,
    ends: float | None,
) -> list[Outcome]:
    found: list[Outcome] = []
    wanted = [name for name in names if name in ROWS]
    if wanted:
        with ExitStack() as running:
            brokers = [
                running.enter_context(broker)
                for broker in (*builds, Apache(), Kfake(), MockCluster())
            ]
            for name in wanted:
                found += _row(name, names[name], brokers, factor, runs, warm_up, ends)
    if START in names and (ends is None or time.monotonic() < ends):
        found += startup.measure(factor, runs)
    wanted = [name for name in names if name in CLUSTER_ROWS]
    if wanted and (ends is None or time.monotonic() < ends):
        with KafkaliteCluster() as ours, ApacheCluster() as theirs:
            for name in wanted:
                found += _row(name, names[name], [ours, theirs], factor, runs, warm_up, ends)
    return found


def _row(
    name: str,
    parts: tuple[str, ...],
    brokers: list[BrokerUnderTest],
    factor: float,
    runs: int,
    warm_up: float,
    ends: float | None,
) -> list[Outcome]:
    number, make = {**ROWS, **CLUSTER_ROWS}[name]
    cases = [case for case in make(factor) if any(part in case.name for part in parts)]
    found: list[Outcome] = []
    on_demand = (KFAKE, MOCK)
    for case in tqdm(cases, desc=name, leave=False, disable=None):
        if ends is not None and time.monotonic() > ends:
            outcome = Outcome(number, case, failure="no time left")
        else:
            try:
                present = [b for b in brokers if b.name not in on_demand or b.name in case.peers]
                outcome = run_case(number, case, present, runs=runs, warm_up_scale=warm_up)
            except Exception as error:  # one case must not cost the rest of a long run
                outcome = Outcome(number, case, failure=f"{type(error).__name__}: {error}")
        for line in summary(outcome):
            ratio = f"  x{line['ratio']:.2f}" if line["ratio"] else ""
            what = f"{line['case']}: {line['metric']} {line['broker']}"
            tqdm.write(f"{number}  {what} {line['median']:,.3f} {line['unit']}{ratio}")
        if outcome.failure:
            tqdm.write(f"{number}  {case.name}: {outcome.failure}")
        found.append(outcome)
    if name == "limits":
        with bare_loops.scratch() as folder:
            bare_loops.measure(folder, cases, found, LIMIT_SECONDS * factor)
    if name == "choices" and parts == ("",):
        with bare_loops.scratch() as folder:
            found += bare_loops.ways_to_send(folder, number, LIMIT_SECONDS * factor, runs)
    return found
