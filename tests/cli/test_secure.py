"""`serve --secure`, and what it tells clients."""

import os
import re
import signal
import socket
import subprocess
import sys

import confluent_kafka
import pytest

from kafkalite.cli.main import run
from kafkalite.client.cluster import Client
from kafkalite.client.errors import ClientError
from kafkalite.client.login import Credentials
from kafkalite.settings.properties import parse_properties
from kafkalite.wire.errors import KafkaError

READY = re.compile(
    r"kafkalite ready: bootstrap=(\S+) secure=(\S+) profile=(\S+)(?: http=\S+)? data=(\S+)\n"
)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("secure") / "data"


def serve(data_dir, *options):
    command = [sys.executable, "-m", "kafkalite", "serve", "--listen", "127.0.0.1:0", "--secure"]
    process = subprocess.Popen(
        [*command, "--data-dir", data_dir, *options], stdout=subprocess.PIPE, text=True
    )
    ready = READY.fullmatch(process.stdout.readline())
    assert ready is not None
    return process, ready


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.stdout.close()
    assert process.wait(30) == 0


@pytest.fixture(scope="module")
def secure(data_dir):
    process, ready = serve(data_dir)
    yield ready
    stop(process)


def config(form, data_dir, capsys, *options):
    assert run(["client-config", form, "--data-dir", str(data_dir), *options]) == 0
    return capsys.readouterr().out


@pytest.mark.slow
class TestRunning:
    def test_listener_is_named_and_has_a_port_of_its_own(self, secure, data_dir):
        assert secure[1] != secure[2]
        assert secure[4] == str(data_dir)
        assert oct((data_dir / "secure" / "ca.key").stat().st_mode)[-3:] == "600"
        assert oct((data_dir / "secure" / "users.json").stat().st_mode)[-3:] == "600"

    def test_librdkafka_takes_what_is_printed(self, secure, data_dir, capsys):
        lines = config("librdkafka", data_dir, capsys).splitlines()
        settings = {}
        for line in lines:
            name, equals, value = line.partition("=")
            assert line.startswith("#") or (name and equals and value)
            if not line.startswith("#"):
                settings[name] = value
        assert settings["bootstrap.servers"] == secure[2]
        producer = confluent_kafka.Producer(settings)
        producer.produce("orders", b"hello")
        assert not producer.flush(20)

    @pytest.mark.parametrize("form", ["java", "librdkafka"])
    def test_own_client_takes_what_is_printed(self, secure, data_dir, tmp_path, capsys, form):
        file = tmp_path / "client.properties"
        file.write_text(config(form, data_dir, capsys))
        assert run(["topics", "list", "-b", secure[2], "--command-config", str(file)]) == 0

    def test_python_settings_are_python(self, secure, data_dir, capsys):
        names = {}
        exec(config("python", data_dir, capsys), names)
        assert names["conf"]["sasl_mechanism"] == "SCRAM-SHA-512"

    @pytest.mark.parametrize("form", ["node", "go", "spring"])
    def test_other_forms_name_user_and_authority(self, secure, data_dir, capsys, form):
        text = config(form, data_dir, capsys)
        assert secure[2] in text
        assert str(data_dir / "secure" / "ca.pem") in text

    def test_users_come_and_go(self, secure, data_dir, capsys):
        where = ["-b", secure[1]]
        assert run(["users", "add", "zoe", "--password", "first", *where]) == 0
        assert run(["users", "passwd", "zoe", "--password", "second", *where]) == 0
        assert run(["users", "list", *where]) == 0
        out = capsys.readouterr().out
        assert "dev" in out
        assert "zoe" in out
        given = parse_properties(config("librdkafka", data_dir, capsys))
        zoe = {**given, "sasl.username": "zoe", "sasl.password": "second"}
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            with client(secure, {**zoe, "sasl.mechanism": mechanism}) as one:
                one.any_broker()
        with pytest.raises(KafkaError, match="invalid credentials"):
            client(secure, {**zoe, "sasl.password": "first"}).any_broker()
        assert run(["users", "remove", "zoe", *where]) == 0
        with pytest.raises(KafkaError, match="invalid credentials"):
            client(secure, zoe).any_broker()
        assert run(["users", "remove", "zoe", *where]) == 1

    def test_broker_that_is_not_trusted_is_no_broker(self, secure, data_dir, capsys):
        given = parse_properties(config("librdkafka", data_dir, capsys))
        del given["ssl.ca.location"]
        with pytest.raises(ClientError, match="self-signed certificate"):
            client(secure, given).any_broker()


def client(secure, settings):
    return Client(secure[2], credentials=Credentials(settings), timeout_ms=20_000)


@pytest.mark.slow
def test_certificates_and_password_survive_a_restart(tmp_path, capsys):
    data = tmp_path / "data"
    shown = []
    for _ in range(2):
        process, ready = serve(data)
        lines = config("librdkafka", data, capsys).splitlines()
        shown.append([line for line in lines if not line.startswith("bootstrap")])
        with client(ready, parse_properties(config("librdkafka", data, capsys))) as one:
            one.any_broker()
        stop(process)
    assert shown[0] == shown[1]


def test_settings_of_a_broker_that_never_was_cannot_be_shown(tmp_path, capsys):
    assert run(["client-config", "java", "--data-dir", str(tmp_path)]) == 1
    assert "no broker was started there with --secure" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--profile", "test"], "--data-dir"),
        (["--set", "listeners=SASL_SSL://127.0.0.1:0"], "there is one already"),
        (["--set", "zookeeper.connect=localhost:1"], "alone"),
    ],
)
def test_what_cannot_be_secured_is_refused(tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    assert run(["serve", "--secure", *options]) != 0
    assert message in capsys.readouterr().err
    assert not os.path.exists(tmp_path / "kafkalite-data" / "secure")


def test_credentials_that_cannot_be_used_are_refused(tmp_path):
    for settings, message in (
        ({"security.protocol": "TELNET"}, "security.protocol"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "sasl.mechanism"),
        ({"sasl.jaas.config": "x"}, "sasl.jaas.config"),
        ({"security.protocol": "SSL", "ssl.ca.location": "/nowhere"}, "cannot be read"),
    ):
        with pytest.raises(ClientError, match=message):
            Credentials(settings)
    with pytest.raises(ClientError, match="No such file"):
        Credentials.read(tmp_path / "none")


def doctor(capsys, *options):
    code = run(["doctor", *options])
    return code, capsys.readouterr().out


@pytest.mark.slow
def test_doctor_shakes_hands_with_the_listener_that_has_tls(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    process, ready = serve(tmp_path / "data", "--secure-listen", address)
    try:
        code, output = doctor(capsys, "-b", ready[1])
        assert code == 0
        assert f"at {address} shows a certificate that is refused here" in output
        assert "kafkalite client-config" in output
        properties = tmp_path / "client.properties"
        assert run(["client-config", "java", "--data-dir", ready[4]]) == 0
        properties.write_text(capsys.readouterr().out)
        code, output = doctor(capsys, "-b", address, "--command-config", str(properties))
        assert (code, output) == (0, "nothing is wrong\n")
    finally:
        stop(process)
