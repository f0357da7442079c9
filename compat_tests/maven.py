"""Jars of Maven Central, with those that they need themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests.toolchains import find_program, run_build

if TYPE_CHECKING:
    from pathlib import Path

_COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


def copy_jars(pom: str, folder: Path, which: str = "-DincludeScope=runtime") -> Path:
    """Put what a pom names into a folder, and return that: `libs` below the given one.

    Args:
        pom: text of the pom, which is kept beside.
        folder: that is there.
        which: option of the plugin that says which of the jars.
    """
    file, libs = folder / "pom.xml", folder / "libs"
    file.write_text(pom)
    command = [find_program("mvn"), "-B", "-q", "-f", str(file), _COPY_DEPENDENCIES]
    run_build([*command, which, f"-DoutputDirectory={libs}"])
    return libs
