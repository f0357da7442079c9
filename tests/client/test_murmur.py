import pytest

from kafkalite.client.murmur import murmur2


# Values of org.apache.kafka.common.utils.Utils.murmur2, signed there.
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hash_is_that_of_the_java_client(data, expected):
    assert murmur2(data) == expected & 0xFFFFFFFF
