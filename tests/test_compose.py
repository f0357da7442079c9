"""docker-compose.yml: it is sound, and its brokers serve clients inside and outside."""

import re

import pytest

from kafkalite.cli.main import COMMANDS
from kafkalite.client import admin
from kafkalite.client.cluster import Client
from kafkalite.client.connection import Connection
from kafkalite.config import settings_of_environment
from kafkalite.settings.registry import BROKER as BROKER_SETTINGS
from kafkalite.testing.processes import wait_until_true
from kafkalite.testing.zookeeper import ZooKeeper
from kafkalite.wire.errors import KafkaError
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest
from tests.compose import (
    COMPOSE_FILE,
    Container,
    Network,
    compose,
    dockerfile,
    last_of,
)

FILE = compose()
SERVICES = FILE["services"]
BROKERS = {name: one for name, one in SERVICES.items() if name.startswith("kafka-")}
ALLOWED = {
    *("build", "image", "command", "depends_on", "healthcheck", "restart", "stop_grace_period"),
    *("ports", "environment", "volumes", "profiles"),
}


def test_three_brokers_of_ids_of_their_own_and_one_zookeeper():
    assert list(BROKERS) == ["kafka-1", "kafka-2", "kafka-3"]
    ids = [broker["environment"]["KAFKA_NODE_ID"] for broker in BROKERS.values()]
    assert ids == ["1", "2", "3"]
    assert SERVICES["zookeeper"]["image"].startswith("zookeeper:3.9")


@pytest.mark.parametrize("name", SERVICES)
def test_service_says_only_what_compose_knows_and_names_only_what_exists(name):
    service = SERVICES[name]
    assert not service.keys() - ALLOWED
    for other, condition in service.get("depends_on", {}).items():
        assert condition == {"condition": "service_healthy"}
        assert "healthcheck" in SERVICES[other]
    for volume in service.get("volumes", []):
        assert volume.split(":")[0] in FILE["volumes"]
    for variable, value in service.get("environment", {}).items():
        assert isinstance(value, str), f"{variable} is no text: YAML would change it"


def test_only_spark_is_optional():
    assert [name for name, one in SERVICES.items() if "profiles" in one] == ["spark"]


def test_published_ports_are_of_one_broker_each():
    published = [port for one in SERVICES.values() for port in one.get("ports", [])]
    assert published == ["9092:19092", "9093:19092", "9094:19092"]


@pytest.mark.parametrize("name", BROKERS)
def test_variables_are_settings_with_an_effect(name):
    for setting in settings_of_environment(BROKERS[name]["environment"]):
        assert setting in BROKER_SETTINGS, setting
        assert not BROKER_SETTINGS[setting].inert, setting


def test_images_are_stages_of_the_dockerfile_and_run_commands_that_exist():
    for name in [*BROKERS, "spark"]:
        build = SERVICES[name]["build"]
        assert build["context"] == "."
        image = dockerfile(build["target"])
        words = [*last_of(image, "ENTRYPOINT"), *SERVICES[name]["command"]]
        assert words[0] in ("kafkalite", "docker-entrypoint")
        assert words[1] in COMMANDS
        assert last_of(image, "USER") == "kafkalite"
    for line in COMPOSE_FILE.read_text().splitlines():
        port = re.search(r"bootstrap.servers=(.*)", line)
        assert port is None or port[1].count(",") == 2


def test_image_by_itself_is_a_broker_whose_health_is_looked_at():
    image = dockerfile("broker")
    assert last_of(image, "ENTRYPOINT") == ["docker-entrypoint"]
    assert last_of(image, "CMD") == ["serve"]
    assert '"kafkalite", "health"' in last_of(image, "HEALTHCHECK")


@pytest.fixture(scope="module")
def containers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compose")
    with ZooKeeper(folder / "zookeeper") as zookeeper:
        network = Network(SERVICES, {"zookeeper:2181": zookeeper.connect})
        made = [Container(name, BROKERS[name], network, folder / name) for name in BROKERS]
        try:
            for container in made:
                container.start()
            for container in made:
                ready = wait_until_true(lambda c=container: c.is_healthy(), 60)
                assert ready, f"{container.name} is not healthy:\n{container.child.tail()}"
            yield made
        finally:
            for container in made:
                if container.child is not None:
                    container.child.kill()


def bootstrap(container, listener):
    if listener == "EXTERNAL":
        (mapping,) = container.service["ports"]
        return f"127.0.0.1:{container.network.published(int(mapping.split(':')[0]))}"
    return f"127.0.0.1:{container.network.port(container.name, 9092)}"


def knows(client, topic):
    try:
        return bool(client.topic(topic).partitions)
    except KafkaError:
        return False


@pytest.mark.slow
def test_spark_service_runs_its_command(tmp_path):
    """As far as without Docker: the image's entry point and the service's own words."""
    service = SERVICES["spark"]
    container = Container("spark", service, Network(SERVICES, {}), tmp_path / "spark")
    container.start()
    assert container.child.wait(30) == 0
    said = container.child.output()
    assert said.startswith("Usage: kafkalite pipeline ")
    for job in ("archive", "replay", "audit"):
        assert f"\n  {job} " in said


@pytest.mark.slow
class TestServicesAsProcesses:
    @pytest.mark.parametrize("listener", ["INTERNAL", "EXTERNAL"])
    @pytest.mark.parametrize("number", [0, 1, 2])
    def test_client_is_told_addresses_of_its_listener_and_reaches_every_broker(
        self, containers, listener, number
    ):
        ours = {bootstrap(container, listener) for container in containers}
        with Client(bootstrap(containers[number], listener), timeout_ms=10_000) as client:
            told = client.fetch_metadata([]).brokers
        assert {broker.node_id for broker in told} == {1, 2, 3}
        assert {f"{broker.host}:{broker.port}" for broker in told} == ours
        for broker in told:
            connection = Connection(
                broker.host, broker.port, client_id="compose", timeout_ms=10_000
            )
            assert connection.request(METADATA, MetadataRequest(topics=[])).brokers
            connection.close()

    def test_topic_made_inside_is_replicated_and_seen_outside(self, containers):
        with Client(bootstrap(containers[0], "INTERNAL"), timeout_ms=20_000) as client:
            admin.create_topic(client, "orders", partitions=3)
        with Client(bootstrap(containers[2], "EXTERNAL"), timeout_ms=20_000) as client:
            # Another broker hears of it a moment later, as in Apache Kafka.
            assert wait_until_true(lambda: knows(client, "orders"), 10)
            for partition in client.topic("orders").partitions:
                assert sorted(partition.replica_nodes) == [1, 2, 3]

    def test_service_stops_in_its_grace_period_by_sigterm(self, containers):
        assert [container.child.stop(30) for container in containers] == [0, 0, 0]
