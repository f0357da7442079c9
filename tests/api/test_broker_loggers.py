import logging

from kafkalite.api import broker_loggers


def test_only_loggers_of_this_package_and_the_root_are_shown():
    logging.getLogger("kafkalite.meta")
    logging.getLogger("other.package")
    names = list(broker_loggers.levels())
    assert names[0] == "root"
    assert "kafkalite.meta" in names
    assert "other.package" not in names


def test_levels_between_names_are_rounded_down():
    logger = logging.getLogger("kafkalite.meta")
    before = logger.level
    try:
        for level, name in ((60, "FATAL"), (35, "WARN"), (15, "DEBUG"), (5, "TRACE"), (1, "TRACE")):
            logger.setLevel(level)
            assert broker_loggers.levels()["kafkalite.meta"] == name
    finally:
        logger.setLevel(before)
