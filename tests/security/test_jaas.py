"""Login modules as Kafka's settings have them."""

import pytest

from kafkalite.security.jaas import JaasError, parse_jaas


def test_options_are_read_with_and_without_quotation_marks():
    found = parse_jaas(
        ' org.example.Plain  REQUIRED\n username=admin\tpassword="a\\"b;=\\\\" user_x = "y" ; '
    )
    assert found.class_name == "org.example.Plain"
    assert found.options == {"username": "admin", "password": 'a"b;=\\', "user_x": "y"}
    assert found.users == {"x": "y"}


def test_module_may_have_no_options():
    assert parse_jaas("org.example.Scram required;").options == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "Plain required",
        "Plain;",
        "Plain maybe a=b;",
        "Plain required a=;",
        "Plain required a;",
        'Plain required a="b;',
        "Plain required a=b; Other required;",
        "Plain required = b c;",
    ],
)
def test_what_cannot_be_read_is_refused_without_its_passwords(text):
    with pytest.raises(JaasError) as refused:
        parse_jaas(text)
    assert "b" not in str(refused.value).split()
