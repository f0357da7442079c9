"""What the figures were measured on."""

import os
import platform
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

from kafkalite import is_compiled


def describe(compiled: str | None = None) -> str:
    """One line: processor, cores, memory, kernel, Python, libraries, what else was going on.

    Args:
        compiled: the interpreter of the compiled build, if there is one beside.
    """
    load = os.getloadavg()[0]
    return ", ".join(
        [
            f"{_processor()} ({os.cpu_count()} cores, {_memory_gib():.0f} GiB)",
            f"{platform.system()} {platform.release().split('-')[0]}",
            f"Python {build()}",
            f"kafkalite {'compiled' if is_compiled() else 'pure'}"
            + (f" and compiled (Python {_of(compiled)})" if compiled else ""),
            f"trio {version('trio')}",
            f"confluent-kafka {version('confluent-kafka')}",
            f"load before {load:.1f}",
        ]
    )


DEBIAN = "/usr/share/python-wheels"
"""Option of the Pythons that Debian and Ubuntu build: by a profile, but by rules of theirs, that
leave no `--enable-optimizations` and take the flags away again."""


def is_optimised(options: str) -> bool:
    """Whether an interpreter configured by these options was optimised by a profile."""
    return "--enable-optimizations" in options or DEBIAN in options


def _build() -> str:
    """Tell how the interpreter was built: without a profile costs a fifth or more."""
    if is_optimised(sysconfig.get_config_var("CONFIG_ARGS") or ""):
        return "(built with profile-guided optimisation)"
    return "(built without optimisation, which costs 1.2 to 1.36 times the processor time)"


def _of(python: str) -> str:
    """Tell the same of another interpreter."""
    code = "from benchmarks import machine; print(machine.build())"
    root = str(Path(__file__).parent.parent)
    asked = subprocess.run([python, "-c", code], cwd=root, capture_output=True, text=True)
    return asked.stdout.strip() or "that tells nothing"


def build() -> str:
    """Return the interpreter's version and how it was built."""
    return f"{sys.version.split()[0]} {_build()}"


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
