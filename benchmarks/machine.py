"""What the figures were measured on."""

import os
import platform
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path


def describe() -> str:
    """One line: processor, cores, memory, kernel, Python, libraries, what else was going on."""
    load = os.getloadavg()[0]
    return ", ".join(
        [
            f"{_processor()} ({os.cpu_count()} cores, {_memory_gib():.0f} GiB)",
            f"{platform.system()} {platform.release().split('-')[0]}",
            f"Python {sys.version.split()[0]} {_build()}",
            f"trio {version('trio')}",
            f"confluent-kafka {version('confluent-kafka')}",
            f"load before {load:.1f}",
        ]
    )


def _build() -> str:
    """Tell whether the interpreter was optimised by a profile: without it costs a fifth or more."""
    options = sysconfig.get_config_var("CONFIG_ARGS") or ""
    if "--enable-optimizations" in options:
        return "(built with profile-guided optimisation)"
    return "(built without optimisation, which costs 1.2 to 1.36 times the processor time)"


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
