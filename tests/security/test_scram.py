"""SCRAM against the vectors of its RFCs, and both sides against each other (rule 530)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.security import scram
from kafkalite.security.scram import BY_NUMBER, SHA_256, ClientExchange, Credential, ScramError


def test_example_of_the_rfc_is_followed_to_the_letter():
    """RFC 7677, section 3."""
    salt = b"[m\x99h\x9d\x12\x35\x8e\xec\xa0K\x14\x126\xfa\x81"
    credential = Credential.of_password(SHA_256, "pencil", salt=salt, iterations=4096)
    client = scram.read_client_first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    answer = scram.server_first(client, credential, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    assert answer == (
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert scram.server_final(SHA_256, credential, client, answer, final) == (
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )


@given(st.sampled_from(sorted(BY_NUMBER)), st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_both_sides_agree_on_any_name_and_password(number, name, password):
    mechanism = BY_NUMBER[number]
    if "\0" in name or not name.isprintable():
        return
    credential = Credential.of_password(mechanism, password, salt=b"salt", iterations=1)
    credential = Credential.parse(str(credential))
    client = ClientExchange(mechanism, name, password, "client")
    first = scram.read_client_first(client.first())
    assert (first.name, first.is_token) == (name, False)
    answer = scram.server_first(first, credential, "server")
    final = client.final(answer.encode())
    client.check(scram.server_final(mechanism, credential, first, answer, final))
    with pytest.raises(ScramError):
        client.check(b"v=other")
    assert credential.fits(mechanism, password)
    assert not credential.fits(mechanism, password + "x")


def test_name_of_a_token_is_marked():
    assert scram.read_client_first(b"n,,n=id,r=x,tokenauth=true").is_token
    assert scram.read_client_first(b"n,a=me,n=id,r=x,other=1").authorization_id == "me"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"y,,n=a,r=b",
        b"p=x,,n=a,r=b",
        b"n,,n=,r=b",
        b"n,,n=a",
        b"n,,n=a,r=",
        b"\xff",
        b"n,,r=b",
    ],
)
def test_first_message_that_is_none_is_refused(message):
    with pytest.raises(ScramError):
        scram.read_client_first(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"c=biws,r=other,p=AAAA",
        b"c=eSws,r=cs,p=AAAA",  # another header
        b"c=biws,r=cs,p=AAAA",
        b"c=biws,r=cs,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        b"c=biws,r=c,p=AAAA",
        b"c=biws,r=cs,p=nobase64!",
        b"\xff",
    ],
)
def test_final_message_without_proof_is_refused(message):
    credential = Credential.of_password(SHA_256, "x", salt=b"s", iterations=1)
    client = scram.read_client_first(b"n,,n=a,r=c")
    answer = scram.server_first(client, credential, "s")
    with pytest.raises(ScramError):
        scram.server_final(SHA_256, credential, client, answer, message)


@pytest.mark.parametrize("answer", [b"", b"r=other,s=AAAA,i=1", b"r=c,s=AAAA", b"\xff"])
def test_client_refuses_an_answer_that_is_not_for_it(answer):
    with pytest.raises(ScramError):
        ClientExchange(SHA_256, "a", "b", "c1").final(answer)


@pytest.mark.parametrize("text", ["", "salt=AAAA", "salt=!,stored_key=,server_key=,iterations=1"])
def test_text_that_is_no_credential_is_refused(text):
    with pytest.raises(ValueError, match="no SCRAM credential"):
        Credential.parse(text)
