"""The text by itself."""

from kafkalite.observe.exposition import COUNTER, GAUGE, Family, render


def text_of(*families, openmetrics=False, **labels):
    return b"".join(render(families, openmetrics=openmetrics, labels=labels)).decode()


def test_labels_are_escaped():
    family = Family("a", GAUGE, "two\nlines \\").add(1.5, topic='x"\\\n')
    assert text_of(family) == (
        '# HELP a two\\nlines \\\\\n# TYPE a gauge\na{topic="x\\"\\\\\\n"} 1.5\n'
    )


def test_static_labels_come_last():
    family = Family("a", GAUGE, "h").add(1).add(2, x="y")
    assert text_of(family, env="dev").splitlines()[2:] == ['a{env="dev"} 1', 'a{x="y",env="dev"} 2']


def test_a_family_without_samples_is_left_out():
    assert text_of(Family("a", GAUGE, "h")) == ""


def test_openmetrics_names_a_counter_without_its_end():
    family = Family("a_total", COUNTER, "h").add(1)
    assert text_of(family, openmetrics=True) == ("# HELP a h\n# TYPE a counter\na_total 1\n# EOF\n")
    other = Family("apersec", COUNTER, "h").add(1)
    assert "# TYPE apersec unknown" in text_of(other, openmetrics=True)
