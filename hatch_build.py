"""The compiled wheel: what a Produce or a Fetch passes through, as machine code (decision 0171).

Hatchling runs this where it is told to; a wheel is pure Python otherwise:

    HATCH_BUILD_HOOKS_ENABLE=1 pip wheel --no-deps .

The modules are those that `pyproject.toml` lists for it. Their sources stay in the wheel, for
tracebacks and for whoever reads them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEVEL = "KAFKALITE_COMPILED_LEVEL"
"""Variable with the C compiler's optimisation; a test of behaviour alone is compiled by 0."""

LOWERED = "kafkalite/wire/lowered"
"""Package of the written codecs; there is none in a checkout."""

SETUP = """
from mypyc.build import mypycify
from setuptools import setup

options = ["--config-file", "mypy.ini"]
extensions = mypycify([*options, *{paths!r}], opt_level={level!r}, multi_file=True)
setup(name="kafkalite", packages=[], ext_modules=extensions)
"""

MYPY = """
[mypy]
ignore_missing_imports = True
"""


class CompiledModules(BuildHookInterface):  # type: ignore[type-arg]
    """Puts what mypyc makes of the modules into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, in a folder of its own."""
        if self.target_name != "wheel" or version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory(prefix="kafkalite-compiled-")
        folder = Path(self._folder.name)
        made = compile_modules(
            Path(self.root), folder, self.config["modules"], self.config["codecs"]
        )
        for path in made:
            build_data["force_include"][str(path)] = path.relative_to(folder).as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["dependencies"] += self.config["codecs-need"]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        del version, build_data, artifact_path
        if self.target_name == "wheel" and hasattr(self, "_folder"):
            self._folder.cleanup()


def compile_modules(root: Path, folder: Path, modules: list[str], codecs: list[str]) -> list[Path]:
    """Compile a copy of the package, so that nothing is left beside the sources.

    Args:
        root: of the checkout.
        folder: for the copy; empty.
        modules: below the package, such as "wire/framing".
        codecs: modules of messages whose decoders and encoders are written here (decision 0172).

    Returns:
        What was made, in `folder`, at its place in the wheel.
    """
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(root / "kafkalite", folder / "kafkalite", ignore=ignored)
    paths = [f"kafkalite/{module}.py" for module in modules]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    write = [sys.executable, "-m", "kafkalite.wire.native", LOWERED, *codecs]
    subprocess.run(write, cwd=folder, env=environment, check=True)
    paths += sorted(str(path.relative_to(folder)) for path in (folder / LOWERED).glob("[a-z]*.py"))
    (folder / "mypy.ini").write_text(MYPY)
    (folder / "setup.py").write_text(SETUP.format(paths=paths, level=os.environ.get(LEVEL, "3")))
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the modules could not be compiled:\n{done.stdout}")
    written = (folder / LOWERED).glob("*.py")
    return [*folder.glob("*.so"), *folder.glob("kafkalite/**/*.so"), *written]
