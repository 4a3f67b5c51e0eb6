# SPDX-License-Identifier: BSD-3-Clause
"""Sizes as libfabric's programs have them, which both sides of a test must agree on."""

import pytest

from fabtests.base.sizes import ALL_SIZES, DEFAULT_SIZES, Sizes


def test_all_are_powers_of_two_and_what_is_between_them() -> None:
    assert len(ALL_SIZES) == 46
    assert ALL_SIZES[:8] == (1, 2, 3, 4, 6, 8, 12, 16)
    assert ALL_SIZES[-3:] == (4 << 20, 6 << 20, 8 << 20)
    assert list(ALL_SIZES) == sorted(ALL_SIZES)
    assert set(DEFAULT_SIZES) < set(ALL_SIZES)


@pytest.mark.parametrize(
    ("text", "sizes", "longest"),
    [
        (None, DEFAULT_SIZES, 8 << 20),
        ("all", ALL_SIZES, 8 << 20),
        ("64", (64,), 64),
        ("0", (0,), 0),
        ("l:64,8,16", (64, 8, 16), 16),  # as there, the last one
        ("r:10,5,20", (10, 15, 20), 20),
    ],
)
def test_buffers_follow_from_sizes(text: str | None, sizes: tuple[int, ...], longest: int) -> None:
    assert Sizes.parse(text, default=None) == Sizes(sizes, longest)


def test_a_program_of_one_size() -> None:
    assert Sizes.parse(None, default=256) == Sizes((256,), 256)
