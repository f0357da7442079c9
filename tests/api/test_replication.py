"""What clients and followers are answered about a partition of several replicas."""

from uuid import UUID

import pytest
import trio

from kafkalite.api import delete_records, fetch, list_offsets, produce
from kafkalite.api.preferred_read_replica import RACK_AWARE_SELECTOR
from kafkalite.isr.leader_role import IsrAccepted
from kafkalite.meta.changes import BrokerRegistered, PartitionChanged, TopicCreated
from kafkalite.meta.image import PartitionImage
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkalite.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from kafkalite.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkalite.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.api.data_kit import DataKit, batch

TOPIC_ID = UUID(int=77)
PRODUCE, FETCH = produce.HANDLERS[0], fetch.HANDLERS[0]
DELETE_RECORDS, LIST_OFFSETS = delete_records.HANDLERS[0], list_offsets.HANDLERS[0]
FETCH_MS = 500


class ReplicatedKit(DataKit):
    """Broker 1, and what it is told of brokers 2 and 3."""

    async def start(self, **configs):
        await super().start()
        self.state = PartitionImage((1, 2, 3), (1, 2, 3), 1)
        named = {name.replace("_", "."): str(value) for name, value in configs.items()}
        self.tell(
            *(
                BrokerRegistered(
                    broker_id=n,
                    endpoints={"PLAINTEXT": (f"host{n}", 9092)},
                    rack=f"rack{n}",
                    broker_epoch=10 * n,
                )
                for n in (1, 2, 3)
            ),
            TopicCreated(name="t", topic_id=TOPIC_ID, partitions=(self.state,), configs=named),
        )
        return self

    def tell(self, *changes):
        self.metadata._cache.image = self.metadata.image.apply(changes)
        self.replicas.on_changes(changes, self.metadata.image)

    def change(self, *, replicas=(1, 2, 3), isr=(1, 2, 3), leader=1):
        epoch = self.state.leader_epoch + (leader != self.state.leader)
        self.state = PartitionImage(replicas, isr, leader, epoch, self.state.partition_epoch + 1)
        self.tell(PartitionChanged(name="t", topic_id=TOPIC_ID, index=0, state=self.state))

    def produce(self, acks=-1, *, version=13, timeout_ms=1_000, value="a"):
        return ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[
                TopicProduceData(
                    name="t" if version < 13 else "",
                    topic_id=TOPIC_ID,
                    partition_data=[PartitionProduceData(index=0, records=batch(value))],
                )
            ],
        )

    def fetch(self, offset, *, replica=-1, max_wait_ms=0, rack="", epoch=-1, **options):
        return FetchRequest(
            replica_state=ReplicaState(replica_id=replica, replica_epoch=10 * replica),
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            rack_id=rack,
            topics=[
                FetchTopic(
                    topic="t",
                    topic_id=TOPIC_ID,
                    partitions=[
                        FetchPartition(
                            partition=0,
                            fetch_offset=offset,
                            last_fetched_epoch=epoch,
                            log_start_offset=options.get("log_start_offset", 0),
                            partition_max_bytes=1 << 20,
                        )
                    ],
                )
            ],
        )

    def fetched(self, offset, version=None, **options):
        """Return the partition's answer to a fetch that does not wait."""
        response = self.ask(FETCH, self.fetch(offset, **options), version)
        return response.responses[0].partitions[0]

    def replicate(self, offset, *brokers, **options):
        for broker in brokers or (2, 3):
            self.fetched(offset, replica=broker, **options)


@pytest.fixture
async def kit():
    return await ReplicatedKit(replica_selector_class=RACK_AWARE_SELECTOR).start()


def produced(response):
    return response.responses[0].partition_responses[0]


class TestAcknowledgement:
    """Rules 51-53."""

    async def test_acks_all_waits_for_the_replicas(self, kit, autojump_clock):
        async with kit.parked(PRODUCE, kit.produce()) as parked:
            kit.replicate(1, 2)
            await trio.testing.wait_all_tasks_blocked()
            assert parked.response is None
            kit.replicate(1, 3)
        answer = produced(parked.response)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
        assert parked.after_s == 0

    @pytest.mark.parametrize("acks", [0, 1])
    async def test_others_do_not_wait(self, kit, acks):
        if acks:
            assert produced(kit.ask(PRODUCE, kit.produce(acks))).error_code == ErrorCode.NONE
        else:
            kit.handle(PRODUCE, kit.produce(acks))
        assert kit.partition().log_end_offset == 1
        assert kit.partition().high_watermark == 0

    async def test_time_runs_from_the_arrival(self, kit, autojump_clock):
        pending = kit.handle(PRODUCE, kit.produce(timeout_ms=1_000))
        await trio.sleep(0.4)
        began = trio.current_time()
        answer = produced(await pending.wait())
        assert trio.current_time() - began == pytest.approx(0.6)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        assert kit.partition().log_end_offset == 1

    async def test_answer_may_be_there_before_it_is_asked_for(self, kit):
        pending = kit.handle(PRODUCE, kit.produce())
        kit.replicate(1)
        assert produced(await pending.wait()).error_code == ErrorCode.NONE

    async def test_too_few_replicas(self, autojump_clock):
        kit = await ReplicatedKit().start(min_insync_replicas=2)
        async with kit.parked(PRODUCE, kit.produce()) as parked:
            kit.change(isr=(1,))
        after = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert produced(parked.response).error_code == after
        refused = produced(kit.ask(PRODUCE, kit.produce()))
        assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert produced(kit.ask(PRODUCE, kit.produce(1))).base_offset == 1

    async def test_client_that_went_away_is_not_waited_for(self, kit, autojump_clock):
        pending = kit.handle(PRODUCE, kit.produce())
        with trio.move_on_after(0.1):
            await pending.wait()
        kit.replicate(1)
        assert kit.partition().high_watermark == 1

    @pytest.mark.parametrize("version", [9, 10, 13])
    async def test_who_leads_instead_is_told(self, kit, autojump_clock, version):
        """Rule 54, KIP-951."""
        async with kit.parked(PRODUCE, kit.produce(version=version), version) as parked:
            kit.change(leader=2)
        later = kit.ask(PRODUCE, kit.produce(version=version), version)
        for response in (parked.response, later):
            answer = produced(response)
            assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            leader = answer.current_leader
            known = version >= 10
            assert (leader.leader_id, leader.leader_epoch) == ((2, 1) if known else (-1, -1))
            told = [(each.node_id, each.host, each.rack) for each in response.node_endpoints]
            assert told == ([(2, "host2", "rack2")] if known else [])

    async def test_nobody_leads(self, kit):
        kit.change(leader=-1)
        response = kit.ask(PRODUCE, kit.produce())
        assert produced(response).current_leader.leader_id == -1
        assert response.node_endpoints == []


class TestFollowers:
    """Rules 72, 77, 163."""

    async def test_follower_reads_to_the_log_end_and_consumer_to_the_watermark(self, kit):
        kit.append("a")
        assert len(kit.fetched(0).records) == 0
        assert len(kit.fetched(0, replica=2).records) > 0
        assert kit.fetched(0, replica=2).high_watermark == 0

    async def test_parked_follower_is_woken_by_appends(self, kit, autojump_clock):
        async with kit.parked(FETCH, kit.fetch(0, replica=2, max_wait_ms=FETCH_MS)) as parked:
            kit.append("a")
        assert len(parked.response.responses[0].partitions[0].records) > 0
        assert parked.after_s == 0

    async def test_parked_consumer_is_woken_by_the_watermark(self, kit, autojump_clock):
        async with kit.parked(FETCH, kit.fetch(0, max_wait_ms=FETCH_MS)) as parked:
            kit.append("a")
            kit.replicate(1, 2)
            await trio.testing.wait_all_tasks_blocked()
            assert parked.response is None
            kit.replicate(1, 3)
        assert len(parked.response.responses[0].partitions[0].records) > 0
        assert parked.after_s == 0

    async def test_append_between_admission_and_wait_is_seen(self, kit, autojump_clock):
        pending = kit.handle(FETCH, kit.fetch(0, replica=2, max_wait_ms=FETCH_MS))
        kit.append("a")
        response = kit.read(FETCH, await pending.wait())
        assert len(response.responses[0].partitions[0].records) > 0

    async def test_another_history_is_told_and_no_progress(self, kit):
        kit.change(leader=2)
        kit.change(leader=1)
        kit.append("a")
        answer = kit.fetched(1, replica=2, epoch=1)
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (1, 0)
        assert kit.partition().leader.followers[2].log_end_offset == -1

    async def test_offset_beyond_the_log_is_no_progress(self, kit):
        assert kit.fetched(5, replica=2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert kit.partition().leader.followers[2].log_end_offset == -1

    async def test_broker_that_is_no_replica_is_refused(self, kit):
        kit.change(replicas=(1, 2), isr=(1, 2))
        answer = kit.fetched(0, replica=3)
        assert (answer.error_code, answer.high_watermark) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1)

    async def test_earlier_life_of_a_broker_is_refused(self, kit):
        """KIP-903."""
        kit.replicate(0)
        request = kit.fetch(0, replica=2)
        request.replica_state.replica_epoch = 19
        answer = kit.ask(FETCH, request).responses[0].partitions[0]
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    async def test_old_versions_name_the_replica_elsewhere(self, kit):
        kit.append("a")
        request = kit.fetch(1)
        for replica in (2, 3):
            request.replica_id = replica
            kit.ask(FETCH, request, 12)
        assert kit.partition().high_watermark == 1

    async def test_clients_do_not_fetch_as_followers(self, kit):
        context = kit.context(17)
        context.is_inter_broker = False
        with pytest.raises(KafkaError) as refused:
            FETCH.handle(kit.fetch(0, replica=2), context)
        assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    async def test_follower_that_catches_up_is_proposed(self, kit):
        kit.change(isr=(1, 2))
        kit.append("a")
        kit.replicate(1)
        ((partition, proposal),) = kit.replicas.take_isr_changes()
        assert [(each.broker_id, each.broker_epoch) for each in proposal.isr] == [
            (1, -1), (2, 20), (3, 30),
        ]  # fmt: skip
        partition.on_isr_answer(
            proposal, IsrAccepted(leader_epoch=0, partition_epoch=2, isr=(1, 2, 3))
        )
        assert partition.leader.state.isr == (1, 2, 3)
        assert partition.partition_epoch == 2


class TestThrottling:
    """KIP-73."""

    @pytest.fixture
    async def throttled(self):
        kit = await ReplicatedKit(leader_replication_throttled_rate=1_000).start(
            leader_replication_throttled_replicas="0:3"
        )
        kit.change(isr=(1, 2))
        for _ in range(20):
            kit.append("x" * 100)
        assert len(kit.fetched(0, replica=3).records) > 1_000
        return kit

    async def test_follower_out_of_sync_and_over_the_rate_gets_nothing(self, throttled):
        answer = throttled.fetched(0, replica=3)
        assert (answer.error_code, len(answer.records)) == (ErrorCode.NONE, 0)
        assert len(throttled.fetched(0, replica=2).records) > 0
        throttled.clock.now_ms += 5_000
        assert len(throttled.fetched(0, replica=3).records) > 0

    async def test_it_waits_its_time(self, throttled, autojump_clock):
        request = throttled.fetch(0, replica=3, max_wait_ms=FETCH_MS)
        async with throttled.parked(FETCH, request) as parked:
            throttled.append("more")
            await trio.sleep(1)
        assert parked.after_s == pytest.approx(0.5)

    async def test_follower_in_sync_is_spared(self, throttled):
        throttled.change(isr=(1, 2, 3))
        assert len(throttled.fetched(0, replica=3).records) > 0


class TestNearReplicas:
    """KIP-392, rules 78-79."""

    @pytest.fixture
    async def replicated(self, kit):
        kit.append("a", "b")
        kit.replicate(2)
        return kit

    async def test_consumer_is_sent_to_the_replica_in_its_rack(self, replicated):
        answer = replicated.fetched(0, rack="rack3")
        assert (answer.preferred_read_replica, len(answer.records)) == (3, 0)
        assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 2)

    @pytest.mark.parametrize("rack", ["rack1", "elsewhere", ""])
    async def test_others_stay(self, replicated, rack):
        answer = replicated.fetched(0, rack=rack)
        assert answer.preferred_read_replica == -1
        assert len(answer.records) > 0

    async def test_replica_must_be_in_sync_and_have_the_offset(self, replicated):
        replicated.replicate(2, 2, log_start_offset=1)
        assert replicated.fetched(0, rack="rack2").preferred_read_replica == -1
        assert replicated.fetched(1, rack="rack2").preferred_read_replica == 2
        replicated.change(isr=(1, 3))
        assert replicated.fetched(1, rack="rack2").preferred_read_replica == -1

    async def test_without_selector_nobody_is_sent_away(self):
        kit = await ReplicatedKit().start()
        kit.append("a")
        kit.replicate(1)
        assert kit.fetched(0, rack="rack2").preferred_read_replica == -1

    async def test_follower_serves_consumers_that_know_of_it(self, replicated):
        replicated.change(leader=2)
        answer = replicated.fetched(0, 11)
        assert (answer.error_code, answer.high_watermark) == (ErrorCode.NONE, 2)
        assert len(answer.records) > 0
        assert answer.preferred_read_replica == -1
        old = replicated.fetched(0, 10)
        assert old.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    async def test_tools_that_compare_replicas_may_read_any(self, replicated):
        replicated.change(leader=2)
        request = replicated.fetch(0)
        request.replica_id = -2
        answer = replicated.ask(FETCH, request, 10).responses[0].partitions[0]
        assert answer.error_code == ErrorCode.NONE

    async def test_follower_is_told_who_leads(self, replicated):
        replicated.change(leader=2)
        response = replicated.ask(FETCH, replicated.fetch(0, replica=3))
        answer = response.responses[0].partitions[0]
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 1)
        assert [each.port for each in response.node_endpoints] == [9092]


class TestListOffsets:
    def listed(self, kit, version=7, replica_id=-1):
        wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(
            replica_id=replica_id, topics=[ListOffsetsTopic(name="t", partitions=[wanted])]
        )
        return kit.ask(LIST_OFFSETS, request, version).topics[0].partitions[0]

    @pytest.mark.parametrize(
        ("version", "code"),
        [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)],
    )
    async def test_new_leader_does_not_know_yet(self, kit, version, code):
        """Rule 95."""
        kit.append("a")
        kit.change(leader=2)
        kit.change(leader=1)
        assert self.listed(kit, version).error_code == code
        assert self.listed(kit, replica_id=2).offset == 1
        kit.replicate(1)
        assert self.listed(kit, version).offset == 1

    async def test_who_does_not_lead_says_so_but_to_tools(self, kit):
        """Rule 96."""
        kit.change(leader=2)
        assert self.listed(kit).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert self.listed(kit, replica_id=-2).error_code == ErrorCode.NONE


class TestDeleteRecords:
    """Rule 35."""

    def request(self, offset=1):
        wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
        return DeleteRecordsRequest(
            timeout_ms=1_000, topics=[DeleteRecordsTopic(name="t", partitions=[wanted])]
        )

    @pytest.fixture
    async def replicated(self, kit):
        kit.append("a", "b")
        kit.replicate(2)
        return kit

    async def test_it_waits_for_all_living_replicas(self, replicated, autojump_clock):
        async with replicated.parked(DELETE_RECORDS, self.request()) as parked:
            replicated.replicate(2, 2, log_start_offset=1)
            await trio.testing.wait_all_tasks_blocked()
            assert parked.response is None
            replicated.replicate(2, 3, log_start_offset=1)
        result = parked.response.topics[0].partitions[0]
        assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 1)
        assert not replicated.partition()._watchers

    async def test_it_does_not_wait_for_ever(self, replicated, autojump_clock):
        async with replicated.parked(DELETE_RECORDS, self.request()) as parked:
            await trio.sleep(2)
        result = parked.response.topics[0].partitions[0]
        assert (result.error_code, result.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        assert parked.after_s == 1

    async def test_lost_leadership_ends_it(self, replicated, autojump_clock):
        async with replicated.parked(DELETE_RECORDS, self.request(-1)) as parked:
            replicated.change(leader=3)
        result = parked.response.topics[0].partitions[0]
        assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
