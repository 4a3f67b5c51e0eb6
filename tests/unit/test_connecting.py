# SPDX-License-Identifier: BSD-3-Clause
"""The code that connects does not grow unnoticed, and nobody adds states beside those that there are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import connecting


@pytest.fixture(scope="module")
def rows() -> list[connecting.Owner]:
    return connecting.owners(connecting.PAGE.read_text())


def test_the_page_names_every_owner(rows: list[connecting.Owner]) -> None:
    assert [row.name for row in rows] == ["core", "meet", "proof", "link", "rdm", "tcp", "shm", "verbs"]
    assert all(row.files for row in rows)
    # No file is counted twice.
    files = [path for row in rows for path in row.files]
    assert len(files) == len(set(files))


def test_the_lines_are_bounded(rows: list[connecting.Owner]) -> None:
    total = sum(row.lines for row in rows)
    assert total <= connecting.LINES, "see python -m tests.unit.connecting"
    assert total > connecting.LINES - 600, (
        "there are fewer lines now: lower LINES of tests/unit/connecting.py"
    )


def test_the_later_files_are_among_them(rows: list[connecting.Owner]) -> None:
    assert len(connecting.later(rows)) == 2 * len(connecting.LATER)


def test_one_enumeration_for_the_peer_one_for_meeting_and_one_for_a_wire(
    rows: list[connecting.Owner],
) -> None:
    assert {name: owner for name, (owner, _) in connecting.states(rows).items()} == {
        "ofp_peer_state": "core",
        "ofpi_meet_state": "meet",
        "ofpi_rdm_path_state": "rdm",
        "tcp_state": "tcp",
        "verbs_path_state": "verbs",
    }
    assert connecting.unnamed(rows) == []


def test_no_further_state_is_repeated(rows: list[connecting.Owner]) -> None:
    assert set(connecting.repeated(rows)) == connecting.REPEATED


def test_a_row_that_names_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"core: no file is native/nothing\.c"):
        connecting.owners("| core | `native/nothing.c` | |\n", tmp_path)


def test_states_without_their_prefix(tmp_path: Path) -> None:
    path = tmp_path / "states.h"
    path.write_text("enum a_state { A_UP, /* up, really */\n A_OVER = 3, };\nenum b_mode { B_ON };\n")
    assert connecting.enumerations(path) == {"a_state": ["UP", "OVER"]}
