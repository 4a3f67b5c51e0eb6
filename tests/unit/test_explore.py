# SPDX-License-Identifier: BSD-3-Clause
"""``tests.explore``: what it needs no build for. ``.ci/run`` runs the command itself."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.explore.build import Build
from tests.explore.faults import ANSWERS
from tests.explore.report import add_to_report, make_document, print_failure
from tests.explore.scenario import CannotRun, Decision, Outcome, Scenario, parse_seed
from tests.explore.scenarios import list_scenarios
from tests.explore.search import REPEATED, Search, Tally
from tests.explore.undone import apply_patch, list_undos, read_hunks

ROOT = Path(__file__).resolve().parents[2]


def test_every_undo_applies_and_names_its_scenarios(tmp_path: Path) -> None:
    names = {scenario.name for scenario in list_scenarios(Build())}
    for undo in list_undos("all"):
        assert undo.scenarios, undo.name
        assert set(undo.scenarios) <= names, undo.name
        for file in read_hunks(undo.path.read_text()):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, tmp_path / file)
        apply_patch(tmp_path, undo.path)


def test_an_undo_that_does_not_apply_is_an_error(tmp_path: Path) -> None:
    patch = tmp_path / "x.patch"
    patch.write_text("scenario: x\n\n--- a/x.c\n+++ b/x.c\n@@ -1,2 +1,2 @@\n int a;\n-int b;\n+int c;\n")
    source = tmp_path / "x.c"
    for text in ("int a;\nint d;\n", "int a;\nint b;\nint a;\nint b;\n"):
        source.write_text(text)
        with pytest.raises(CannotRun, match="does not apply"):
            apply_patch(tmp_path, patch)
        assert source.read_text() == text
    source.write_text("int a;\nint b;\n")
    apply_patch(tmp_path, patch)
    assert source.read_text() == "int a;\nint c;\n"


def test_a_search_stops_at_a_failure_and_says_how_to_see_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    class Third(Scenario):
        """Fails in its third run."""

        def runs(self, seed: int) -> int | None:
            return 5

        def run(self, seed: int, number: int, trace: Sequence[Decision] | None = None) -> Outcome:
            decisions = (Decision("T0", "recv", number, "fail EINTR"),)
            return Outcome(
                "lost message" if number == 2 else None, 10, 1, story=("T0 recv",), trace=decisions
            )

    scenario = Third("third", "faults")
    search = Search([scenario], 0xABC, stops_at_failure=True)
    search.run(60, workers=1)
    assert [(found.number, found.verdict) for found in search.failures] == [(2, "lost message")]
    print_failure(search.failures[0])
    said = capsys.readouterr().out
    assert "python -m tests.explore --scenario third --replay 00000abc:2" in said
    assert parse_seed("00000abc:2") == (0xABC, 2)
    document = make_document(search.seed, search.tallies.values(), search.failures, (), [scenario])
    assert json.loads(json.dumps(document))["scenarios"] == [
        {"name": "third", "schedules": 3, "steps": 30, "faults": 3}
    ]
    assert document["failures"][0]["trace"][0]["action"] == "fail EINTR"


def test_a_scenario_that_differs_when_repeated_is_a_failure() -> None:
    class Different(Scenario):
        """Has one step more each time."""

        made: int = 0

        def runs(self, seed: int) -> int | None:
            return None

        def run(self, seed: int, number: int, trace: Sequence[Decision] | None = None) -> Outcome:
            self.made += 1
            return Outcome(steps=self.made)

    search = Search([Different("different", "schedules")], 1, stops_at_failure=True)
    search.run(60, workers=1)
    assert search.failures[0].number == REPEATED - 1
    assert search.failures[0].verdict.startswith("not deterministic")


def test_reports_add_up(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    for seed in (1, 2):
        add_to_report(path, make_document(seed, [Tally("a", 10, 100, 3)], (), (), ()), 1.5)
    total = json.loads(path.read_text())
    assert total["seconds"] == 3.0
    assert total["seeds"] == ["00000001", "00000002"]
    assert total["scenarios"] == [{"name": "a", "schedules": 20, "steps": 200, "faults": 6}]


def test_answers_of_the_core_are_those_of_its_calls() -> None:
    """Each call that may answer something at any time is one that ofipy/requests makes."""
    calls = (ROOT / "ofipy" / "requests" / "core.h").read_text()
    for name in ANSWERS:
        assert f", {name}, (" in calls


def test_every_call_of_the_core_is_a_step() -> None:
    """Otherwise the replacement of the calls does not compile, which only a search would notice."""
    calls = re.findall(
        r"^    X\([^,]*, (\w+), ", (ROOT / "ofipy" / "requests" / "core.h").read_text(), re.MULTILINE
    )
    steps = (ROOT / "tests" / "explore" / "native" / "fault_calls.c").read_text()
    assert len(calls) > 20
    assert [name for name in calls if f", {name}," not in steps and f" step_{name}(" not in steps] == []
