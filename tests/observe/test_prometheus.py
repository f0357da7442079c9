"""A real Prometheus, Debian's, scrapes a broker and computes with what it got."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import confluent_kafka
import pytest

from compat_tests.cache import cached_dir
from compat_tests.toolchains import MissingToolchain, run_build
from kafkalite import Broker

pytestmark = [pytest.mark.slow, pytest.mark.compat]

CONFIG = """\
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- job_name: kafkalite
  static_configs: [{targets: ["TARGET"]}]
"""

ANSWERS = {
    # Expressions of Strimzi's and of the exporter's dashboards, and what they are to give.
    'sum(kafka_server_brokertopicmetrics_messagesin_total{topic="orders"})': 30,
    "sum(kafka_controller_kafkacontroller_activecontrollercount)": 1,
    "count(kafka_server_replicamanager_leadercount)": 1,
    "sum(kafka_server_replicamanager_underreplicatedpartitions)": 0,
    "sum(kafka_controller_controllerstats_uncleanleaderelections_total)": 0,
    'sum(kafka_topic_partition_current_offset{topic="orders"})': 30,
    'sum(kafka_network_requestmetrics_totaltimems_count{request="Produce"}) > bool 0': 1,
    'up{job="kafkalite"}': 1,
}


def unpack(folder):
    """Download Debian's package and unpack it; nothing is installed."""
    if shutil.which("apt-get") is None:
        raise MissingToolchain("Prometheus comes from Debian")
    try:
        run_build(["apt-get", "download", "prometheus"], cwd=folder)
        (package,) = folder.glob("prometheus_*.deb")
        run_build(["dpkg-deb", "-x", str(package), str(folder)])
        package.unlink()
    except RuntimeError as error:
        raise MissingToolchain(str(error)) from error


@pytest.fixture(scope="module")
def program():
    found = shutil.which("prometheus")
    return found or cached_dir("prometheus", unpack) / "usr" / "bin" / "prometheus"


@contextlib.contextmanager
def prometheus(program, folder, target):
    """Run it; gives a function that evaluates an expression now."""
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.replace("TARGET", target))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        str(program),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)

    def evaluate(expression):
        query = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"http://{address}/api/v1/query?{query}") as answer:
                result = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read()) from error
        except OSError:  # it has not begun to listen
            assert process.poll() is None, (folder / "log").read_text()[-2_000:]
            return None
        return float(result[0]["value"][1]) if result else None

    try:
        yield evaluate
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def test_scrapes_a_broker_and_answers_what_dashboards_ask(program, tmp_path):
    with Broker(http=True) as broker:
        broker.create_topic("orders", partitions=2)
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(30):
            producer.produce("orders", b"%d" % number)
        producer.flush()
        target = broker.http_url.removeprefix("http://")
        with prometheus(program, tmp_path, target) as evaluate:
            deadline = time.monotonic() + 60
            wrong = ANSWERS
            while wrong and time.monotonic() < deadline:
                time.sleep(0.2)
                wrong = {e: found for e, want in ANSWERS.items() if (found := evaluate(e)) != want}
            assert wrong == {}
