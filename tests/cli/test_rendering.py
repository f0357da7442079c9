import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.cli.rendering import (
    NewRecord,
    parse_json,
    render_json,
    render_key_value,
    render_long,
    render_value,
)
from kafkalite.client.consumer import ConsumedRecord

anything = st.none() | st.binary() | st.text().map(str.encode)


def record(key=None, value=b"v", headers=(), timestamp=1769860800123):
    return ConsumedRecord("orders", 1, 42, timestamp, key, value, list(headers))


class TestText:
    def test_value_is_printed_as_it_is(self):
        assert render_value(record(value=b"\xff\x00")) == b"\xff\x00"
        assert render_value(record(value=None)) == b"null"

    def test_key_and_value_have_a_tab_between_them(self):
        assert render_key_value(record(key=b"k")) == b"k\tv"
        assert render_key_value(record()) == b"null\tv"

    def test_long_form_says_all(self):
        line = render_long(record(key=b"k", headers=[("h", b"1"), ("n", None)])).decode()
        assert line.startswith("orders-1      42  2026-01-3")
        assert line.endswith("  key=k  h=1  n=null  v")

    def test_long_form_leaves_out_what_is_not_there(self):
        assert render_long(record(timestamp=-1, value=b"\xff")) == b"orders-1      42  \\xff"


class TestJson:
    @given(key=anything, value=anything, headers=st.lists(st.tuples(st.text(), anything)))
    def test_what_consume_prints_produce_reads(self, key, value, headers):
        line = render_json(record(key, value, headers))
        assert b"\n" not in line
        assert parse_json(line) == NewRecord(value, key, headers, 1, 1769860800123)

    def test_value_alone_is_enough(self):
        assert parse_json(b'{"value": "v"}') == NewRecord(b"v")
        assert parse_json(b'{"value": null, "timestamp": -1}') == NewRecord(None)

    def test_other_json_is_written_as_its_text(self):
        parsed = parse_json('{"value": {"a": [1, "ä"]}, "key": 7}'.encode())
        assert (parsed.key, parsed.value) == (b"7", '{"a": [1, "ä"]}'.encode())

    def test_headers_may_be_an_object(self):
        assert parse_json(b'{"value": "v", "headers": {"a": "1"}}').headers == [("a", b"1")]

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            (b"{", "Expecting"),
            (b"\xff", "decode"),
            (b"[1]", 'not a JSON object with a "value"'),
            (b'{"key": "k"}', 'not a JSON object with a "value"'),
            (b'{"value": {"base64": "?"}}', "bad base64"),
            (b'{"value": {"base64": 1}}', "bad base64"),
            (b'{"value": "v", "partition": "x"}', '"partition" is no integer'),
            (b'{"value": "v", "headers": 7}', "neither an object nor a list of pairs"),
            (b'{"value": "v", "headers": [["a"]]}', "neither an object nor a list of pairs"),
        ],
    )
    def test_anything_else_is_refused_with_a_reason(self, line, reason):
        with pytest.raises(ValueError, match=reason):
            parse_json(line)

    def test_text_is_readable(self):
        document = json.loads(render_json(record(key="ä".encode())))
        assert document["key"] == "ä"
        assert document["offset"] == 42
