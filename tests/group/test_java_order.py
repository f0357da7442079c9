"""Java's hash codes and the order of its HashMap."""

from kafkalite.group.java_order import copied_numbers, hash_map_order, string_hash


def test_hash_codes_are_javas():
    assert string_hash("") == 0
    assert string_hash("a") == 97
    assert string_hash("polygenelubricants") == 0x80000000
    assert string_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


def test_surrogates_count_as_java_has_them():
    assert string_hash("\ud83d") == 0xD83D


def test_keys_are_ordered_by_bucket_and_then_as_they_came():
    # Hash codes 97, 98, ... in 16 buckets; "q" is 113, of the bucket of "a".
    assert hash_map_order(["q", "b", "a"], string_hash) == ["q", "a", "b"]


def test_high_bits_are_mixed_into_the_bucket():
    assert hash_map_order([0x10000, 0], lambda key: key) == [0, 0x10000]


def test_a_map_grows_to_hold_three_keys_for_four_buckets():
    twelve = list(range(16, 28))
    assert hash_map_order([*twelve, 0], lambda key: key) == [0, *twelve]
    assert hash_map_order([17, 0], lambda key: key) == [0, 17]
    assert hash_map_order([16, 0], lambda key: key) == [16, 0]


def test_a_capacity_is_rounded_up_to_a_power_of_two():
    keys = [4, 2, 0]
    assert hash_map_order(keys, lambda key: key, capacity=3) == [4, 0, 2]
    assert hash_map_order(keys, lambda key: key, capacity=5) == [0, 2, 4]


def test_numbers_below_16_are_in_order_and_others_where_their_bucket_is():
    assert copied_numbers([]) == ()
    assert copied_numbers([3, 15, 0]) == (0, 3, 15)
    assert copied_numbers([17, 16, 2]) == (16, 17, 2)
