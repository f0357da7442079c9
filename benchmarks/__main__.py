"""`python -m benchmarks [NAME...]`: run the measurements of kafkalite alone, print one table.

`python -m benchmarks compare [ROW...]` measures side by side with Apache Kafka, and `python -m
benchmarks tls` what encryption costs on both.
"""

import json
import sys
from collections.abc import Callable

import click
from tqdm import tqdm

from benchmarks import machine, memory, startup, throughput, transactions, turns
from benchmarks.result import Result

BENCHMARKS: dict[str, Callable[[], list[Result]]] = {
    "process-start": startup.process_start,
    "in-process": startup.in_process,
    "idle": memory.idle,
    "connections": memory.idle_connections,
    "producer": throughput.producer,
    "requests": throughput.requests_one_in_flight,
    "transactions": transactions.transactions,
    "turns": turns.longest_turns,
}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*BENCHMARKS]))
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def main(names: tuple[str, ...], as_json: bool) -> None:
    """Measure kafkalite on this machine; all of it takes about a minute."""
    results: list[Result] = []
    for name in tqdm(names or BENCHMARKS, desc="benchmarks", leave=False, disable=None):
        results += BENCHMARKS[name]()
    if as_json:
        rows = [result.as_dict() for result in results]
        click.echo(json.dumps({"machine": machine.describe(), "results": rows}, indent=2))
        return
    click.echo(machine.describe())
    click.echo()
    rows = [("what", "measured", "target", ""), ("---", "---", "---", "---")]
    rows += [result.as_row() for result in results]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            "-" * width if cell == "---" else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ]
        click.echo(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        from benchmarks.compare.command import main as compare

        compare(sys.argv[2:], prog_name="python -m benchmarks compare")
    if sys.argv[1:2] == ["tls"]:
        from benchmarks.tls import main as tls

        tls(sys.argv[2:], prog_name="python -m benchmarks tls")
    main()
