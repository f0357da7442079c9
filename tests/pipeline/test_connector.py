"""The connector's jars: what is asked of Ivy, and what is kept. A script stands for Java."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kafkalite.pipeline.connector import (
    cache_folder,
    connector_coordinates,
    connector_jars,
    ivy_module,
    ivy_settings,
)
from kafkalite.pipeline.errors import PipelineError
from kafkalite.pipeline.installation import JavaRuntime, SparkInstallation

SPARK = SparkInstallation(home=Path("/spark"), version="4.0.0", scala_version="2.13")
CONNECTOR = "spark-sql-kafka-0-10_2.13-4.0.0.jar"


@pytest.fixture
def java(tmp_path):
    """Make a Java whose Ivy runs a line of shell; $jars is the folder to fill."""

    def make(line):
        program = tmp_path / "java" / "bin" / "java"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(
            "#!/bin/sh\n"
            f"echo call >> {tmp_path}/calls\n"
            'for last do :; done; jars="${last%/*}"; mkdir -p "$jars"\n'
            f"{line}\n"
        )
        program.chmod(0o755)
        return JavaRuntime(home=tmp_path / "java", major=17, origin="test")

    return make


@pytest.fixture
def environment(tmp_path):
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_coordinates_are_those_of_the_installed_spark():
    assert connector_coordinates(SPARK) == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"


def test_cache_is_in_the_home_folder_unless_moved():
    assert cache_folder({}) == Path.home() / ".cache" / "kafkalite" / "spark"
    assert cache_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/kafkalite/spark")


def test_jars_are_fetched_once(java, environment, tmp_path):
    runtime = java(f'touch "$jars/{CONNECTOR}" "$jars/a.jar"')
    expected = [
        cache_folder(environment) / f"{CONNECTOR[:-4]}" / name for name in (CONNECTOR, "a.jar")
    ]
    assert connector_jars(SPARK, runtime, environment) == sorted(expected)
    assert connector_jars(SPARK, runtime, environment) == sorted(expected)
    assert (tmp_path / "calls").read_text() == "call\n"
    assert [entry.name for entry in cache_folder(environment).iterdir()] == [CONNECTOR[:-4]]


def test_run_that_was_slower_takes_what_the_other_fetched(java, environment):
    folder = cache_folder(environment) / CONNECTOR[:-4]
    runtime = java(f'touch "$jars/{CONNECTOR}"; mkdir "{folder}"; touch "{folder}/first.jar"')
    assert connector_jars(SPARK, runtime, environment) == [folder / "first.jar"]


def test_version_that_is_not_published_names_a_remedy(java, environment):
    runtime = java("echo ':: org.apache.spark#spark-sql-kafka-0-10_2.13;4.0.0: not found'")
    with pytest.raises(
        PipelineError, match=r"does not have org.apache.spark:spark-sql-kafka"
    ) as no:
        connector_jars(SPARK, runtime, environment)
    assert "pip install 'pyspark==" in str(no.value)
    assert not list(cache_folder(environment).iterdir())


@pytest.mark.parametrize(
    "line", ["echo 'Server access error at url'; echo ':: a#b;1: not found'", "false"]
)
def test_repository_that_does_not_answer_names_another_remedy(java, environment, line):
    with pytest.raises(
        PipelineError, match=r"could not be fetched from .*KAFKALITE_MAVEN_REPOSITORY"
    ):
        connector_jars(SPARK, java(line), environment)


def test_other_repository_is_asked_if_named(java, environment):
    runtime = java('cat "${2%/*}/ivysettings.xml" >&2; true')
    environment["KAFKALITE_MAVEN_REPOSITORY"] = "file:///mirror"
    with pytest.raises(PipelineError, match="file:///mirror"):
        connector_jars(SPARK, runtime, environment)


def test_settings_and_wishes_are_xml_whatever_the_names_hold():
    settings = ET.fromstring(ivy_settings('http://m/?a=1&b="2"', cache=Path("/a&b")))
    assert settings.find(".//ibiblio").get("root") == 'http://m/?a=1&b="2"/'
    assert settings.find("caches").get("defaultCacheDir") == "/a&b"
    wanted = ET.fromstring(ivy_module(SPARK))
    assert wanted.find(".//dependency").get("rev") == "4.0.0"
    assert "org.apache.hadoop" in {found.get("org") for found in wanted.iter("exclude")}
