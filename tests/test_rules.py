"""Rules are cited by number in code and tests; docs/rules.md has each of them, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
CATALOGUE = ROOT / "docs" / "rules.md"

NUMBERS = r"\d+(?:-\d+)?"
CITATION = re.compile(
    rf"\b[Rr]ules?\s+({NUMBERS}(?:(?:,\s+|,?\s+and\s+)(?:rules?\s+)?{NUMBERS})*)\b"
)
ENTRY = re.compile(r"^- \*\*(\d+)\*\* ", re.MULTILINE)


def cited_in(text: str) -> set[int]:
    """Return the numbers that a text cites: "rule 5", "rules 5, 7-9 and 12"."""
    numbers: set[int] = set()
    for citation in CITATION.finditer(re.sub(r"\n[ #]*", " ", text)):
        for first, last in re.findall(r"(\d+)(?:-(\d+))?", citation[1]):
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def sources() -> list[Path]:
    """Return the files that may cite a rule: code, tests and documents, but not the catalogue."""
    folders = ("kafkalite", "tests", "compat_tests", "spark_tests", "benchmarks", "docs")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    return [path for path in found if path.suffix in {".py", ".md"} and path != CATALOGUE]


def test_citations_are_read_as_they_are_written():
    assert cited_in("as rule 5 says (rules 7-9, 12 and 14).") == {5, 7, 8, 9, 12, 14}
    assert cited_in('"""Rules 1,\n    3."""') == {1, 3}
    assert cited_in("Rules of KIP-98, the rule of 3, rules()") == set()


def test_every_rule_that_is_cited_has_an_entry_and_every_entry_is_cited():
    entries = [int(number) for number in ENTRY.findall(CATALOGUE.read_text())]
    assert entries == sorted(set(entries))
    cited: set[int] = set()
    for path in sources():
        here = cited_in(path.read_text())
        assert here <= set(entries), f"{path.relative_to(ROOT)} cites {here - set(entries)}"
        cited |= here
    assert not set(entries) - cited, "nothing cites these: delete them"


def test_citations_have_one_form():
    """`rule 148`, without the letter of its section."""
    for path in sources():
        lettered = re.findall(r"\b[Rr]ules? [A-N]\d+\b", path.read_text())
        assert not lettered, f"{path.relative_to(ROOT)}: {lettered}"
