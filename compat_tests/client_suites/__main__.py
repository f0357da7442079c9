"""`python -m compat_tests.client_suites NAME`: run a suite, keep and show what came of it."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path

from compat_tests.client_suites import document
from compat_tests.client_suites.brokers import KAFKALITE, KINDS
from compat_tests.client_suites.results import FAILED, PASSED, SKIPPED, Results
from compat_tests.client_suites.suites import SUITES
from compat_tests.matrix import DOCUMENT
from compat_tests.page import replace_part


def main(arguments: list[str] | None = None) -> int:
    """Run one suite; return 1 if a test failed."""
    parser = argparse.ArgumentParser("python -m compat_tests.client_suites", description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--broker", choices=KINDS, default=KAFKALITE)
    parser.add_argument("--only", action="append", default=[], help="a test; nothing else is run")
    parser.add_argument("--log", type=Path, help="file for all that the suite prints")
    chosen = parser.parse_args(arguments)
    suite = importlib.import_module(f"compat_tests.client_suites.{chosen.suite}")
    log_file = chosen.log or Path(tempfile.mkstemp(prefix=f"{chosen.suite}-", suffix=".log")[1])
    found = suite.run(chosen.broker, log_file, chosen.only)
    results = Results.load(chosen.suite)
    results.version = suite.TITLE
    kept = results.outcomes.get(chosen.broker, {}) if chosen.only else {}
    results.outcomes[chosen.broker] = {**kept, **found}
    results.save()
    replace_part(DOCUMENT, document.TITLE, document.section())
    kinds = [outcome.kind for outcome in found.values()]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in (PASSED, FAILED, SKIPPED))
    print(f"{suite.TITLE} against {chosen.broker}: {counts}; all that was said: {log_file}")
    return int(FAILED in kinds)


if __name__ == "__main__":
    sys.exit(main())
