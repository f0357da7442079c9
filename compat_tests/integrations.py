"""The helpers of `integrations/` for other languages, copied and built with their own tools.

Examples of their READMEs are files there: `<!-- file: NAME -->` before a block of code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
INTEGRATIONS = REPOSITORY / "integrations"
TIMEOUT_S = 500

_FILE = re.compile(r"<!-- file: (\S+) -->\n```\w*\n(.*?)```\n", re.DOTALL)


def write_examples(readme, target):
    """Write the examples of a README where they say, and return how many there are."""
    found = _FILE.findall(readme.read_text())
    for name, text in found:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)
    return len(found)


def copied(name, tmp_path):
    """Return a copy of a helper's folder: builds write into theirs."""
    built = shutil.ignore_patterns("target", "node_modules")
    return Path(shutil.copytree(INTEGRATIONS / name, tmp_path / name, ignore=built))


def run(command, cwd, **environment):
    """Run a build with this checkout as the broker; return what it printed."""
    variables = {
        **os.environ,
        "KAFKALITE_COMMAND": f"{sys.executable} -m kafkalite",
        "PYTHONPATH": str(REPOSITORY),
        **environment,
    }
    done = subprocess.run(
        command,
        cwd=cwd,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8_000:]
    return done.stdout
