"""Subjects of certificates as Java writes them, and mapping rules as Kafka reads them."""

import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kafkalite.security.names import MappingRules, NoUserName, subject_of

KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(*relative_names):
    name = x509.Name(
        [
            x509.RelativeDistinguishedName([x509.NameAttribute(*pair) for pair in pairs])
            for pairs in relative_names
        ]
    )
    now = dt.datetime(2026, 1, 1)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")]))
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(KEY, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )


@pytest.mark.parametrize(
    ("names", "subject"),
    [
        pytest.param([[(NameOID.COMMON_NAME, "alice")]], "CN=alice", id="one"),
        pytest.param(
            [
                [(NameOID.COUNTRY_NAME, "DE")],
                [(NameOID.ORGANIZATION_NAME, "Acme")],
                [(NameOID.ORGANIZATIONAL_UNIT_NAME, "Unit")],
                [(NameOID.COMMON_NAME, "alice")],
            ],
            "CN=alice,OU=Unit,O=Acme,C=DE",
            id="most specific first",
        ),
        pytest.param(
            [[(NameOID.COMMON_NAME, ' a,b+c"d\\e<f>g;h=#i ')]],
            r"CN=\ a\,b\+c\"d\\e\<f\>g\;h\=\#i\ ",
            id="escaped",
        ),
        pytest.param(
            [[(NameOID.EMAIL_ADDRESS, "a@b")], [(NameOID.COMMON_NAME, "x")]],
            "CN=x,1.2.840.113549.1.9.1=#1603614062",
            id="without a keyword",
        ),
        pytest.param(
            [[(NameOID.USER_ID, "1"), (NameOID.COMMON_NAME, "äö")]], None, id="several in one"
        ),
        pytest.param([], "", id="nothing"),
    ],
)
def test_subject_is_written_as_java_does(names, subject):
    found = subject_of(certificate(*names))
    if subject is None:  # the order in a set is that of the encoding
        assert sorted(found.split("+")) == ["CN=äö", "UID=1"]
    else:
        assert found == subject


@pytest.mark.parametrize("data", [b"", b"0", b"0\x03abc", b"\x30\x82\xff\xff"])
def test_what_is_no_certificate_has_no_name(data):
    with pytest.raises(NoUserName):
        subject_of(data)


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("", "CN=Alice,OU=Dev,O=Acme"),
        ("DEFAULT", "CN=Alice,OU=Dev,O=Acme"),
        ("RULE:^CN=(.*?),OU=(.*?),O=Acme$/$1@$2/", "Alice@Dev"),
        ("RULE:^CN=(.*?),.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),.*$/$1/U , DEFAULT", "ALICE"),
        ("RULE:^CN=nobody$/x/, RULE:^CN=([^,]*),.*$/a\\/$1\\/$9/", "a/Alice/$9"),
        ("RULE:^CN=(A|B)?(lice),.*$/$1-$2/, DEFAULT", "A-lice"),
        ("RULE:CN=Alice/x/, DEFAULT", "CN=Alice,OU=Dev,O=Acme"),
    ],
)
def test_first_rule_that_fits_the_whole_name_decides(rules, name):
    assert MappingRules(rules).name_of("CN=Alice,OU=Dev,O=Acme") == name


def test_name_that_no_rule_fits_is_refused():
    with pytest.raises(NoUserName, match="no rule"):
        MappingRules("RULE:^CN=bob$/bob/").name_of("CN=alice")


@pytest.mark.parametrize("text", ["RULE:a/b", "default", "RULE:a/b/X", "RULE:(/b/", "DEFAULT x"])
def test_rules_that_cannot_be_read_are_refused(text):
    with pytest.raises(NoUserName, match=r"ssl\.principal\.mapping\.rules"):
        MappingRules(text)
