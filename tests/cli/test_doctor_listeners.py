"""`kafkalite doctor` on listeners with TLS whose certificates are not as they should be."""

import socket
import time

import pytest

from kafkalite.cli.main import run
from kafkalite.testing.broker import Broker
from kafkalite.testing.security import Certificates

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def address():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture(scope="module")
def broker(certificates, address):
    """One that clients reach without TLS as well, so that the doctor gets as far as to look."""
    config = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,SSL://{address}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.broker_file),
    }
    with Broker(config=config) as broker:
        yield broker


@pytest.fixture
def doctor(broker, certificates, address, monkeypatch, capsys):
    """What the doctor says where the machine trusts the authority, and its exit code."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca_file))

    def ask(shown):
        deadline = time.monotonic() + 30
        while True:  # a certificate is for connections that are made a second later
            code = run(["doctor", "-b", broker.bootstrap])
            output = capsys.readouterr().out
            if shown in output:
                return code, output
            assert time.monotonic() < deadline, output
            time.sleep(0.1)

    return ask


def test_a_good_certificate_is_nothing_to_tell(certificates, doctor):
    certificates.renew()
    assert doctor("nothing is wrong") == (0, "nothing is wrong\n")


def test_a_certificate_that_is_about_to_expire_is_told_of(certificates, address, doctor):
    certificates.expire(in_days=5.01)
    code, output = doctor("expires")
    assert code == 0
    assert f"warning: listener SSL of broker 1 at {address} has a certificate" in output
    assert "that expires in 5 days" in output
    assert "Renew it: clients refuse it afterwards." in output


def test_a_certificate_that_has_expired_is_an_error(certificates, address, doctor):
    certificates.expire()
    code, output = doctor("expired")
    assert code == 1
    assert f"error: listener SSL of broker 1 at {address} shows a certificate that is" in output


def test_a_certificate_for_another_host_is_an_error(certificates, address, doctor):
    certificates.wrong_host()
    code, output = doctor("not valid for")
    assert code == 1
    assert f"error: listener SSL of broker 1 at {address} shows a certificate that is" in output
    assert "IP address mismatch, certificate is not valid for '127.0.0.1'" in output
    assert "Renew it, with the names that clients connect to in it." in output


@pytest.mark.parametrize("is_by_tls", [False, True])
def test_a_listener_with_a_port_of_the_systems_choice_is_looked_at_by_itself(
    tmp_path, capsys, is_by_tls
):
    with Broker(tls=True) as broker:
        by = {"PLAINTEXT": broker.bootstrap_for("PLAINTEXT"), "SSL": broker.bootstrap_for("SSL")}
        settings = tmp_path / "client.properties"
        settings.write_text(f"security.protocol=SSL\nssl.ca.location={broker.ca_file}\n")
        broker.certs.expire(in_days=5.01)
        deadline = time.monotonic() + 30
        while True:
            words = ["-b", by["SSL"], "--command-config", str(settings)]
            code = run(["doctor", *(words if is_by_tls else ["-b", by["PLAINTEXT"]])])
            output = capsys.readouterr().out
            shown = f"at {by['SSL']} has a certificate" if is_by_tls else "its port is 0"
            if shown in output:
                break
            assert time.monotonic() < deadline, output
            time.sleep(0.1)
        assert code == 0
        assert "listener SSL of broker 1" in output
