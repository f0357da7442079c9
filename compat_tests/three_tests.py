"""The three tests of docs/how-to/languages.md, timed: how long each takes in each language.

    python -m compat_tests.three_tests [--runs 3] [--only python,java,node,go]

Runs the tests as the pages and READMEs have them, each language with its own runner, whose report
says how long each test took; what a runner does before its first test is not in it. Prints the
median and the longest of the runs, and ends with 1 if a median is a second or more. Only a machine
that does nothing else gives figures.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from compat_tests.cache import locked
from compat_tests.clients import node_client
from compat_tests.integrations import copied, run, write_examples
from compat_tests.toolchains import find_program
from tests.documentation import snippets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BOUND_S = 1.0
TESTS = ("lost commit", "a week of retention", "a schema that breaks readers")
_WORDS = ("lostcommit", "week", "schema")

Times = dict[str, float]


def _named(times: Mapping[str, float]) -> Times:
    """Return times by our names of the tests; others are left out."""
    found: Times = {}
    for name, seconds in times.items():
        for test, word in zip(TESTS, _WORDS, strict=True):
            if word in name.replace("_", "").lower():
                found[test] = seconds
    return found


def _junit(files: list[Path]) -> Times:
    return {
        case.get("name", ""): float(case.get("time", "nan"))
        for file in files
        for case in ET.parse(file).iter("testcase")
    }


def python(folder: Path) -> Callable[[], Times]:
    """Prepare the tests of the pages about Python."""
    (page,) = (s for s in snippets("pytest") if s.page == "docs/how-to/languages.md")
    (folder / "test_job.py").write_text(page.text)
    (registry,) = (s for s in snippets("registry") if "breaks_readers" in s.text)
    text = registry.text.rpartition("\ntest_")[0]  # the page calls it, too
    (folder / "test_registry.py").write_text(text)
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]

    def once() -> Times:
        run([*command, f"--junitxml={report}", "-o", "junit_duration_report=call"], folder)
        return _junit([report])

    return once


def java(folder: Path) -> Callable[[], Times]:
    """Prepare the extension for JUnit with the examples of its README."""
    project = copied("junit", folder)
    write_examples(project / "README.md", project)
    command = [find_program("mvn"), "-B", "-q", "-Dstyle.color=never", "test"]

    def once() -> Times:
        with locked("maven"):
            run([*command, "-Dtest=PlainClientTest"], project)
        return _junit([*(project / "target/surefire-reports").glob("*PlainClientTest.xml")])

    return once


def node(folder: Path) -> Callable[[], Times]:
    """Prepare the package with the example of its README."""
    package = copied("node", folder)
    project = folder / "project"
    (project / "node_modules").mkdir(parents=True)
    (project / "node_modules" / "kafkalite").symlink_to(package)
    write_examples(package / "README.md", project)
    _, environment = node_client("kafkajs")
    command = [find_program("node"), "--test", "--test-reporter=tap", "orders.test.js"]

    def once() -> Times:
        said = run(command, project, **environment)
        found = re.findall(r"ok \d+ - (.+)\n\s+---\n\s+duration_ms: ([\d.]+)", said)
        return {name.replace(" ", ""): float(ms) / 1_000 for name, ms in found}

    return once


def go(folder: Path) -> Callable[[], Times]:
    """Prepare the module with the example of its README."""
    module = copied("go", folder)
    write_examples(module / "README.md", module)
    command = [find_program("go"), "test", "-count=1", "-json", "./..."]

    def once() -> Times:
        lines = run(command, module / "example").splitlines()
        told = [json.loads(line) for line in lines if line.startswith("{")]
        return {
            each["Test"]: each["Elapsed"] for each in told if "Elapsed" in each and "Test" in each
        }

    return once


LANGUAGES: Mapping[str, Callable[[Path], Callable[[], Times]]] = {
    "python": python,
    "java": java,
    "node": node,
    "go": go,
}


def main() -> int:
    """Print a table; return 1 if a test takes too long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default=",".join(LANGUAGES))
    wanted = parser.parse_args()
    print("| test | language | median | longest |\n| --- | --- | --- | --- |")
    is_good = True
    for language in wanted.only.split(","):
        with tempfile.TemporaryDirectory(prefix="kafkalite-three-") as folder:
            once = LANGUAGES[language](Path(folder))
            runs = [_named(once()) for _ in range(wanted.runs)]
        for test in TESTS:
            times = [each[test] for each in runs]
            median = statistics.median(times)
            is_good &= median < BOUND_S
            print(f"| {test} | {language} | {median:.2f} s | {max(times):.2f} s |", flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
