# SPDX-License-Identifier: BSD-3-Clause
"""How the frames of a message are put into messages of ofipy."""

from __future__ import annotations

import pytest

from ofipy import InvalidArgument
from ofipy.dask import wire

BIG = 1 << 17


@pytest.mark.parametrize(
    ("sizes", "following"),
    [
        ([], []),
        ([0], []),
        ([10, 0, 20], []),
        ([BIG], [BIG]),
        ([BIG, 0, 0], [BIG]),
        ([0, BIG, 0, BIG], [BIG, BIG]),
        ([10, BIG, 20, 30], [BIG, 50]),
        ([10, BIG, 0, 20, BIG, 30], [BIG, 20, BIG, 30]),
        ([200] * 4000, [200 * 327] * 11 + [200 * 76]),
        ([40_000] * 3, [40_000] * 2),
    ],
)
def test_small_neighbours_share_a_message(sizes: list[int], following: list[int]) -> None:
    frames = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    head, rest, total = wire.pack_frames(frames)
    read = wire.read_head(memoryview(head))
    assert read is not None
    assert [len(each) for each in rest] == read.following == following
    assert total == len(head) + sum(following)
    assert read.frames([memoryview(each) for each in rest]) == frames


def test_a_frame_of_its_own_message_is_not_copied() -> None:
    frame = bytearray(BIG)
    _, rest, _ = wire.pack_frames([b"", frame, b""])
    assert rest[0].obj is frame


def test_heads_that_say_other_sizes_than_they_have() -> None:
    head, _, _ = wire.pack_frames([b"abc"])
    for damaged in (head[:-1], head + b"d", head[:5]):
        with pytest.raises(InvalidArgument, match="a head of"):
            wire.read_head(memoryview(damaged))
