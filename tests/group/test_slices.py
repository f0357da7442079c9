"""Work in slices gives what the whole gives."""

from hypothesis import given
from hypothesis import strategies as st

from kafkalite.group.java_order import hash_map_order, string_hash
from kafkalite.group.slices import Computation, complete, sliced_hash_map_order


def counting(count):
    for _ in range(count):
        yield 2
    return "all"


def test_work_goes_on_until_its_units_are_used_up():
    computation = Computation(counting(5))
    assert not computation.advance(4)
    assert not computation.advance(5)
    assert computation.advance(1)
    assert computation.is_done
    assert computation.outcome == "all"


def test_nothing_is_done_for_nothing():
    assert not Computation(counting(0)).advance(0)
    assert complete(counting(0)) == "all"


@given(st.lists(st.text(), unique=True), st.sampled_from([1, 16, 100]))
def test_the_order_of_a_hash_map_is_the_same(keys, capacity):
    found = complete(sliced_hash_map_order(keys, string_hash, capacity=capacity))
    assert found == hash_map_order(keys, string_hash, capacity=capacity)


def test_hashes_of_many_keys_are_computed_in_steps():
    assert len([*sliced_hash_map_order(map(str, range(1000)), string_hash)]) > 10
