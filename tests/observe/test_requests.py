"""The journal's bounds, and what it never keeps."""

from time import perf_counter
from types import SimpleNamespace

import pytest

from benchmarks.process import frame_of
from kafkalite.api.handler import EncodedAnswer, Handler
from kafkalite.log.region import FileRegion
from kafkalite.network.in_flight import InFlightRequest
from kafkalite.observe.entries import ENTRY_BYTES, OBJECT_BYTES, SizeOnly
from kafkalite.observe.rendering import entry_json, message_json
from kafkalite.observe.requests import LARGE_BYTES, NOTES_MIN, Requests
from kafkalite.wire.apis import APIS
from kafkalite.wire.header import RequestHeader, encode_response_header
from kafkalite.wire.messages import fetch, share_fetch
from kafkalite.wire.messages.fetch import (
    FETCH,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafkalite.wire.messages.metadata import METADATA, MetadataRequest, MetadataResponse

CONTEXT = SimpleNamespace(now_ms=5, connection_id=1, peer_address=("127.0.0.1", 9))


def exchange(api=METADATA, request=None, result=None, *, chunks=(b"x",), **timing):
    """Return a request that was answered; its frame is real bytes unless it is given."""
    version = api.versions[1]
    request = request or api.request.record()
    made = InFlightRequest(
        Handler(api=api, handle=None, refuse=None),
        RequestHeader(api.key, version, 1, "client"),
        request,
        result or api.response.record(),
    )
    made.frame = timing.get("frame")
    if made.frame is None:
        made.frame = frame_of(api, version, request)[4:]
    made.began_s = timing.get("began_s", 0.0)
    made.end_s = timing.get("end_s", perf_counter())
    made.handled_s = timing.get("handled_s", 0.0)
    made.chunks, made.context, made.at_ms = [*chunks], CONTEXT, 5
    return made


def encoded(api, response):
    """Return an answer as it is sent."""
    body = b"".join(api.encode_response(api.versions[1], response))
    body = encode_response_header(api, api.versions[1], correlation_id=1) + body
    return [len(body).to_bytes(4, "big") + body]


FRAME_BYTES = len(exchange().frame)


def test_keeps_the_latest_within_its_bytes():
    requests = Requests(max_bytes=10 * (ENTRY_BYTES + FRAME_BYTES + 1), slow_ms=-1)
    for _ in range(25):
        requests.on_answered(exchange())
        assert requests.held_bytes <= requests.max_bytes
    assert [number for number, _ in requests.latest()] == [*range(25, 15, -1)]
    assert requests.get(15) is None
    assert requests.get(16) is not None
    assert requests.get(26) is None
    assert requests.count == 25


def test_what_is_found_by_number_is_what_has_it():
    requests = Requests(max_bytes=1_000_000, slow_ms=-1)
    made = [exchange() for _ in range(5 * NOTES_MIN + 3)]
    for each in made:
        requests.on_answered(each)
    latest = [(number, entry.exchange) for number, entry in requests.latest()]
    assert latest == [*zip(range(len(made), 0, -1), reversed(made), strict=True)]
    assert [requests.get(number).exchange for number, _ in latest] == made[::-1]


def test_large_answers_count():
    """Clients ask for the metadata of all topics again and again."""
    requests = Requests(max_bytes=1_000_000, slow_ms=-1)
    for _ in range(25):
        requests.on_answered(exchange(chunks=[bytes(50_000)]))
        assert requests.held_bytes <= requests.max_bytes
    kept = len([*requests.latest()])
    assert kept == 1_000_000 // (ENTRY_BYTES + FRAME_BYTES + 50_000)


def test_an_answer_that_takes_long_to_decode_is_kept_as_it_was():
    requests = Requests(max_bytes=10_000_000, slow_ms=-1)
    answer = MetadataResponse(cluster_id="c")
    requests.on_answered(exchange(result=answer, chunks=[bytes(LARGE_BYTES + 1)]))
    ((_, entry),) = requests.latest()
    assert entry.response is answer
    assert entry.response_bytes == LARGE_BYTES + 1
    assert requests.held_bytes == ENTRY_BYTES + FRAME_BYTES + OBJECT_BYTES * (LARGE_BYTES + 1)


@pytest.mark.parametrize("kind", ["calm", "hasty"])
def test_messages_are_decoded_for_who_looks(kind):
    requests = Requests(max_bytes=1_000_000, slow_ms=-1)
    asked = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    answer = MetadataResponse(cluster_id="c", controller_id=7)
    made = exchange(request=asked, result=answer, chunks=encoded(METADATA, answer))
    if kind == "calm":
        requests.on_pause()
    requests.on_answered(made)
    ((_, entry),) = requests.latest()
    assert (made.request, made.result) == (None, None), "the journal holds bytes alone"
    assert entry.request == asked
    assert entry.response == answer
    assert entry.raw == (bytes(made.frame), made.chunks[0])


@pytest.mark.parametrize("module", [fetch, share_fetch], ids=["Fetch", "ShareFetch"])
def test_no_file_is_kept_open_by_records_that_were_fetched(module, tmp_path):
    api = fetch.FETCH if module is fetch else share_fetch.SHARE_FETCH
    requests = Requests(max_bytes=1_000_000, slow_ms=-1)
    (tmp_path / "log").write_bytes(bytes(100))
    with (tmp_path / "log").open("rb") as file:
        data = module.PartitionData(records=FileRegion(file, 0, 100))
        topic = (
            module.FetchableTopicResponse if module is fetch else module.ShareFetchableTopicResponse
        )(partitions=[data])
        answer = api.response.record(responses=[topic])
        made = exchange(api, result=answer, chunks=[b"head", data.records])
        requests.on_answered(made)
    ((_, entry),) = requests.latest()
    assert entry.response_bytes == 104
    assert all(isinstance(each, SizeOnly) for each in made.chunks)
    (kept,) = entry.response.responses[0].partitions
    assert not isinstance(kept.records, FileRegion)
    assert len(kept.records) == 100


def test_one_that_is_too_large_is_not_kept():
    requests = Requests(max_bytes=5_000, slow_ms=-1)
    requests.on_answered(exchange(frame=bytes(1_000_000)))
    assert [*requests.latest()] == []
    assert requests.held_bytes == 0


def test_counts_without_a_journal():
    requests = Requests(max_bytes=0, slow_ms=-1)
    requests.on_answered(exchange(chunks=[b"x" * 7]))
    (counts,) = requests.apis.values()
    assert (counts.name, counts.count, counts.response_bytes) == ("Metadata", 1, 7)
    assert [*requests.latest()] == []


def test_slow_requests_are_logged(caplog):
    caplog.set_level("INFO", "kafkalite.requests")
    requests = Requests(max_bytes=0, slow_ms=10)
    requests.on_answered(exchange(chunks=[b"x" * 7]))  # began when the machine did
    assert "slow request: METADATA" in caplog.text
    assert requests.slow_count == 1


class TestWithPauses:
    """Work that can wait until nobody waits for an answer."""

    @pytest.fixture
    def settled(self, monkeypatch):
        """Requests of which nothing was slow, and how many were counted each time."""
        requests, counts = Requests(max_bytes=1_000_000, slow_ms=10), []
        settle = requests.settle
        monkeypatch.setattr(
            requests, "settle", lambda: (counts.append(len(requests._notes)), settle())
        )
        requests.on_pause()
        return requests, counts

    def answered(self, requests, count, **timing):
        timing = {"began_s": perf_counter() + 100.0, **timing}
        for _ in range(count):
            requests.on_answered(exchange(**timing))

    def test_it_is_left_for_one(self, settled):
        requests, counts = settled
        self.answered(requests, NOTES_MIN + 1)
        assert counts == []
        requests.on_pause()
        assert counts == [NOTES_MIN + 1]

    def test_few_are_left_for_a_later_one(self, settled):
        requests, counts = settled
        self.answered(requests, NOTES_MIN - 1)
        requests.on_pause()
        requests.on_pause()
        assert counts == []
        assert requests.count == NOTES_MIN - 1, "but not for who looks"

    @pytest.mark.parametrize(
        "special", [{"began_s": 0.0}, {"frame": bytes(LARGE_BYTES + 1)}], ids=["slow", "large"]
    )
    def test_slow_and_large_ones_wait_for_no_others(self, settled, special):
        requests, counts = settled
        self.answered(requests, 1)
        requests.on_pause()
        self.answered(requests, 1, **special)
        self.answered(requests, 1)
        requests.on_pause()
        assert counts == [3]

    def test_listeners_wait_for_none(self, settled):
        requests, counts = settled
        end = requests.subscribe(lambda number, entry: None)
        self.answered(requests, 2)
        assert counts == [0, 1, 1]
        end()
        self.answered(requests, 2)
        assert counts == [0, 1, 1]


@pytest.mark.parametrize("name", ["SASL_AUTHENTICATE", "ALTER_USER_SCRAM_CREDENTIALS"])
def test_passwords_are_not_kept(name):
    api = next((api for api in APIS.values() if api.key.name == name), None)
    if api is None:
        pytest.fail(f"{name} is not declared any more")
    requests = Requests(max_bytes=10_000, slow_ms=-1)
    requests.on_answered(exchange(api, chunks=[b"secret"]))
    ((number, entry),) = requests.latest()
    assert entry.raw is None
    found = entry_json(number, entry, whole=True)
    assert (found["request"], found["response"]) == (None, None)


def test_listeners_hear_of_each_until_they_end():
    requests, heard = Requests(max_bytes=10_000, slow_ms=-1), []
    end = requests.subscribe(lambda number, entry: heard.append(number))
    requests.on_answered(exchange())
    end()
    requests.on_answered(exchange())
    assert heard == [1]


def test_long_messages_are_cut():
    assert len(message_json([1] * 1_000)) == 101
    found = message_json(b"\xff" * 10_000)
    assert found["size_bytes"] == 10_000
    assert len(found["hex"]) < 3_000


def test_answer_to_a_large_fetch_is_kept_without_its_records_and_its_bytes():
    data = PartitionData(partition_index=3, error_code=6, records=b"x" * 100)
    response = FetchResponse(
        error_code=5, responses=[FetchableTopicResponse(topic="t", partitions=[data])]
    )
    made = exchange(FETCH, FetchRequest(), EncodedAnswer([b"y"], response))
    requests = Requests(max_bytes=10_000, slow_ms=-1)
    requests.on_answered(made)
    shown = entry_json(1, requests.get(1), whole=True)
    assert shown["errors"] == ["LEADER_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER"]
    (topic,) = shown["response"]["responses"]
    assert topic["partitions"][0]["records"] == {"size_bytes": 100}
