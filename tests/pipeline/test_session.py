"""Settings of a session; that Spark starts with them is for spark_tests."""

from kafkalite.pipeline.session import session_settings


def test_local_sessions_get_few_shuffle_partitions_and_stay_on_loopback():
    local = session_settings("local[2]", {}, jars=[])
    assert int(local["spark.sql.shuffle.partitions"]) < 200
    assert local["spark.driver.host"] == "127.0.0.1"
    cluster = session_settings("spark://host:7077", {}, jars=[])
    assert "spark.sql.shuffle.partitions" not in cluster
    assert "spark.driver.host" not in cluster


def test_settings_of_the_caller_win():
    values = session_settings("local", {"spark.sql.shuffle.partitions": "7"}, jars=[])
    assert values["spark.sql.shuffle.partitions"] == "7"


def test_lists_are_joined_not_replaced():
    given = {"spark.jars": "/mine.jar", "spark.driver.extraJavaOptions": "-Dx=1"}
    values = session_settings("local", given, jars=["/a.jar", "/b.jar"])
    assert values["spark.jars"] == "/mine.jar,/a.jar,/b.jar"
    assert values["spark.driver.extraJavaOptions"].endswith("log4j2.properties -Dx=1")
