# SPDX-License-Identifier: BSD-3-Clause
"""Settings: precedence, files, mistakes. Each case runs in a process of its own, since settings are read once."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import ofipy
from ofipy._base.config import flatten
from ofipy._base.spelling import _letters_between

SHOW = """
import json, logging, sys, warnings
logging.basicConfig(stream=sys.stderr, format="%(name)s|%(message)s")
import ofipy
try:
    ofipy.getinfo(explain=True)
    values = {each.name: (each.value, each.source) for each in ofipy.parameters()}
    print(json.dumps(values))
except ofipy.FabricError as error:
    print(json.dumps({"error": [type(error).__name__, str(error)]}))
"""


def show(tmp_path: Path, **environment: str) -> tuple[dict[str, list[str]], str]:
    """Parameters of a fresh process, and what it logged."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("OFIPY_", "XDG_CONFIG"))
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", SHOW],
        env=clean | {"XDG_CONFIG_HOME": str(tmp_path / "xdg")} | environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout), done.stderr


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_precedence(tmp_path: Path) -> None:
    values, _ = show(tmp_path)
    assert values["OFIPY_SPIN_TIME"][1] == "default"
    write(tmp_path / "xdg" / "ofipy" / "config.toml", 'spin_time = 7\ncq_size = "1k"\n')
    values, _ = show(tmp_path)
    assert values["OFIPY_SPIN_TIME"] == ["7", "file"]
    assert values["OFIPY_CQ_SIZE"] == ["1k", "file"]
    named = write(tmp_path / "named.toml", "spin-time = 8\n")
    values, _ = show(tmp_path, OFIPY_CONFIG=named)
    assert values["OFIPY_SPIN_TIME"] == ["8", "file"]
    assert values["OFIPY_CQ_SIZE"][1] == "default"
    values, _ = show(tmp_path, OFIPY_CONFIG=named, OFIPY_SPIN_TIME="9")
    assert values["OFIPY_SPIN_TIME"] == ["9", "environment"]


def test_working_directory_is_never_read(tmp_path: Path) -> None:
    for name in ("ofipy.toml", "config.toml", "ofipy/config.toml", ".config/ofipy/config.toml"):
        write(tmp_path / name, "spin_time = 1\n")
    assert show(tmp_path)[0]["OFIPY_SPIN_TIME"][1] == "default"


OPEN = """
import logging, sys
logging.basicConfig(stream=sys.stderr, format="%(name)s|%(message)s")
import ofipy
for _ in range(2):
    ofipy.open(provider="shm").close()
"""


def misspelt(**environment: str) -> list[str]:
    """What a program that opens two endpoints logs of its settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OFIPY_")}
    command = [sys.executable, "-P", "-c", OPEN]
    done = subprocess.run(
        command, env=clean | environment, capture_output=True, text=True, timeout=60, check=True
    )
    return [line for line in done.stderr.splitlines() if line.startswith("ofipy.config|")]


def test_a_misspelt_variable_is_told_once_with_what_is_meant() -> None:
    told = misspelt(OFIPY_PROVIDR="tcp", OFIPY_SPIN_TIMES="1", OFIPY_CQ_SIZE="1k")
    assert told == [
        f"ofipy.config|the environment has {name}, which nothing reads; did you mean {near}?"
        for name, near in (("OFIPY_PROVIDR", "OFIPY_PROVIDER"), ("OFIPY_SPIN_TIMES", "OFIPY_SPIN_TIME"))
    ]


def test_other_variables_are_no_affair_of_the_log() -> None:
    # Far from every name; a job's own; and one that a provider which is not loaded may have.
    far = {"OFIPY_COLOUR_OF_TABLES": "red", "OFIPY_JOB_RANK": "0", "OFIPY_VERBS_BOUNCE_SIZE": "1"}
    assert misspelt(**far) == []


@pytest.mark.parametrize(
    ("one", "other", "letters"),
    [
        ("", "", 0),
        ("A", "", 1),
        ("SPIN", "SPIN", 0),
        ("SPNI", "SPIN", 2),
        ("SIZE", "SEIZED", 2),
        ("AB", "CDE", 3),
    ],
)
def test_letters_between_names(one: str, other: str, letters: int) -> None:
    assert _letters_between(one, other) == _letters_between(other, one) == letters


def test_info_lists_every_unknown_variable() -> None:
    environment = os.environ | {"OFIPY_PROVIDR": "tcp", "OFIPY_COLOUR": "red", "OFIPY_JOB_RANK": "0"}
    command = [sys.executable, "-P", "-m", "ofipy", "info", "--env"]
    run = partial(subprocess.run, env=environment, capture_output=True, text=True, timeout=60, check=True)
    unknown = {each["name"]: each["near"] for each in json.loads(run([*command, "--json"]).stdout)["unknown"]}
    assert unknown["OFIPY_PROVIDR"] == "OFIPY_PROVIDER"
    assert unknown["OFIPY_COLOUR"] == ""
    assert not {"OFIPY_JOB_RANK", "OFIPY_PROVIDER"} & unknown.keys()
    table = " ".join(run(command).stdout.split())
    assert "OFIPY_PROVIDR is set, and nothing reads it; did you mean OFIPY_PROVIDER?" in table
    assert "OFIPY_COLOUR is set, and nothing reads it" in table


def test_unknown_names_warn_with_the_near_match(tmp_path: Path) -> None:
    named = write(tmp_path / "c.toml", "spin_tme = 3\ncolour = true\n")
    values, log = show(tmp_path, OFIPY_CONFIG=named)
    assert "unknown setting spin_tme; did you mean spin_time?" in log
    assert "unknown setting colour\n" in log
    assert values["OFIPY_SPIN_TIME"][1] == "default"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spin_time = ", "cannot read"),
        ('spin_time = "quick"', "spin_time = 'quick'; 0 to 1000000 is meant"),
        ("spin_time = [1]", r"spin_time = [1]; text, a whole number"),
        ("spin_time = 1.5", "spin_time = 1.5"),
    ],
)
def test_mistakes_in_the_file_are_errors(tmp_path: Path, text: str, said: str) -> None:
    answer, _ = show(tmp_path, OFIPY_CONFIG=write(tmp_path / "c.toml", text))
    assert answer["error"][0] == "ConfigError"
    assert said in answer["error"][1]


def test_missing_named_file_is_an_error(tmp_path: Path) -> None:
    answer, _ = show(tmp_path, OFIPY_CONFIG="/does/not/exist.toml")
    assert answer["error"][0] == "ConfigError"
    assert "/does/not/exist.toml" in answer["error"][1]


def test_unknown_provider_names_the_known_ones(tmp_path: Path) -> None:
    known = ", ".join(report.provider for report in ofipy.getinfo(explain=True))
    answer, _ = show(tmp_path, OFIPY_PROVIDER="carrier-pigeon")
    assert answer["error"][0] == "ProviderUnavailable"
    assert "'carrier-pigeon'" in answer["error"][1]
    assert known in answer["error"][1]


def test_flatten() -> None:
    assert flatten({"a": 1, "b-c": True, "t": {"x": "y", "u": {"z": False}}}) == {
        "A": "1",
        "B_C": "true",
        "T_X": "y",
        "T_U_Z": "false",
    }
