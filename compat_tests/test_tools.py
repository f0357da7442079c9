"""Apache Kafka's own command-line tools, both lines of versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.apache_kafka import KAFKA_3_9, KAFKA_4
from compat_tests.kafka_tools.scenarios import TOOL_SCENARIOS, ToolBench, ToolScenario

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.compat, pytest.mark.slow]

_CASES = [
    pytest.param(
        scenario,
        version,
        id=f"{scenario.id}-{version}",
        marks=() if version == KAFKA_4 else pytest.mark.long,
    )
    for scenario in TOOL_SCENARIOS
    for version in (KAFKA_4, KAFKA_3_9)
]


@pytest.mark.parametrize(("scenario", "version"), _CASES)
def test_tools(scenario: ToolScenario, version: str, compat_bootstrap: str, tmp_path: Path) -> None:
    """The tools do what their users expect of them against this broker."""
    bench = ToolBench(version=version, bootstrap=compat_bootstrap, folder=tmp_path)
    scenario.run(bench)
