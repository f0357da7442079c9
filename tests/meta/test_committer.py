"""A controller decides by the image, and by what the store tells of brokers."""

from dataclasses import replace

import pytest

from kafkalite.meta.events import AlterPartition, CreateTopic
from kafkalite.wire.errors import ErrorCode, KafkaError
from tests.meta.meta_kit import topic_id
from tests.meta.test_ensemble import cluster, settle


@pytest.mark.parametrize("is_told", [True, False])
def test_a_controller_lets_nobody_into_an_isr_before_it_knows_who_lives(is_told):
    """Rule 249: who was registered again since its leader asked, may have lost everything."""

    async def check(nodes, _):
        await nodes[0].submit(
            CreateTopic(name="a", topic_id=topic_id(1), assignments=[(0, [1, 2])])
        )
        nodes[1].store.expire_session()
        await settle()
        (state,) = nodes[0].image.topics["a"].partitions
        assert state.isr == (1,)
        asked = AlterPartition(
            broker_id=1,
            broker_epoch=nodes[0].runner.broker_epoch,
            topic_id=topic_id(1),
            index=0,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            new_isr=[
                (each, broker.broker_epoch) for each, broker in nodes[0].image.brokers.items()
            ],
        )
        inbox = nodes[0].runner._inbox
        before = inbox.live
        again = replace(before[2], broker_epoch=before[2].broker_epoch + 1)
        inbox.live = {**before, 2: again} if is_told else None
        with pytest.raises(KafkaError) as refused:
            await nodes[0].submit(asked)
        assert refused.value.code is ErrorCode.INELIGIBLE_REPLICA
        inbox.live = before
        await nodes[0].submit(asked)
        assert nodes[0].image.topics["a"].partitions[0].isr == (1, 2)

    cluster(2, check)
