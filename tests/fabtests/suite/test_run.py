# SPDX-License-Identifier: BSD-3-Clause
"""The suite: what passed, failed and did not run, here and over something that stands in for ssh."""

import json
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fabtests.base.program import names
from fabtests.suite.entries import SETS
from fabtests.suite.hosts import Hosts
from fabtests.suite.multinode_coll import TESTS
from fabtests.suite.outcome import Outcome
from fabtests.suite.pair import run_entry
from fabtests.suite.run import chosen, run_all

PROGRAM = [sys.executable, "-P", "-m", "fabtests"]


def fabtests(*arguments: str, code: int = 0) -> str:
    result = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout


def test_every_entry_is_of_a_program() -> None:
    known = {*names(), "multinode", "multinode_coll"}
    assert {line.split()[0] for lines in SETS.values() for line in lines} <= known
    assert {line.split()[0] for line in SETS["all"]} == known


def test_entries_are_chosen_by_expressions() -> None:
    assert chosen(["rdm", "rdm -U", "msg"], only="^rdm", exclude="-U") == ["rdm"]


def test_one_document_of_what_ran(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    only = "^(rdm|msg|dom_test)$"
    printed = fabtests("run", "quick", "-p", "shm", "-f", only, "--json", "--junit", str(junit))
    document = json.loads(printed)
    assert (document["passed"], document["failed"], document["not_run"]) == (2, 0, 1)
    assert {each["name"]: each["result"] for each in document["entries"]} == {
        "dom_test": "passed",
        "msg": "not_run",
        "rdm": "passed",
    }
    assert "endpoint type msg" in next(
        each["reason"] for each in document["entries"] if each["name"] == "msg"
    )
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "0", "1")


def test_what_does_not_run_fails_a_strict_run() -> None:
    fabtests("run", "functional", "-p", "shm", "-f", "^msg$", "--strict", code=1)


def test_a_test_that_takes_too_long_has_failed() -> None:
    outcome = run_entry("flood -T 30", "shm", hosts=Hosts(), limit=3)
    assert outcome.result == "failed"
    assert "within 3 s" in outcome.reason


def test_both_sides_over_a_stand_in_for_ssh(tmp_path: Path) -> None:
    log, shell = tmp_path / "log", tmp_path / "shell"
    shell.write_text(f'#!/bin/sh\necho "$1" >>{log}\nshift\nexec sh -c "$*"\n')
    shell.chmod(0o755)
    hosts = Hosts(server="here", client="there", shell=str(shell))
    for entry in ("rdm_pingpong -I 5 -S 64", "rdm_pingpong -I 5 -S 64 -b"):
        assert run_entry(entry, "shm", hosts=hosts, limit=60).result == "passed"
    assert log.read_text().split() == ["here", "there"] * 2


def test_an_interruption_ends_what_runs() -> None:
    def interrupt(outcome: Outcome) -> None:
        assert outcome.entry == "getinfo_test"
        raise KeyboardInterrupt

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_all(["getinfo_test", "flood -T 40"], "shm", hosts=Hosts(), limit=60, jobs=2, tell=interrupt)
    assert time.monotonic() - begin < 20


def test_multinode_counts_the_transfers_of_each_way() -> None:
    options = ["-n", "3", "-p", "link", "-x", "ring", "-x", "gather", "-I", "4", "--json"]
    # The launcher says whose line it is.
    printed = "\n".join(line.removeprefix("[0] ") for line in fabtests("multinode", *options).splitlines())
    told = json.loads(printed)
    assert (told["provider"], told["processes"], told["kind"], told["bytes"]) == ("link", 3, "msg", 1024)
    assert [(row["pattern"], row["transfers"]) for row in told["patterns"]] == [("ring", 3), ("gather", 3)]
    assert [len(row["repetitions"]) for row in told["patterns"]] == [4, 4]
    assert told["transfers"] == 24
    assert told["ways"] == {"shm": 24}


def test_every_collective_has_a_row() -> None:
    printed = fabtests("multinode_coll", "-n", "3", "-p", "shm", "-I", "2", "-S", "100", "--json")
    told = json.loads("\n".join(line.removeprefix("[0] ") for line in printed.splitlines()))
    assert (told["program"], told["processes"], told["bytes"]) == ("multinode_coll", 3, 96)
    assert [row["test"] for row in told["tests"]] == list(TESTS)
    assert all(len(row["usec"]) == 2 for row in told["tests"])
