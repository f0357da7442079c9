"""What holds for the tests of all folders: what a machine lacks is a skip, and in CI a failure.

A test or fixture that needs a program asks for it by `compat_tests.toolchains.find_program`.
"""

import os
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


def fail_in_ci(report: Any) -> Any:
    """Make a failure of a skip where CI is set: nobody would see what is not tested any more."""
    if report.skipped and os.environ.get("CI", "").lower() == "true":
        report.outcome = "failed"
        report.longrepr = f"CI must have it. {report.longrepr[2]}"
    return report
