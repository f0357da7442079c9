"""Fixtures of this folder's tests."""

import pytest

from tests.share.partition_kit import Setup


@pytest.fixture
def setup():
    return Setup()
