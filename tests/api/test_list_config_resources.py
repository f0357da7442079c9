import pytest

from kafkalite.api.list_config_resources import HANDLERS
from kafkalite.meta.events import IncrementalAlterConfigs
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.api.metadata_kit import MetadataKit

(HANDLER,) = HANDLERS


@pytest.fixture
def kit():
    made = MetadataKit()
    made.create("a")
    for kind, name, setting, value in (
        (16, "m", "interval.ms", "1000"),
        (32, "g", "share.auto.offset.reset", "earliest"),
    ):
        made.submit(
            IncrementalAlterConfigs(
                resource_type=kind, resource_name=name, operations=[(setting, 0, value)]
            )
        )
    return made


def listed(kit, *kinds, version=1):
    response = kit.ask(HANDLER, ListConfigResourcesRequest(resource_types=list(kinds)), version)
    assert response.error_code == 0
    return [(each.resource_type, each.resource_name) for each in response.config_resources]


def test_no_kinds_mean_all(kit):
    """KIP-1142."""
    assert listed(kit) == [(2, "a"), (4, "1"), (8, "1"), (16, "m"), (32, "g")]


def test_kinds_are_chosen(kit):
    assert listed(kit, 16, 32) == [(16, "m"), (32, "g")]
    assert listed(kit, 2, 2) == [(2, "a")]


def test_version_0_lists_metrics_subscriptions(kit):
    """KIP-714; the kind is not in that version, 16 is its default."""
    assert listed(kit, version=0) == [(16, "m")]


@pytest.mark.parametrize("kind", [1, 99])
def test_unknown_kinds_are_refused(kit, kind):
    request = ListConfigResourcesRequest(resource_types=[2, kind])
    response = kit.ask(HANDLER, request)
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
