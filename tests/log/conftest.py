"""Fixtures of this folder's tests."""

import pytest

from tests.log.producer_state_kit import SmallLog


@pytest.fixture
def log():
    return SmallLog()
