# SPDX-License-Identifier: BSD-3-Clause
"""``python -m tests.paired``: what it compares, and which variables each side gets."""

import sys
from pathlib import Path

import pytest

from tests import paired

# A side that answers each order with the value of a variable.
ANSWER = """
import json, os, sys
for line in sys.stdin:
    print(json.dumps({"value": os.environ.get(json.loads(line)["name"])}), flush=True)
"""


def test_two_environments_of_one_build() -> None:
    options = paired.parse(["--before", "OFIPY_STATS=no", "--now", "OFIPY_STATS=yes", "--bound", "1.02"])
    assert options.base is None
    assert (dict(options.before), dict(options.now)) == ({"OFIPY_STATS": "no"}, {"OFIPY_STATS": "yes"})
    assert paired.parse(["main"]).base == "main"
    assert paired.parse(["--wheel", "x.whl"]).wheel == Path("x.whl")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--before", "A=1", "--now", "A=1"],
        ["--before", "A"],
        ["--now", "=1"],
        ["main", "--wheel", "x.whl"],
        ["main", "--build", "--built"],
    ],
    ids=str,
)
def test_what_compares_nothing_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        paired.parse(words)
    assert ended.value.code == 2


def test_what_was_built_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "FOLDER", tmp_path)
    options = paired.parse(["--built", "--now", "A=1"])
    with pytest.raises(SystemExit, match="--build makes it"):
        paired.get_sides(options)
    python = tmp_path / "present" / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert paired.get_sides(options) == (python, python)


def test_each_side_has_its_own_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "side.py"
    script.write_text(ANSWER)
    monkeypatch.setattr(paired, "SIDE", script)
    monkeypatch.setenv("OFIPY_STATS", "of both")
    python = Path(sys.executable)
    with paired.Side(python, {"OFIPY_STATS": "no"}) as before, paired.Side(python, {}) as now:
        assert before.take({"name": "OFIPY_STATS"})["value"] == "no"
        assert now.take({"name": "OFIPY_STATS"})["value"] == "of both"
