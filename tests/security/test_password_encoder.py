"""Passwords among settings, as Apache Kafka 3.9 encodes them (rule 255)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.config import load_config
from kafkalite.security.password_encoder import (
    CBC,
    GCM,
    PasswordEncoder,
    PasswordError,
    is_password,
)

SECRET, PASSWORD = "a secret é", "pass wörd, of: a store"
BY_KAFKA = {
    "AES/CBC/PKCS5Padding, 128 bits, SHA512": (
        "initializationVector:YWLhnZOMuZ+jdGo7jP0Itw==,keyLength:128,salt:Y8Ee5+qdKHTXl80ortx"
        "dN+IwyFn8XJ31+MuCQxzfVhYC24SgSrCcOQjevlkjNCBVYQ0naWBZMvzvZzOQ8bpmp7Ec6oayTfdRUxHSs2X"
        "SKdiAHilG5rTLCC3RY2QSYhB8iGdEB6Zlxmkj/kzqZ9QV33zTnZGa0PVEI4I7dfcSu1G1Xe5cDo8ml93137g"
        "71i5q/NLE+wDhTqk+pIa5VVLoKsEgFCWpqrnx37Ba60vHyzz63iOGLd/ws/marrM6IRXQWYvf88gJhc9Sg2q"
        "U6Nt+TKeiirAOy16VxAcvU8Cz2F5mUQ2flejlMt1NvcKN8QqF8xBBIq+p4+lZ1NmeaK9nRg==,keyFactory"
        "Algorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,"
        "passwordLength:22,encryptedPassword:xIeHhwWOBgbDs9CDutDpzpERuML3URwE23AaWtabDx8="
    ),
    "AES/GCM/NoPadding, 256 bits, SHA1": (
        "initializationVector:UeT6LcUX3CuRJORh,keyLength:256,salt:EQe/ikKjh3Amg3Gh8CM2JhOcsf4"
        "DkT4DDz88xYpUaUTZB6IyH9dalGJ1p4t2DMEXNc1nfdhCXxN655/XPWPvwwHH1pMiDgKDHNkLykzrWg4Z/Kg"
        "id036KyN+jtBAvRUQ6HNtSOfqCIvvtJx331SWsm6db0973cmL0ZE8ktDkFPFZVf3kjSl8mycXJmSkPtLgVTm"
        "bTdcD5c4QE3mJgOdMQ6A1uJrAhdHxAExB6FePDAb9IFH/nvG9rnZsvZe8Oy9+r6hf4EWSLp3bSb6ymZJBqU9"
        "Bn/h/pGsHM5RigVRaWpceeXhVyS8Hm/4vHOA3zTtAFnolR3aMQr2fB0nbwkIphg==,keyFactoryAlgorith"
        "m:PBKDF2WithHmacSHA1,cipherAlgorithm:AES/GCM/NoPadding,authenticationTagLength:128,i"
        "terations:1024,passwordLength:22,encryptedPassword:A1rTZ6CDe+hfYt8CudoYeY7/zZyOgHyd7"
        "oJG4IEa0+jtRDsjoYrX"
    ),
}
"""Made by org.apache.kafka.security.PasswordEncoder of 3.9.2."""


@pytest.mark.parametrize("text", BY_KAFKA.values(), ids=BY_KAFKA)
def test_what_kafka_encodes_is_decoded(text):
    assert PasswordEncoder(SECRET).decode(text) == PASSWORD
    assert PasswordEncoder("new", old_secrets=(SECRET,)).decode(text) == PASSWORD


@pytest.mark.parametrize("text", BY_KAFKA.values(), ids=BY_KAFKA)
def test_another_secret_does_not_decode_it(text):
    with pytest.raises(PasswordError, match="another secret"):
        PasswordEncoder("another").decode(text)


@pytest.mark.parametrize("cipher", [CBC, GCM])
@pytest.mark.parametrize("key_length", [128, 192, 256])
@given(password=st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_encoded_is_decoded(cipher, key_length, password):
    encoder = PasswordEncoder(
        SECRET,
        cipher=cipher,
        key_length=key_length,
        key_factory="PBKDF2WithHmacSHA256",
        iterations=1,
    )
    text = encoder.encode(password)
    assert password not in text or len(password) < 10
    assert PasswordEncoder(SECRET).decode(text) == password
    assert encoder.encode(password) != text, "the salt is new each time"


@given(st.text() | st.sampled_from([*BY_KAFKA.values()]), st.data())
def test_damaged_texts_are_refused(text, data):
    cut = data.draw(st.integers(0, len(text)))
    other = data.draw(st.text(max_size=3))
    damaged = text[:cut] + other + text[cut + len(other) + 1 :]
    try:
        found = PasswordEncoder(SECRET).decode(damaged)
    except PasswordError:
        return
    assert found == PASSWORD, "only what is not looked at was damaged"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"key_length": 100}, "100 bits"),
        ({"key_factory": "PBKDF2WithHmacMD5"}, "PBKDF2WithHmacMD5"),
        ({"cipher": "DES/CBC/PKCS5Padding"}, "DES"),
    ],
)
def test_what_is_not_supported_is_named(settings, why):
    with pytest.raises(PasswordError, match=why):
        PasswordEncoder(SECRET, **settings).encode("x")


def test_settings_have_kafkas_names():
    assert PasswordEncoder.of(load_config(overrides={})) is None
    settings = {
        "password.encoder.secret": "new",
        "password.encoder.old.secret": SECRET,
        "password.encoder.cipher.algorithm": GCM,
        "password.encoder.key.length": "256",
        "password.encoder.iterations": "2000",
        "password.encoder.keyfactory.algorithm": "PBKDF2WithHmacSHA1",
    }
    encoder = PasswordEncoder.of(load_config(overrides=settings))
    for text in BY_KAFKA.values():
        assert encoder.decode(text) == PASSWORD
    fields = dict(part.partition(":")[::2] for part in encoder.encode("x").split(","))
    assert fields["cipherAlgorithm"] == GCM
    assert fields["keyLength"] == "256"
    assert fields["iterations"] == "2000"
    assert fields["keyFactoryAlgorithm"] == "PBKDF2WithHmacSHA1"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ssl.keystore.password", True),
        ("listener.name.internal.ssl.key.password", True),
        ("listener.name.internal.plain.sasl.jaas.config", True),
        ("listener.name.internal.ssl.keystore.location", False),
        ("password.encoder.secret", False),
    ],
)
def test_passwords_are_known_by_their_names(name, expected):
    assert is_password(name) is expected
