"""Two lists of state batches become one (rule 419)."""

import itertools
import random

import pytest

from kafkalite.share.batches import NO_OFFSET, RecordState, StateBatch, combine

A, K, R = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED


def batch(first, last, count=1, state=A):
    return StateBatch(first, last, count, state)


@pytest.mark.parametrize(
    ("so_far", "new", "combined"),
    [
        ([], [], []),
        ([batch(0, 4)], [], [batch(0, 4)]),
        ([batch(0, 4)], [batch(5, 9)], [batch(0, 9)]),
        ([batch(0, 4)], [batch(6, 9)], [batch(0, 4), batch(6, 9)]),
        ([batch(0, 4)], [batch(5, 9, 2)], [batch(0, 4), batch(5, 9, 2)]),
        ([batch(0, 9)], [batch(0, 9, 1, K)], [batch(0, 9, 1, K)]),
        ([batch(0, 9)], [batch(3, 5, 2)], [batch(0, 2), batch(3, 5, 2), batch(6, 9)]),
        ([batch(0, 9, 2)], [batch(3, 5)], [batch(0, 9, 2)]),
        ([batch(0, 9, 2)], [batch(3, 12)], [batch(0, 9, 2), batch(10, 12)]),
        ([batch(0, 9)], [batch(3, 12, 1, R)], [batch(0, 2), batch(3, 12, 1, R)]),
        ([batch(0, 9)], [batch(3, 9, 1, R)], [batch(0, 2), batch(3, 9, 1, R)]),
        ([batch(0, 4, 2)], [batch(0, 9)], [batch(0, 4, 2), batch(5, 9)]),
        ([batch(0, 4)], [batch(0, 9, 2)], [batch(0, 9, 2)]),
    ],
)
def test_winner_is_who_delivered_more_then_who_is_further(so_far, new, combined):
    assert combine(so_far, new, NO_OFFSET) == combined


def test_what_lies_below_the_start_goes():
    assert combine([batch(0, 4), batch(8, 9, 2)], [batch(5, 7, 3)], 6) == [
        batch(6, 7, 3),
        batch(8, 9, 2),
    ]
    assert combine([batch(0, 4)], [], 5) == []


@pytest.mark.parametrize("seed", range(300))
def test_every_offset_has_what_its_best_batch_says(seed):
    rng = random.Random(seed)
    lists = []
    for _ in range(2):
        batches = []
        for _ in range(rng.randrange(6)):
            first = rng.randrange(30)
            batches.append(
                batch(first, first + rng.randrange(8), rng.randint(1, 3), rng.choice((A, K, R)))
            )
        lists.append(batches)
    start = rng.choice((NO_OFFSET, rng.randrange(30)))
    combined = combine(*lists, start)
    if sum(map(len, lists)) < 2:
        return
    said = {}
    for each in (*lists[0], *lists[1]):
        for offset in range(max(each.first_offset, start), each.last_offset + 1):
            said[offset] = max(said.get(offset, (0, 0)), each[2:])
    assert {
        offset: each[2:]
        for each in combined
        for offset in range(each.first_offset, each.last_offset + 1)
    } == said
    for before, after in itertools.pairwise(combined):
        assert before.last_offset < after.first_offset
