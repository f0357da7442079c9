"""DIGEST-MD5, by the example of RFC 2831; a real ZooKeeper is asked in tests/meta."""

import pytest

from kafkalite.security.digest_md5 import MODULE, DigestError, DigestExchange, user_of

CHALLENGE = (
    b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",'
    b"algorithm=md5-sess,charset=utf-8"
)


@pytest.fixture
def exchange():
    uri = "imap/elwood.innosoft.com"
    return DigestExchange("chris", "secret", "OA6MHXh6VqTrRk", uri)


def test_answer_and_check_are_those_of_the_standard(exchange):
    """Rule 586; RFC 2831, section 4."""
    answer = exchange.answer(CHALLENGE)
    assert b"response=d388dad90d4bbd760a152321f2143af7," in answer
    assert b'digest-uri="imap/elwood.innosoft.com"' in answer
    exchange.check(b"rspauth=ea40f60335c427b5527b84dbabcdfffd")


@pytest.mark.parametrize("token", [b"", b"rspauth=ea40f60335c427b5527b84dbabcdfffe", b'rspauth="'])
def test_server_that_does_not_know_the_user_is_refused(exchange, token):
    exchange.answer(CHALLENGE)
    with pytest.raises(DigestError, match="does not prove"):
        exchange.check(token)


@pytest.mark.parametrize("challenge", [b"", b"\xff", b'realm="x"', b'nonce="x",qop="auth-conf"'])
def test_challenge_of_another_kind_is_refused(exchange, challenge):
    with pytest.raises(DigestError, match="challenge"):
        exchange.answer(challenge)


def test_what_stands_between_quotation_marks_may_hold_such():
    exchange = DigestExchange('a"b\\', "p", "n")
    assert rb'username="a\"b\\",' in exchange.answer(rb'nonce="x\"y"')
    assert rb'nonce="x\"y",' in exchange.answer(rb'nonce="x\"y"')


def test_user_is_read_from_a_line_of_jaas():
    assert user_of(f'{MODULE} required username="kafka" password="a b";') == ("kafka", "a b")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "ends with"),
        (f'{MODULE} required username="kafka";', "needs password"),
        ('org.example.Module required username="kafka" password="x";', "has to be"),
    ],
)
def test_line_without_a_user_is_refused(line, why):
    with pytest.raises(DigestError, match=why):
        user_of(line)
