"""Producer ids of a lone broker."""

import pytest
import trio

from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.meta.runner_kit import PATH


class TestProducerIds:
    def allocate(self, kit):
        return kit.run(kit.producer_ids.next)

    def test_are_counted_up_and_never_given_twice(self, kit):
        """Rule 64."""
        assert kit.producer_ids.next_nowait() is None
        assert [self.allocate(kit) for _ in range(3)] == [0, 1, 2]
        assert kit.producer_ids.next_nowait() == 3
        kit.start()
        assert self.allocate(kit) == 1000

    def test_go_on_in_the_next_block(self, kit):
        assert [self.allocate(kit) for _ in range(1001)] == list(range(1001))
        assert kit.image.next_producer_id == 2000

    def test_one_block_serves_all_who_wait_for_it(self, kit):
        async def many():
            ids = []

            async def one():
                ids.append(await kit.producer_ids.next())

            async with trio.open_nursery() as nursery:
                for _ in range(10):
                    nursery.start_soon(one)
            return ids

        assert sorted(kit.run(many)) == list(range(10))
        assert kit.image.next_producer_id == 1000

    def test_an_id_that_cannot_be_stored_is_not_given(self, kit):
        kit.disk.fail("append", PATH)
        with pytest.raises(KafkaError) as caught:
            self.allocate(kit)
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
