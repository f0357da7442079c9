"""The image's files in the place of Apache's and Confluent's, by the protocol of test kits.

Each protocol is what the named version of Testcontainers does to a container, step by step:
environment, entry point, command, the script that is copied into it, the words that are waited for.
"""

import os
import re
import socket
import subprocess

import pytest

from kafkalite.cli.main import COMMANDS
from kafkalite.client import admin
from kafkalite.client.cluster import Client
from kafkalite.testing.processes import wait_until_true
from tests.compose import dockerfile, last_of
from tests.image import Image, scripts

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
RUNNING = r".*Transitioning from RECOVERY to RUNNING.*"
STARTED = r".*\[KafkaServer id=\d+\] started.*"
COMMON = {
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "9223372036854775807",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
}
KRAFT = {
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
    "KAFKA_NODE_ID": "1",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
    "CONTROLLER:PLAINTEXT",
}
ZOOKEEPER = {
    "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181",
    "KAFKA_BROKER_ID": "1",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
}
ZOOKEEPER_LINES = (
    "echo 'clientPort=2181' > {folder}zookeeper.properties\n"
    "echo 'dataDir=/var/lib/zookeeper/data' >> {folder}zookeeper.properties\n"
    "echo 'dataLogDir=/var/lib/zookeeper/log' >> {folder}zookeeper.properties\n"
    "zookeeper-server-start {folder}zookeeper.properties &\n"
)
FORMAT = (
    "sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure\n"
    "echo 'kafka-storage format --ignore-formatted -t {id} -c /etc/kafka/kafka.properties'"
    " >> /etc/confluent/docker/configure\n"
)


@pytest.fixture
def image(tmp_path):
    return Image(tmp_path / "root")


def waiting_for(script, interpreter=""):
    return f"while [ ! -f {script} ]; do sleep 0.1; done; {interpreter}{script}"


class Protocol:
    """What one module of Testcontainers does."""

    script = "/tmp/testcontainers_start.sh"
    client_port, broker_port = 9092, 9093
    environment = COMMON | KRAFT
    awaited = RUNNING
    entrypoint = None
    cluster_id = CLUSTER_ID

    def command(self):
        return ["sh", "-c", waiting_for(self.script)]

    def listeners(self):
        names = f"PLAINTEXT://0.0.0.0:{self.client_port},BROKER://0.0.0.0:{self.broker_port}"
        return names + (",CONTROLLER://0.0.0.0:9094" if self.awaited == RUNNING else "")

    def advertised(self, image):
        host = f"127.0.0.1:{image.port(self.client_port)}"
        return f"PLAINTEXT://{host},BROKER://{socket.gethostname()}:{image.port(self.broker_port)}"

    def text(self, image):
        raise NotImplementedError


class JavaApache(Protocol):
    """testcontainers-java 2: org.testcontainers.kafka.KafkaContainer."""

    runs = "/etc/kafka/docker/run"

    def text(self, image):
        return (
            "#!/bin/bash\n"
            f"export KAFKA_ADVERTISED_LISTENERS={self.advertised(image)}\n"
            f"{self.runs} \n"
        )


class JavaConfluent(JavaApache):
    """testcontainers-java 2: org.testcontainers.kafka.ConfluentKafkaContainer, withListener()."""

    runs = "/etc/confluent/docker/run"
    names = KRAFT["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"] + ",TC-0:PLAINTEXT"
    environment = COMMON | KRAFT | {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": names}

    def listeners(self):
        return super().listeners() + ",TC-0://kafka:19092"

    def advertised(self, image):
        return f"{super().advertised(image)},TC-0://kafka:{image.port(19092)}"


class JavaOldZooKeeper(JavaApache):
    """testcontainers-java: the deprecated org.testcontainers.containers.KafkaContainer."""

    runs = (
        "echo '' > /etc/confluent/docker/ensure \n"
        + ZOOKEEPER_LINES.format(folder="/tmp/")
        + "/etc/confluent/docker/run"
    )
    client_port, broker_port = 9093, 9092
    environment = COMMON | ZOOKEEPER
    awaited = STARTED
    entrypoint = ("sh",)
    cluster_id = None

    def command(self):
        return ["-c", waiting_for(self.script)]


class JavaOldKraft(JavaOldZooKeeper):
    """The same after withKraft()."""

    runs = (
        "echo '' > /etc/confluent/docker/ensure \n"
        + FORMAT.format(id=f'"{CLUSTER_ID}"')
        + "/etc/confluent/docker/run"
    )
    environment = COMMON | KRAFT
    awaited = RUNNING
    cluster_id = CLUSTER_ID


class Node(JavaOldZooKeeper):
    """@testcontainers/kafka: waits for its words, then for all ports, also ZooKeeper's."""

    runs = (
        "echo '' > /etc/confluent/docker/ensure \n"
        + ZOOKEEPER_LINES.format(folder="")
        + "/etc/confluent/docker/run"
    )

    def command(self):
        return ["-c", f"echo 'Waiting for script...'; {waiting_for(self.script)}"]


class NodeKraft(Node):
    """The same with a tag from 8.0.0 on, or after withKraft()."""

    runs = "/etc/confluent/docker/run"
    environment = COMMON | KRAFT | {"KAFKA_BROKER_ID": "1"}
    awaited = RUNNING
    cluster_id = CLUSTER_ID


class DotNet(JavaOldZooKeeper):
    """Testcontainers.Kafka: KafkaBuilder."""

    script = "/testcontainers.sh"
    client_port, broker_port = 9092, 9093
    entrypoint = ("/bin/sh", "-c")
    runs = (
        ZOOKEEPER_LINES.format(folder="")
        + "echo '' > /etc/confluent/docker/ensure\n/etc/confluent/docker/run"
    )

    def command(self):
        return [waiting_for(self.script)]


class Go(Protocol):
    """testcontainers-go/modules/kafka, made for confluentinc/confluent-local."""

    script = "/usr/sbin/testcontainers_start.sh"
    client_port, broker_port = 9093, 9092
    entrypoint = ("sh",)
    environment = COMMON | KRAFT | {"KAFKA_BROKER_ID": "1"}

    def command(self):
        return ["-c", waiting_for(self.script, "bash ")]

    def text(self, image):
        formatted = FORMAT.format(id='"$(kafka-storage random-uuid)"')
        return (
            "#!/bin/bash\n"
            "source /etc/confluent/docker/bash-config\n"
            f"export KAFKA_ADVERTISED_LISTENERS={self.advertised(image)}\n"
            "echo Starting Kafka KRaft mode\n"
            f"{formatted}"
            "echo '' > /etc/confluent/docker/ensure\n"
            "/etc/confluent/docker/configure\n"
            "/etc/confluent/docker/launch"
        )


class Rust(JavaApache):
    """testcontainers-modules of Rust: kafka::apache."""

    script = "/opt/kafka/testcontainers_start.sh"
    entrypoint = ("bash",)
    environment = {name: value for name, value in KRAFT.items() if name != "KAFKA_NODE_ID"} | {
        "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_BROKER_ID": "1",
    }
    awaited = ".*Kafka Server started.*"

    def command(self):
        wait = f"while [ ! -f {self.script}  ]; do sleep 0.1; done"
        return ["-c", f"{wait}; chmod 755 {self.script} && {self.script}"]

    def listeners(self):
        return super().listeners() + ",CONTROLLER://0.0.0.0:9094"


class PythonZooKeeper(Protocol):
    """testcontainers-python 4: testcontainers.community.kafka.KafkaContainer."""

    script = "/tc-start.sh"
    client_port, broker_port = 9093, 9092
    environment = COMMON | ZOOKEEPER
    awaited = STARTED
    cluster_id = None
    boot = ZOOKEEPER_LINES.format(folder="") + "export KAFKA_ZOOKEEPER_CONNECT='localhost:2181'\n"

    def command(self):
        return ["sh", "-c", waiting_for(self.script, "sh ")]

    def text(self, image):
        return (
            "#!/bin/bash\n"
            f"{self.boot}"
            f"export KAFKA_ADVERTISED_LISTENERS={self.advertised(image)}\n"
            ". /etc/confluent/docker/bash-config\n"
            "/etc/confluent/docker/configure\n"
            "/etc/confluent/docker/launch"
        )


class PythonKraft(PythonZooKeeper):
    """The same after with_kraft()."""

    environment = COMMON | KRAFT
    awaited = r".*Kafka Server started.*"
    cluster_id = CLUSTER_ID
    boot = FORMAT.format(id=CLUSTER_ID)

    def listeners(self):
        return super().listeners() + ",CONTROLLER://0.0.0.0:9094"


PROTOCOLS = [
    *(JavaApache, JavaConfluent, JavaOldZooKeeper, JavaOldKraft),
    *(Node, NodeKraft, DotNet, Go, Rust, PythonZooKeeper, PythonKraft),
]


def has_said(child, pattern):
    return any(re.fullmatch(pattern, line) for line in child.output().splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_test_kit_starts_the_image_and_its_clients_are_served(image, protocol):
    kit = protocol()
    environment = kit.environment | {"KAFKA_LISTENERS": image.listeners(kit.listeners())}
    if kit.cluster_id is not None:
        environment["CLUSTER_ID"] = kit.cluster_id
    container = image.run(kit.command(), entrypoint=kit.entrypoint, environment=environment)
    try:
        text = kit.text(image).replace("clientPort=2181", f"clientPort={image.port(2181)}")
        image.write(kit.script, text)
        assert wait_until_true(lambda: has_said(container, kit.awaited), 30), container.tail()
        address = f"127.0.0.1:{image.port(kit.client_port)}"
        with Client(address, timeout_ms=10_000) as client:
            answer = client.fetch_metadata([])
            assert [f"{each.host}:{each.port}" for each in answer.brokers] == [address]
            assert kit.cluster_id in (None, answer.cluster_id)
            admin.create_topic(client, "orders", partitions=3)
        if (
            issubclass(protocol, Node) and kit.awaited == STARTED
        ):  # Wait.forListeningPorts(): of all that it exposed
            for port in (kit.client_port, 2181):
                socket.create_connection(("127.0.0.1", image.port(port)), timeout=10).close()
        assert (image.path("/var/lib/kafkalite/data") / "meta.properties").exists()
    finally:
        container.kill()


def served(image, environment, port=9092):
    """Start the image with variables of a compose file; return the container and its address."""
    container = image.run(environment=environment)
    ready = wait_until_true(lambda: has_said(container, RUNNING) or not container.is_running, 30)
    assert ready, container.tail()
    assert container.is_running, container.tail()
    return container, f"127.0.0.1:{image.port(port)}"


def in_container(image, *words):
    """Run a command as `docker exec` does; return its exit code and what it said."""
    path = os.pathsep.join([str(image.path("/usr/local/bin")), os.environ["PATH"]])
    done = subprocess.run(
        [image.mapped(word) for word in words],
        cwd=image.workdir,
        env={"PATH": path, "PYTHONPATH": str(image.root.parent)} | image_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def image_environment():
    return {"PYTHONPATH": os.getcwd(), "HOME": "/nowhere"}


@pytest.mark.slow
def test_compose_file_of_confluents_image_works_also_its_health_checks_and_topics(image):
    """Only what is advertised is said: Confluent's image listens on the same ports."""
    container, address = served(
        image,
        {
            "KAFKA_NODE_ID": "1",
            "KAFKA_PROCESS_ROLES": "broker,controller",
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@broker:29093",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "PLAINTEXT_HOST:PLAINTEXT",
            "KAFKA_ADVERTISED_LISTENERS": image.listeners(
                "PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092"
            ),
            "KAFKA_JMX_PORT": "9101",
            "KAFKA_LOG_DIRS": "/var/lib/kafka/kraft-combined-logs",
            "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
        },
    )
    try:
        for port in (9092, 29092):
            with Client(f"127.0.0.1:{image.port(port)}", timeout_ms=10_000) as client:
                assert client.fetch_metadata([]).cluster_id == "MkU3OEVBNTcwNTJENDM2Qk"
        assert image.path("/var/lib/kafka/kraft-combined-logs/meta.properties").exists()
        at = ["--bootstrap-server", address]
        create = ["--create", "--topic", "orders", "--partitions", "3"]
        create += ["--replication-factor", "1", "--config", "retention.ms=60000"]
        for program in ("kafka-topics", "/opt/kafka/bin/kafka-topics.sh"):
            code, said = in_container(image, program, *at, *create, "--if-not-exists")
            assert (code, "orders" in said) == (0, True), said
        assert in_container(image, "kafka-topics", *at, "--list") == (0, "orders\n")
        code, said = in_container(image, "kafka-topics", *at, "--describe", "--topic", "orders")
        assert (code, "3 partitions" in said, "retention.ms=60000" in said) == (0, True, True)
        assert in_container(image, "kafka-topics", *at, "--delete", "--topic", "orders")[0] == 0
        assert in_container(image, "kafka-topics", *at, "--list") == (0, "")
        assert in_container(image, "kafka-broker-api-versions", *at)[0] == 0
        assert in_container(image, "cub", "kafka-ready", "-b", address, "1", "20")[0] == 0
    finally:
        assert container.stop(30) == 0


@pytest.mark.slow
def test_compose_file_of_apaches_image_works_with_a_mounted_properties_file(image):
    config = image.path("/mnt/shared/config")
    config.mkdir(parents=True)
    (config / "server.properties").write_text("num.partitions=7\nprocess.roles=broker,controller\n")
    container, address = served(
        image,
        {"KAFKA_LISTENERS": image.listeners("PLAINTEXT://:9092,CONTROLLER://:9093")}
        | {"KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER"},
    )
    try:
        code, said = in_container(
            image, "kafka-topics", "--bootstrap-server", address, "--create", "--topic", "orders"
        )
        assert code == 0, said
        with Client(address, timeout_ms=10_000) as client:
            assert len(client.topic("orders").partitions) == 7
    finally:
        container.kill()


def published(image):
    """Let the port that the image's own scripts name be a free one."""
    run = image.path("/etc/kafka/docker/run")
    run.write_text(run.read_text().replace("0.0.0.0:9092", f"127.0.0.1:{image.port(9092)}"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "told", "data"),
    [
        ({}, "localhost:9092", "/var/lib/kafkalite/data"),
        (
            {
                "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092",
                "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka.example:19092",
                "KAFKA_LOG_DIRS": "/var/lib/kafkalite/other",
            },
            "kafka.example:19092",
            "/var/lib/kafkalite/other",
        ),
    ],
)
def test_image_by_itself_tells_localhost_and_variables_of_docker_run_win(
    image, variables, told, data
):
    published(image)
    listeners = variables.get("KAFKA_LISTENERS")
    if listeners is not None:
        variables = variables | {"KAFKA_LISTENERS": image.listeners(listeners)}
    container, address = served(image, variables)
    try:
        with Client(address, timeout_ms=10_000) as client:
            (broker,) = client.fetch_metadata([]).brokers
        assert f"{broker.host}:{broker.port}" == told
        assert image.path(f"{data}/meta.properties").exists()
        assert data.startswith(last_of(dockerfile("broker"), "VOLUME") + "/")
    finally:
        assert container.stop(30) == 0


@pytest.mark.slow
def test_volume_where_confluents_image_has_its_data_is_used(image):
    published(image)
    image.write("/usr/local/bin/mountpoint", '#!/bin/sh\n[ "$*" = "-q /var/lib/kafka/data" ]\n')
    container, _ = served(image, {})
    try:
        assert image.path("/var/lib/kafka/data/meta.properties").exists()
    finally:
        assert container.stop(30) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"KAFKA_PROCESS_ROLES": "controller"}, "leave this container out"),
        ({"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@a:9093,2@b:9093,3@c:9093"}, "KAFKA_ZOOKEEPER_CONNE"),
    ],
)
def test_quorum_of_kraft_is_refused_in_words(image, environment, words):
    """Its brokers would start, each for itself, and divide the records among them."""
    container = image.run(environment=environment)
    assert container.wait(30) == 1
    assert words in container.output()


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (["sh", "-c", "echo $0 $1", "one", "two words"], "one two words\n"),
        (["/bin/echo", "kafka"], "kafka\n"),
        (["kafka-storage"], "kafka-storage: only random-uuid and format are known here\n"),
        *[([name, "--some"], f"kafkalite {name} --some\n") for name in COMMANDS if name != "serve"],
        (["serve", "--some"], "kafkalite serve --kafka-log-lines --some\n"),
        (["--some"], "kafkalite serve --kafka-log-lines --some\n"),
        (["--version"], "kafkalite --version\n"),
        ([], "kafkalite serve --kafka-log-lines\n"),
    ],
)
def test_entry_point_runs_commands_of_kafkalite_and_other_programs(image, words, output):
    assert last_of(dockerfile("broker"), "ENTRYPOINT") == ["docker-entrypoint"]
    image.write("/usr/local/bin/kafkalite", '#!/bin/sh\necho kafkalite "$@"\n')
    container = image.run(words)
    container.wait(10)
    assert container.output() == output


def test_scripts_can_be_run_and_are_read_by_any_shell():
    for file in scripts():
        text = file.read_text()
        if file.name == "bash-config":
            continue
        assert os.access(file, os.X_OK), file
        if text.startswith("#!/bin/sh"):
            subprocess.run(["sh", "-n", str(file)], check=True)
        else:
            compile(text, str(file), "exec")


def test_files_of_test_kits_can_be_written_by_the_user_of_the_image():
    (run,) = [rest for name, rest in dockerfile("broker") if name == "RUN"]
    assert last_of(dockerfile("broker"), "USER") == "kafkalite"
    for folder in ("/etc/confluent/docker", "/opt/kafka"):
        assert folder in run.partition("chown -R kafkalite ")[2]
