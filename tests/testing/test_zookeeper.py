"""A ZooKeeper of the tests' own: sessions, restarts, and what is said when something is missing."""

import threading

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import NoNodeError
from kazoo.retry import KazooRetry

from kafkalite.testing import zookeeper as module
from kafkalite.testing.zookeeper import ZooKeeper, ZooKeeperError, session_password

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def zookeeper():
    with ZooKeeper() as server:
        yield server


@pytest.fixture
def client(zookeeper):
    client = KazooClient(
        zookeeper.connect,
        timeout=1,
        connection_retry=KazooRetry(max_tries=-1, delay=0.02, backoff=1),
    )
    client.start(timeout=10)
    yield client
    client.stop()
    client.close()


class Lost:
    """Notes when a client learns that its session is over."""

    def __init__(self, client):
        self.event = threading.Event()
        client.add_listener(self)

    def __call__(self, state):
        if state == KazooState.LOST:
            self.event.set()


def test_short_sessions_are_granted(client):
    assert client._session_timeout == 1000


def test_password_is_the_one_that_the_server_gave(client):
    session, password = client.client_id
    assert session_password(session) == password


def test_expired_session_takes_its_nodes_with_it_and_its_client_is_told(zookeeper, client):
    lost = Lost(client)
    client.create("/brokers/ids/1", b"", ephemeral=True, makepath=True)
    session = client.client_id[0]
    assert zookeeper.sessions()[session] == ["/brokers/ids/1"]
    assert zookeeper.expire_sessions("/brokers/ids/2") == []
    assert zookeeper.expire_sessions("/brokers/ids/1") == [session]
    assert lost.event.wait(10)
    assert session not in zookeeper.sessions()
    with pytest.raises(NoNodeError):
        client.retry(client.get, "/brokers/ids/1")


def test_data_and_sessions_outlive_a_restart_and_a_kill(zookeeper, client):
    client.create("/kept", b"value")
    lost = Lost(client)
    address = zookeeper.connect
    zookeeper.restart()
    assert client.retry(client.get, "/kept")[0] == b"value"
    zookeeper.kill()
    assert not zookeeper.is_running
    zookeeper.start()
    assert client.retry(client.get, "/kept")[0] == b"value"
    assert zookeeper.connect == address
    assert not lost.event.is_set()
    client.delete("/kept")


def test_paused_server_answers_nothing_until_it_is_resumed(zookeeper, monkeypatch):
    monkeypatch.setattr(module, "COMMAND_TIMEOUT_S", 0.1)
    zookeeper.pause()
    assert zookeeper.is_running
    assert not zookeeper.is_serving()
    zookeeper.resume()
    monkeypatch.undo()
    assert zookeeper.is_serving()


def test_one_that_runs_is_not_started_again(zookeeper):
    with pytest.raises(RuntimeError, match="runs already"):
        zookeeper.start()


def test_port_of_another_is_left_to_it_and_the_log_is_told(zookeeper, tmp_path):
    with pytest.raises(ZooKeeperError, match="Address already in use"):
        ZooKeeper(tmp_path, port=zookeeper.port).start()
    assert zookeeper.is_serving()


def test_missing_java_is_told_with_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "java_homes", lambda: iter([(tmp_path, "PATH")]))
    with pytest.raises(ZooKeeperError, match=r"needs Java.*\[cluster\]"):
        ZooKeeper(tmp_path).start()


def test_missing_pyspark_is_told_with_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ZooKeeperError, match=r"PySpark.*\[cluster\]"):
        ZooKeeper(tmp_path).start()
