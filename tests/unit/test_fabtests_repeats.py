# SPDX-License-Identifier: BSD-3-Clause
"""What ``fabtests compare --repeat`` tells of several runs of the same rows."""

import io
import json
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from fabtests.compare import bars, command
from fabtests.compare.case import Line, Round
from fabtests.compare.cases import CASES
from fabtests.compare.command import run
from fabtests.compare.repeats import gather_repeats, print_repeats
from fabtests.compare.report.output import Output
from fabtests.compare.runner import PeerResult, Row
from fabtests.compare.start import Start
from fabtests.compare.statistics import Summary, ratio


def summary(value: float, spread: float = 0.0) -> Summary:
    return Summary(value=value, spread=spread, p99=None, p999=None)


def row(mode: str, own: float, **peers: Summary) -> Row:
    """Of 1 MiB, MB/s."""
    results = {name: PeerResult(each, *ratio(summary(own), each), "1.0") for name, each in peers.items()}
    return Row(CASES["shm-bandwidth"], Line(mode, 1 << 20), summary(own), results)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[Row]]:
    monkeypatch.setattr(bars, "this_processor", lambda: "Intel(R) Xeon(R) Processor")
    return [
        [row("array", 80.0, attach=summary(100.0), mpi4py=summary(80.0)), row("domain", 300.0)],
        [row("array", 120.0, attach=summary(120.0, 0.3), mpi4py=summary(100.0)), row("domain", 100.0)],
        [row("array", 100.0, mpi4py=summary(50.0)), row("domain", 200.0)],
    ]


def test_each_row_has_its_range_over_the_runs(runs: list[list[Row]]) -> None:
    array, domain = (each.document() for each in gather_repeats(runs))
    assert (array["case"], array["mode"], array["bytes"], array["runs"]) == (
        "shm-bandwidth",
        "array",
        1 << 20,
        3,
    )
    assert array["value"] == {"median": 100.0, "min": 80.0, "max": 120.0}
    assert array["ratios"] == {
        "attach": {"median": 0.8, "min": 0.8, "max": 0.8},  # a spread forbade the second, it missed the third
        "mpi4py": {"median": 1.2, "min": 1.0, "max": 2.0},
    }
    assert array["best"] == {
        "peers": ["attach", "mpi4py"],
        "ratio": {"median": 1.4, "min": 0.8, "max": 2.0},
    }
    assert domain["value"] == {"median": 200.0, "min": 100.0, "max": 300.0}
    assert domain["best"] == {"peers": [], "ratio": None}
    assert domain["bars"] == {"met": 0, "judged": 0}


def test_bars_are_counted_over_the_runs() -> None:
    runs = [[row("array-rewritten", own, mpi4py=summary(100.0))] for own in (90.0, 95.0, 110.0)]
    (found,) = gather_repeats(runs)
    assert found.document()["bars"] == {"met": 2, "judged": 3}


def test_the_table_fits_a_narrow_terminal(runs: list[list[Row]]) -> None:
    text = io.StringIO()
    print_repeats(Console(file=text, width=80), gather_repeats(runs))
    lines = text.getvalue().splitlines()
    assert lines[0].strip() == "shm-bandwidth in 3 runs (MB/s)"
    assert lines[2].split() == ["array,", "1m", "100", "80", "120", "1.4", "0.8", "2", "1", "of", "2"]
    assert lines[3].split() == ["domain,", "1m", "200", "100", "300", "?", "?", "?", "-"]
    assert max(map(len, lines)) <= 80


class Played(Start):
    """A case whose processes start, and whose figures come from a list."""

    modes = ("open",)
    figures = (5.0, 1.0, 3.0)
    pairs: tuple[Any, ...] = ()

    def peer_cells(self, line: Line) -> dict[str, Any]:
        return {}

    def run(self, field: Any, cell: Any, count: int) -> Round:
        self.pairs += (field.pair(cell.entrant),)
        return Round(self.figures[len(self.pairs) - 1], np.zeros(0))


def test_every_run_has_new_processes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Played()
    monkeypatch.setattr(command, "CASES", {case.name: case})
    monkeypatch.setattr(command, "measure_handover", lambda cores: None)
    run(
        cases=None, rounds=1, modes=None, sizes=None, quick=False, as_json=True, output=Output(), repeat=3,
    )  # fmt: skip
    document = json.loads(capsys.readouterr().out)
    assert len(set(map(id, case.pairs))) == 3
    assert [each["ofipy"]["value"] for each in document["rows"]] == [3.0]  # of the last run
    assert document["repeats"][0]["value"] == {"median": 3.0, "min": 1.0, "max": 5.0}
    assert document["machine"]["processor"].startswith(document["machine"]["cpu"])


def test_one_run_says_nothing_of_repeats(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Played()
    monkeypatch.setattr(command, "CASES", {case.name: case})
    monkeypatch.setattr(command, "measure_handover", lambda cores: None)
    run(cases=None, rounds=1, modes=None, sizes=None, quick=False, as_json=True, output=Output())
    assert "repeats" not in json.loads(capsys.readouterr().out)
