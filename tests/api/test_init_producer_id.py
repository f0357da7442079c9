"""The idempotent half of InitProducerId; the transactional one is in test_transactions.py."""

import pytest

from kafkalite.api.init_producer_id import HANDLERS
from kafkalite.wire.errors import ErrorCode
from kafkalite.wire.messages.init_producer_id import InitProducerIdRequest
from tests.api.metadata_kit import MetadataKit

(HANDLER,) = HANDLERS


@pytest.fixture
def kit():
    return MetadataKit()


def init(kit, version=5, **attributes):
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=60_000, **attributes
    )
    return kit.ask(HANDLER, request, version)


@pytest.mark.parametrize("version", range(6))
def test_an_idempotent_producer_gets_a_new_id_and_epoch_0(kit, version):
    """Rule 65."""
    answers = [init(kit, version) for _ in range(3)]
    assert [answer.producer_id for answer in answers] == [0, 1, 2]
    assert {(answer.error_code, answer.producer_epoch) for answer in answers} == {(0, 0)}


def test_a_producer_that_had_an_id_gets_another(kit):
    """As Kafka 4.3 answers: without a transactional id nothing is known of the one before."""
    answer = init(kit, producer_id=7, producer_epoch=3)
    assert (answer.producer_id, answer.producer_epoch) == (0, 0)


@pytest.mark.parametrize("attributes", [{"producer_id": 7}, {"producer_epoch": 3}])
def test_id_and_epoch_belong_together(kit, attributes):
    answer = init(kit, **attributes)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


def test_ids_of_the_block_are_given_without_a_commit(kit):
    """Rule 64."""
    init(kit)
    version = kit.image.version
    init(kit)
    assert kit.image.version == version


def test_an_id_that_cannot_be_stored_is_not_given(kit):
    kit.disk.fail("append", "metadata", times=1)
    assert init(kit).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert init(kit).producer_id == 0
