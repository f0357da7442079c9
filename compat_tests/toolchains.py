"""Finds the programs that the clients are built and run with, installing Debian packages if it may.

A missing program raises `MissingToolchain`: `conftest.py` beside this folder makes a skip of it on
a developer's machine, and a failure where ``CI=true``.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess

from compat_tests.cache import locked

#: Debian package that brings each program.
DEBIAN_PACKAGES = {
    "java": "default-jdk-headless",
    "javac": "default-jdk-headless",
    "mvn": "maven",
    "node": "nodejs",
    "npm": "npm",
    "go": "golang-go",
    "kcat": "kcat",
    "chromium": "chromium",
    "chromedriver": "chromium-driver",
}


class MissingToolchain(Exception):
    """A program that a client needs is not on this machine and could not be installed."""


@functools.cache
def find_program(name: str) -> str:
    """Return the path of a program, installing its Debian package when run as root."""
    path = shutil.which(name)
    if path is not None:
        return path
    package = DEBIAN_PACKAGES[name]
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise MissingToolchain(f"{name} is not on PATH (Debian package {package})")
    with locked("apt-get"):
        path = shutil.which(name)
        if path is None:
            _apt_install(package)
            path = shutil.which(name)
    if path is None:
        raise MissingToolchain(f"Debian package {package} did not bring {name}")
    return path


def need_file(path: str, package: str) -> None:
    """Install a Debian package when run as root, unless the file that it brings is there."""
    if not os.path.exists(path):
        with locked("apt-get"):
            _apt_install(package)


def _apt_install(package: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
    for command in (install, ["apt-get", "update", "-q"], install):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if command is install and done.returncode == 0:
            return
    raise MissingToolchain(f"apt-get could not install {package}: {done.stderr.strip()[-500:]}")


def run_build(command: list[str], **options: object) -> None:
    """Run a fetch or compile step; a failure raises with the end of its output."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}")
