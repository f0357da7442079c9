"""Tests of a Go module, built from the module's own files and run with an outcome for each."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from compat_tests.cache import cached_dir
from compat_tests.client_suites.results import FAILED, PASSED, SKIPPED, Outcome
from compat_tests.toolchains import find_program, run_build

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

#: Lines that say where in a file something was found, or what goes on; not why a test failed.
_NOISE = re.compile(
    r"^\s*(=== |--- |\S+\.go:\d+:\s*$|Error Trace:|Error:\s*$|Test:|\d{4}/\d\d/\d\d|PASS|FAIL|\[)"
)
_WHY_LENGTH = 160
_TIMEOUT = "60m"
_ENDS = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}


def fetched_module(module: str, version: str) -> Path:
    """Return a copy of a module, tests and all, that may be written to."""

    def build(target: Path) -> None:
        command = [find_program("go"), "mod", "download", "-json", f"{module}@{version}"]
        done = subprocess.run(command, cwd=target, capture_output=True, text=True, check=True)
        source = json.loads(done.stdout)["Dir"]
        shutil.copytree(source, target, dirs_exist_ok=True, copy_function=shutil.copyfile)
        target.chmod(0o755)

    return cached_dir(f"suites/{module.replace('/', '-')}-{version}", build, lock="go")


def installed_program(package: str, version: str) -> Path:
    """Return the folder with a program of a Go module, built if it is not there."""

    def build(target: Path) -> None:
        environment = {**os.environ, "GOBIN": str(target)}
        run_build([find_program("go"), "install", f"{package}@{version}"], env=environment)

    return cached_dir(f"suites/{package.replace('/', '-')}-{version}", build, lock="go")


def built_tests(folder: Path, *, package: str = ".", tags: str = "") -> Path:
    """Return the program that the tests of a package are built into, once for all runs."""
    where = folder / package
    program = where / "suite.test"
    if not program.exists():
        command = [find_program("go"), "test", "-c", "-tags", tags, "-o", str(program), "."]
        run_build(command, cwd=where)
    return program


def tests_in(files: Iterable[Path]) -> list[str]:
    """Return the names of the tests that these files have."""
    names = []
    for file in sorted(files):
        names += re.findall(r"^func (Test(?!Main\b)\w+)\(", file.read_text(), re.MULTILINE)
    return names


def run_tests(
    program: Path,
    names: Sequence[str],
    *,
    environment: Mapping[str, str],
    log_file: Path,
) -> dict[str, Outcome]:
    """Run tests by their names and return what came of each, subtests apart from their parents.

    What fails is run once more by itself, as the suites' own CI does; only what fails again failed.
    """
    outcomes = _run(program, names, environment, log_file)
    again = {name.split("/")[0] for name, o in outcomes.items() if o.kind == FAILED}
    again |= set(names) - {name.split("/")[0] for name in outcomes}
    for name in sorted(again):
        outcomes = {n: o for n, o in outcomes.items() if n.split("/")[0] != name}
        found = _run(program, [name], environment, log_file)
        outcomes |= found or {name: Outcome(kind=FAILED, why="ended without an outcome")}
    return outcomes


def _run(
    program: Path,
    names: Sequence[str],
    environment: Mapping[str, str],
    log_file: Path,
) -> dict[str, Outcome]:
    """Run the program once; its whole output is added to the log file."""
    pattern = f"^({'|'.join(names)})$"
    command = [find_program("go"), "tool", "test2json", "-t", str(program), "-test.v=test2json"]
    command += ["-test.run", pattern, "-test.timeout", _TIMEOUT]
    said: dict[str, list[str]] = {}
    outcomes: dict[str, Outcome] = {}
    with (
        subprocess.Popen(
            command,
            cwd=program.parent,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
        open(log_file, "a") as log,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line) if line.startswith("{") else {"Output": line}
            test = event.get("Test", "")
            if "Output" in event:
                log.write(event["Output"])
                said.setdefault(test, []).append(event["Output"])
            kind = _ENDS.get(event.get("Action", ""))
            if kind is not None and test:
                why = "" if kind == PASSED else _why(said.get(test, []))
                outcomes[test] = Outcome(kind=kind, why=why)
                print(f"  {test}: {outcomes[test]}", flush=True)
    return without_parents(outcomes)


def without_parents(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """Leave out tests that only have subtests run, if one of these tells as much."""
    kept = {}
    for name, outcome in outcomes.items():
        below = [found for other, found in outcomes.items() if other.startswith(f"{name}/")]
        if not any(found.kind == outcome.kind for found in below):
            kept[name] = outcome
    return kept


def _why(output: Sequence[str]) -> str:
    """Return the first line that tells something."""
    lines = [line.strip() for line in "".join(output).splitlines() if not _NOISE.match(line)]
    found = next((line for line in lines if line), "")
    return re.sub(r"^\S+\.go:\d+: ", "", found)[:_WHY_LENGTH]
