# SPDX-License-Identifier: BSD-3-Clause
"""The page of bars has a row for each, and as the code has it."""

from pathlib import Path

import pytest

from fabtests.compare.bars import BARS, Bar

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "bars.md"


def rows() -> set[tuple[str, ...]]:
    """Case, mode, size, what it is beside, and the bar; as the table shows them."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {tuple(cell.strip().strip("`") for cell in line.split("|")[1:6]) for line in lines}


@pytest.mark.parametrize(
    "bar", BARS, ids=lambda bar: f"{bar.case}-{bar.mode}-{bar.size}-{bar.key or bar.peer}"
)
def test_every_bar_stands_on_its_page(bar: Bar) -> None:
    bound = f"{'≥' if bar.at_least else '≤'} {bar.limit:.3g}"
    assert (bar.case, bar.mode, str(bar.size), bar.key or bar.peer, bound) in rows()


def test_the_page_has_no_other_bars() -> None:
    assert len([row for row in rows() if row[0] in {bar.case for bar in BARS}]) == len(BARS)
