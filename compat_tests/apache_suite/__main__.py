"""Run Apache Kafka's own integration tests: `python -m compat_tests.apache_suite [CLASS ...]`.

Classes that the result file has are not run again; name them, or use --again. A class is given by
its whole name or the end of it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from compat_tests.apache_suite import document
from compat_tests.apache_suite.classes import all_classes, known_reasons
from compat_tests.apache_suite.jars import SUITES
from compat_tests.apache_suite.results import COMMITTED, Results
from compat_tests.apache_suite.running import Outcome, run_classes
from compat_tests.matrix import DOCUMENT
from compat_tests.page import replace_part


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("classes", nargs="*", metavar="CLASS")
    parser.add_argument("--suite", choices=SUITES, action="append", help="only classes of this jar")
    parser.add_argument("--broker", choices=("kafkalite", "apache"), default="kafkalite")
    parser.add_argument("--results", type=Path, help="file of results")
    parser.add_argument("--again", action="store_true", help="also run what has a result")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for one class")
    parser.add_argument("--keep", type=Path, help="folder for the logs of every class")
    parser.add_argument("--list", action="store_true", help="show the classes and run none")
    parser.add_argument("--document", action="store_true", help="write the page from the results")
    options = parser.parse_args()
    if options.document:
        replace_part(DOCUMENT, document.TITLE, document.section())
        return
    chosen = _chosen(options.classes, options.suite or list(SUITES))
    if options.list:
        print("\n".join(chosen))
        return
    default = COMMITTED if options.broker == "kafkalite" else Path("apache-suite-apache.json")
    results = Results(options.results or default, all_classes())
    reasons = known_reasons() if options.broker == "kafkalite" else {}
    wanted = [
        name
        for name in chosen
        if results.by_class[name] is None or options.again or options.classes
    ]
    for name in wanted:
        if name in reasons:
            results.add(name, Outcome(not_applicable={"all": reasons[name]}))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        outcomes = run_classes(
            [name for name in wanted if name not in reasons],
            broker=options.broker,
            timeout_s=options.timeout,
            not_applicable=reasons,
            keep=options.keep or Path(scratch),
        )
        for number, (name, outcome) in enumerate(outcomes, 1):
            results.add(name, outcome)
            _show(f"{number}/{len(wanted)} {name.rpartition('.')[2]}", outcome)


def _show(name: str, outcome: Outcome) -> None:
    print(
        f"{name}: {outcome.passed} passed, {len(outcome.failed)} failed,"
        f" {len(outcome.not_applicable)} not applicable, {outcome.seconds:.0f} s",
        *(f"\n    {test}: {text[:200]}" for test, text in outcome.failed.items()),
        f"\n    {outcome.problem}" if outcome.problem else "",
        flush=True,
    )


def _chosen(wanted: list[str], suites: list[str]) -> list[str]:
    known = [name for name, suite in all_classes().items() if suite in suites]
    if not wanted:
        return known
    found = [name for end in wanted for name in known if name == end or name.endswith(f".{end}")]
    if len(found) < len(wanted):
        raise SystemExit("not among the classes, see --list: " + " ".join(wanted))
    return found


if __name__ == "__main__":
    main()
