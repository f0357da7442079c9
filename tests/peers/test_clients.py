"""Questions to other brokers, over real sockets, to brokers that behave and to others."""

from itertools import pairwise

import pytest
import trio
import trio.testing

from kafkalite.api.handler import Handler
from kafkalite.config import load_config
from kafkalite.deferred import Deferred
from kafkalite.network.sockets import TcpNetwork
from kafkalite.peers.clients import ControllerClient, peer_settings
from kafkalite.wire.errors import ErrorCode, KafkaError
from kafkalite.wire.header import encode_response_header
from kafkalite.wire.messages.api_versions import API_VERSIONS, ApiVersion, ApiVersionsResponse
from kafkalite.wire.messages.heartbeat import HEARTBEAT, HeartbeatRequest, HeartbeatResponse
from kafkalite.wire.messages.sync_group import SYNC_GROUP, SyncGroupRequest, SyncGroupResponse
from tests.peers.peer_kit import CLOSE, Cluster, broker, heartbeat, strange_broker, with_versions

TIMEOUT_MS = 5_000


@pytest.fixture
def cluster():
    return Cluster()


def ask(peers, group="g", *, broker_id=1, timeout_ms=TIMEOUT_MS, **options):
    request = HeartbeatRequest(group_id=group)
    return peers.request(broker_id, HEARTBEAT, request, timeout_ms=timeout_ms, **options)


async def refusal(peers, **options):
    with pytest.raises(KafkaError) as caught:
        await ask(peers, **options)
    return caught.value


class CountingNetwork(TcpNetwork):
    def __init__(self):
        self.connected = 0

    async def connect(self, host, port, *, tls=None):
        self.connected += 1
        return await super().connect(host, port)


async def test_requests_of_a_channel_share_a_connection_and_go_out_in_turn(cluster):
    seen, network = [], CountingNetwork()

    def handle(request, context):
        async def wait():
            await trio.sleep(0.01)
            return HeartbeatResponse(error_code=int(request.group_id))

        seen.append((context.client_id, context.connection_id, request.group_id))
        return Deferred(wait)

    answers = {}

    async def ask_for(group, channel):
        answers[group] = (await ask(peers, group, channel=channel)).error_code

    async with broker(heartbeat(handle)) as port, cluster.peers(network) as peers:
        cluster.set(b1=port)
        async with trio.open_nursery() as nursery:
            for group in range(5):
                nursery.start_soon(ask_for, str(group), "control")
            nursery.start_soon(ask_for, "7", "fetch")
    assert answers == {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "7": 7}
    assert network.connected == 2
    assert {client for client, _, _ in seen} == {"broker-9"}


@pytest.mark.parametrize("size", [0, 16_000, 20_000, 3_000_000])
async def test_answers_of_any_size_come_whole(cluster, size):
    assignment = bytes(range(256)) * (size // 256)
    handler = Handler(SYNC_GROUP, lambda *_: SyncGroupResponse(assignment=assignment), None)
    async with (
        broker(with_versions([handler])) as port,
        cluster.peers() as peers,
    ):
        cluster.set(b1=port)
        for _ in range(2):
            answer = await peers.request(1, SYNC_GROUP, SyncGroupRequest(), timeout_ms=TIMEOUT_MS)
            assert answer.assignment == assignment


async def test_broker_that_is_not_in_the_metadata_is_not_available(cluster):
    async with cluster.peers() as peers:
        error = await refusal(peers)
        assert error.code is ErrorCode.BROKER_NOT_AVAILABLE
        assert "broker 1" in error.message


async def test_broker_that_does_not_listen_is_unreachable_until_it_does(cluster):
    acceptor = await TcpNetwork().listen("127.0.0.1", 0)
    acceptor.close()
    async with cluster.peers() as peers:
        cluster.set(b1=acceptor.port)
        error = await refusal(peers)
        assert error.code is ErrorCode.NETWORK_EXCEPTION
        assert f"127.0.0.1:{acceptor.port}" in error.message
        async with broker(heartbeat(lambda *_: HeartbeatResponse(error_code=1))) as port:
            cluster.set(b1=port)
            assert (await ask(peers)).error_code == 1


async def test_attempts_to_connect_are_spaced(cluster, autojump_clock):
    attempts = []

    class Nowhere:
        async def connect(self, host, port, *, tls=None):
            attempts.append(trio.current_time())
            raise ConnectionRefusedError("so")

    async with cluster.peers(Nowhere()) as peers:
        cluster.set(b1=9)
        for _ in range(9):
            await refusal(peers)
    gaps = [later - one for one, later in pairwise(attempts)]
    assert gaps == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1, 1, 1])


async def test_connecting_takes_no_longer_than_it_may(cluster, autojump_clock):
    class Blackhole:
        async def connect(self, host, port, *, tls=None):
            await trio.sleep_forever()

    async with cluster.peers(Blackhole(), connect_timeout_ms=3_000) as peers:
        cluster.set(b1=9)
        error = await refusal(peers, timeout_ms=60_000)
        assert trio.current_time() == pytest.approx(3)
        assert "no connection within 3000 ms" in error.message
        assert (await refusal(peers, timeout_ms=1_000)).code is ErrorCode.NETWORK_EXCEPTION
        assert trio.current_time() == pytest.approx(4)


async def test_endpoint_that_moves_is_followed_and_the_old_connection_closed(cluster):
    waiting = trio.Event()

    def park(request, context):
        waiting.set()
        return Deferred(trio.sleep_forever)

    errors = []

    async def ask_in_vain():
        errors.append(await refusal(peers))

    async with (
        broker(heartbeat(park)) as first,
        broker(heartbeat(lambda *_: HeartbeatResponse(error_code=2))) as second,
        cluster.peers() as peers,
        trio.open_nursery() as nursery,
    ):
        cluster.set(b1=first)
        nursery.start_soon(ask_in_vain)
        await waiting.wait()
        cluster.set(b1=second)
        assert (await ask(peers)).error_code == 2
    assert [error.code for error in errors] == [ErrorCode.NETWORK_EXCEPTION]


async def test_broker_that_goes_ends_what_waits_for_it(cluster):
    waiting = trio.Event()

    def park(request, context):
        waiting.set()
        return Deferred(trio.sleep_forever)

    async with (
        broker(heartbeat(park)) as port,
        cluster.peers() as peers,
        trio.open_nursery() as nursery,
    ):
        cluster.set(b1=port)
        nursery.start_soon(refusal, peers)
        await waiting.wait()
        nursery.start_soon(refusal, peers)  # waits for its turn
        await trio.testing.wait_all_tasks_blocked()
        cluster.set(b1=None)


async def test_broker_that_moves_while_it_is_connected_to_is_not_taken_for_the_other(cluster):
    connecting, go_on = trio.Event(), trio.Event()

    class Slow(TcpNetwork):
        async def connect(self, host, port, *, tls=None):
            connecting.set()
            await go_on.wait()
            return await super().connect(host, port)

    async with (
        broker(heartbeat(lambda *_: HeartbeatResponse())) as port,
        cluster.peers(Slow()) as peers,
        trio.open_nursery() as nursery,
    ):
        cluster.set(b1=port)
        nursery.start_soon(refusal, peers)
        await connecting.wait()
        cluster.set(b1=1)
        go_on.set()


async def test_silent_connection_is_not_trusted(cluster, autojump_clock):
    network = CountingNetwork()
    async with (
        broker(heartbeat(lambda *_: HeartbeatResponse())) as port,
        cluster.peers(network, idle_max_ms=60_000) as peers,
    ):
        cluster.set(b1=port)
        for idle_s in (0, 30, 50, 70):
            await trio.sleep(idle_s)
            await ask(peers)
    assert network.connected == 2


async def test_cancelled_question_leaves_nobody_else_with_its_answer(cluster):
    def handle(request, context):
        async def wait():
            await trio.sleep(0.02)
            return HeartbeatResponse(error_code=int(request.group_id))

        return Deferred(wait)

    async with broker(heartbeat(handle)) as port, cluster.peers() as peers:
        cluster.set(b1=port)
        await ask(peers, "1")
        with trio.move_on_after(0.005) as scope:
            await ask(peers, "2")
        assert scope.cancelled_caught
        assert (await ask(peers, "3")).error_code == 3


def answer_to(header, *, error_code=0, correlation_id=None, keys=((12, 0, 4), (18, 0, 4))):
    """Return the framed answer to an ApiVersions or a Heartbeat."""
    api, response = HEARTBEAT, HeartbeatResponse(error_code=error_code)
    if header.api_key == API_VERSIONS.key:
        entries = [ApiVersion(api_key=k, min_version=a, max_version=b) for k, a, b in keys]
        api = API_VERSIONS
        response = ApiVersionsResponse(error_code=error_code, api_keys=entries)
    version = header.api_version
    correlation_id = header.correlation_id if correlation_id is None else correlation_id
    data = encode_response_header(api, version, correlation_id=correlation_id)
    data += b"".join(api.encode_response(version, response))
    return len(data).to_bytes(4, "big") + data


GARBAGE = {
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "negative size": b"\xff\xff\xff\xff",
    "size beyond the limit": b"\x7f\xff\xff\xff" + bytes(100),
    "half a size": b"\0\0",
    "half a frame": b"\0\0\0\x64half",
    "half a long frame": b"\0\x0f\0\0" + bytes(20_000),
    "empty frame": bytes(4),
    "other correlation id": bytes([0, 0, 0, 7, 9, 9, 9, 9, 0, 0, 0]),
    "nothing": b"",
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize("when", ["at once", "later"])
async def test_broker_that_answers_nonsense_is_left_and_tried_again(cluster, garbage, when):
    def behave(header, count):
        if count == 1 and (when == "at once" or header.api_key == HEARTBEAT.key):
            return [garbage, CLOSE]
        return [answer_to(header)]

    async with strange_broker(behave) as port, cluster.peers() as peers:
        cluster.set(b1=port)
        error = await refusal(peers)
        assert error.code is ErrorCode.NETWORK_EXCEPTION
        assert error.message.startswith(f"HEARTBEAT to broker 1 at 127.0.0.1:{port}: ")
        assert (await ask(peers)).error_code == 0


async def test_more_bytes_than_the_answer_are_an_error(cluster):
    def behave(header, count):
        return [answer_to(header) + b"more"]

    async with strange_broker(behave) as port, cluster.peers() as peers:
        cluster.set(b1=port)
        assert "4 bytes more than the answer" in (await refusal(peers)).message


async def test_silence_ends_with_the_timeout(cluster):
    def behave(header, count):
        is_silent = count == 1 and header.api_key != API_VERSIONS.key
        return [] if is_silent else [answer_to(header)]

    async with strange_broker(behave) as port, cluster.peers() as peers:
        cluster.set(b1=port)
        assert "no answer within 50 ms" in (await refusal(peers, timeout_ms=50)).message
        assert (await ask(peers)).error_code == 0


async def test_answer_that_comes_in_pieces_is_put_together(cluster):
    def behave(header, count):
        return [bytes([byte]) for byte in answer_to(header)]

    async with strange_broker(behave) as port, cluster.peers() as peers:
        cluster.set(b1=port)
        assert (await ask(peers)).error_code == 0


class TestVersions:
    """Brokers are updated one after another."""

    @pytest.mark.parametrize(("keys", "chosen"), [(((12, 0, 2),), 2), (((12, 3, 9),), 4)])
    async def test_highest_common_version_is_taken(self, cluster, keys, chosen):
        seen = []

        def behave(header, count):
            seen.append((header.api_key, header.api_version))
            return [answer_to(header, keys=keys)]

        async with strange_broker(behave) as port, cluster.peers() as peers:
            cluster.set(b1=port)
            await ask(peers)
            await ask(peers)
        assert seen == [(18, 0), (12, chosen), (12, chosen)]

    @pytest.mark.parametrize("keys", [((12, 5, 9),), ((11, 0, 4),)])
    async def test_no_common_version_is_said_at_once(self, cluster, keys):
        def behave(header, count):
            return [answer_to(header, keys=keys)]

        async with strange_broker(behave) as port, cluster.peers() as peers:
            cluster.set(b1=port)
            for _ in range(2):
                error = await refusal(peers)
                assert error.code is ErrorCode.UNSUPPORTED_VERSION

    async def test_broker_that_does_not_tell_is_taken_to_be_as_this_one(self, cluster):
        def behave(header, count):
            code = ErrorCode.UNSUPPORTED_VERSION if header.api_key == API_VERSIONS.key else 0
            return [answer_to(header, error_code=code)]

        async with strange_broker(behave) as port, cluster.peers() as peers:
            cluster.set(b1=port)
            assert (await ask(peers)).error_code == 0


def test_limits_follow_the_settings_of_the_broker():
    settings = peer_settings(
        load_config(
            overrides={
                "node.id": "3",
                "replica.fetch.response.max.bytes": "1000",
                "socket.request.max.bytes": "200",
                "connections.max.idle.ms": "60000",
            }
        )
    )
    assert settings.client_id == "broker-3"
    assert settings.listener == "PLAINTEXT"
    assert settings.response_max_bytes == 1_200
    assert settings.idle_max_ms == 30_000
    assert settings.connect_timeout_ms == 10_000
    never = peer_settings(load_config(overrides={"connections.max.idle.ms": "-1"}))
    assert never.idle_max_ms == -1


class FakePeers:
    """Answers with what the script says for each broker asked: an error code, or a KafkaError."""

    def __init__(self, *script):
        self.script = list(script)
        self.asked = []

    async def request(self, broker_id, api, message, *, timeout_ms, channel):
        self.asked.append((broker_id, trio.current_time(), timeout_ms, channel))
        await trio.lowlevel.checkpoint()
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, ErrorCode) and step is not ErrorCode.NOT_CONTROLLER:
            raise KafkaError(step)
        return HeartbeatResponse(error_code=step)


class TestController:
    @staticmethod
    def client(cluster, peers):
        client = ControllerClient(peers, lambda: cluster.image, channel="isr")
        cluster.subscribers.append(client.on_changes)
        return client

    @staticmethod
    async def ask(client, timeout_ms=10_000):
        return await client.request(HEARTBEAT, HeartbeatRequest(), timeout_ms=timeout_ms)

    async def test_who_is_controller_is_asked(self, cluster):
        peers = FakePeers(27)
        cluster.set(controller_id=3)
        assert (await self.ask(self.client(cluster, peers))).error_code == 27
        assert [(asked[0], asked[3]) for asked in peers.asked] == [(3, "isr")]

    @pytest.mark.parametrize(
        "failure",
        [
            ErrorCode.NOT_CONTROLLER,
            ErrorCode.NETWORK_EXCEPTION,
            ErrorCode.BROKER_NOT_AVAILABLE,
        ],
    )
    async def test_it_is_asked_again_less_and_less_often(self, cluster, failure, autojump_clock):
        peers = FakePeers(failure)
        cluster.set(controller_id=3)
        with pytest.raises(KafkaError) as caught:
            await self.ask(self.client(cluster, peers), timeout_ms=5_000)
        assert caught.value.code is failure
        times = [asked[1] for asked in peers.asked]
        assert times == pytest.approx([0, 0.05, 0.15, 0.35, 0.75, 1.55, 2.55, 3.55, 4.55])
        assert [asked[2] for asked in peers.asked][:2] == [5_000, 4_950]

    async def test_new_controller_is_asked_at_once(self, cluster, autojump_clock):
        peers = FakePeers(ErrorCode.NOT_CONTROLLER, 0)
        cluster.set(controller_id=3)
        client = self.client(cluster, peers)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.ask, client)
            await trio.testing.wait_all_tasks_blocked()
            cluster.set(controller_id=4)
        assert [asked[0] for asked in peers.asked] == [3, 4]
        assert trio.current_time() == 0

    async def test_one_that_was_elected_during_the_question_is_asked_at_once(self, cluster):
        class Electing(FakePeers):
            async def request(self, broker_id, *args, **kwargs):
                cluster.set(controller_id=4)
                return await super().request(broker_id, *args, **kwargs)

        peers = Electing(ErrorCode.NOT_CONTROLLER, 0)
        cluster.set(controller_id=3)
        await self.ask(self.client(cluster, peers))
        assert [asked[0] for asked in peers.asked] == [3, 4]

    async def test_election_is_waited_for(self, cluster, autojump_clock):
        peers = FakePeers(0)
        client = self.client(cluster, peers)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.ask, client)
            await trio.sleep(2)
            cluster.set(controller_id=4)
        assert [asked[:2] for asked in peers.asked] == [(4, 2)]
        cluster.set(controller_id=-1)
        with pytest.raises(KafkaError) as caught:
            await self.ask(client)
        assert caught.value.code is ErrorCode.NOT_CONTROLLER

    async def test_controller_too_old_for_the_question_is_not_asked_again(self, cluster):
        peers = FakePeers(ErrorCode.UNSUPPORTED_VERSION)
        cluster.set(controller_id=3)
        with pytest.raises(KafkaError):
            await self.ask(self.client(cluster, peers))
        assert len(peers.asked) == 1
