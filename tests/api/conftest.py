"""Fixtures of this folder's tests."""

import pytest

from tests.api.data_kit import DataKit


@pytest.fixture
async def kit():
    return await DataKit().start()


@pytest.fixture
async def topic(kit):
    """A topic `t` of three partitions; return its ID."""
    return await kit.create("t", 3)
