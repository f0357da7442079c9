from kafkalite.settings.properties import parse_properties


def test_comments_blank_lines_and_separators() -> None:
    text = "# comment\n! comment\n\n a=1\nb : 2\nc 3\nd\te\n=f\ng=\nh"
    assert parse_properties(text) == {
        "a": "1", "b": "2", "c": "3", "d": "e", "": "f", "g": "", "h": "",
    }  # fmt: skip


def test_a_backslash_at_the_end_continues_the_line() -> None:
    text = "listeners=PLAINTEXT://a:1,\\\n    OTHER://b:2\nx=y\\\\\nz=1"
    assert parse_properties(text) == {
        "listeners": "PLAINTEXT://a:1,OTHER://b:2", "x": "y\\", "z": "1",
    }  # fmt: skip


def test_a_file_that_ends_within_a_continued_line_counts() -> None:
    assert parse_properties("a=1\\") == {"a": "1"}


def test_a_comment_sign_within_a_continued_line_is_text() -> None:
    assert parse_properties("a=1\\\n#2") == {"a": "1#2"}


def test_escapes() -> None:
    assert parse_properties("a\\=b\\ c=\\t\\u00e9\\:\\q\\n") == {"a=b c": "\té:q\n"}


def test_trailing_white_space_belongs_to_the_value() -> None:
    assert parse_properties("a = b  ") == {"a": "b  "}


def test_the_last_of_two_lines_counts_and_all_line_ends_do() -> None:
    assert parse_properties("a=1\r\na=2\rb=3\n") == {"a": "2", "b": "3"}
