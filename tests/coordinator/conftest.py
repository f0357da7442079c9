"""Fixtures of this folder's tests."""

import pytest

from tests.coordinator.runtime_kit import Setup


@pytest.fixture
def setup():
    return Setup().lead()
