"""What holds for all tests: what a machine lacks is a skip; in CI a failure, if it can be had.

A test or fixture that needs a program asks for it by `compat_tests.toolchains.find_program`.
"""

import os
import re
from collections.abc import Generator
from typing import Any

import pytest

from compat_tests.toolchains import MissingToolchain


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, Any, Any]:
    """Skip a test for which a program is missing."""
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, MissingToolchain):
        report.outcome = "skipped"
        report.longrepr = str(item.path), item.location[1] or 0, f"Skipped: {call.excinfo.value}"
    return fail_in_ci(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """Leave no module out in CI."""
    return fail_in_ci((yield))


OF_THE_MACHINE = re.compile(r"needs (root|IPv6)|is Linux's|is not of Python")
"""Reasons that nobody can install away: rights, the kernel, the interpreter."""


def fail_in_ci(report: Any) -> Any:
    """Make a failure of a skip where CI is set: nobody would see what is not tested any more."""
    is_ci = os.environ.get("CI", "").lower() == "true"
    if is_ci and report.skipped and not OF_THE_MACHINE.search(report.longrepr[2]):
        report.outcome = "failed"
        report.longrepr = f"CI must have it. {report.longrepr[2]}"
    return report
