# SPDX-License-Identifier: BSD-3-Clause
"""The hook `trace`: its file, its log, and how files are merged."""

import contextlib
import json
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ofipy

TIMEOUT = 20
MESSAGES = 6
PROVIDERS = ["shm", "tcp", "link", "link:shm+tcp"]

# What each kind of event has besides ph, pid and tid.
FIELDS = {
    "M": {"name", "args"},
    "X": {"ts", "dur", "cat", "name", "args"},
    "i": {"ts", "s", "cat", "name", "args"},
    "s": {"ts", "cat", "name", "id"},
    "f": {"ts", "cat", "name", "id", "bp"},
}

SERVER = """
import sys
import ofipy

with ofipy.open(provider=sys.argv[1]) as ep:
    print(ep.address, flush=True)
    for number in range(int(sys.argv[2])):
        message = ep.trecv(tag=number).wait(timeout=20)
        ep.tsend(message.data, message.source, tag=number).wait(timeout=20)
"""

Event = dict[str, Any]


def events_of(file: Path) -> list[Event]:
    document = json.loads(file.read_text())
    assert document["otherData"]["schema"] == 1
    assert document["otherData"]["boot"]
    for event in document["traceEvents"]:
        assert event.keys() == FIELDS[event["ph"]] | {"ph", "pid", "tid"}, event
    return list(document["traceEvents"])


def arrows(events: list[Event], phase: str) -> set[str]:
    ids = [event["id"] for event in events if event["ph"] == phase]
    assert len(ids) == len(set(ids))
    return set(ids)


def slices(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event["ph"] == "X" and event["name"] == name]


def payload(number: int) -> bytes:
    """Sizes for every protocol of a transport."""
    return bytes((0, 8, 6000, 300_000)[number % 4])


def failure(request: ofipy.Request) -> ofipy.FabricError | None:
    """How it ended."""
    with contextlib.suppress(ofipy.FabricError):
        request.wait(timeout=TIMEOUT)
    return request.exception()


def talk_to_itself(hooks: str, provider: str = "shm") -> None:
    with ofipy.open(provider=provider, hooks=hooks, progress="auto") as ep:
        me = ep.insert(ep.address)
        for number in range(MESSAGES):
            receive = ep.trecv_into(bytearray(len(payload(number))), tag=number)
            ep.tsend(payload(number), me, tag=number).wait(timeout=TIMEOUT)
            receive.wait(timeout=TIMEOUT)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_slice_for_each_operation(provider: str, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    talk_to_itself(f"trace:file={file}", provider)
    events = events_of(file)
    for name in ("tsend", "trecv"):
        found = slices(events, name)
        assert [each["args"]["tag"] for each in found] == [
            hex(number) if number else "0" for number in range(MESSAGES)
        ]
        assert [each["args"]["bytes"] for each in found] == [len(payload(n)) for n in range(MESSAGES)]
        assert all(each["args"]["error"] is None and each["args"]["peer"] == 0 for each in found)
    assert len(slices(events, "arrival")) == MESSAGES
    assert arrows(events, "s") == arrows(events, "f")
    assert len(arrows(events, "s")) == MESSAGES


@pytest.mark.parametrize("move", [Path.unlink, lambda file: file.rename(file.with_suffix(".old"))])
def test_a_file_that_was_taken_away_is_written_anew(tmp_path: Path, move: Callable[[Path], object]) -> None:
    file = tmp_path / "trace.json"
    for _ in range(2):
        talk_to_itself(f"trace:file={file}")
        assert len(slices(events_of(file), "tsend")) == MESSAGES
        move(file)


def test_slices_of_a_track_do_not_overlap_and_tracks_have_names(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    with ofipy.open(provider="shm", hooks=f"trace:file={file}", progress="auto") as ep:
        me = ep.insert(ep.address)
        receives = [ep.trecv(tag=number) for number in range(MESSAGES)]
        ofipy.wait_all([ep.tsend(b"x", me, tag=number) for number in range(MESSAGES)], timeout=TIMEOUT)
        ofipy.wait_all(receives, timeout=TIMEOUT)
    events = events_of(file)
    ends: dict[int, float] = {}
    for event in events:
        if event["ph"] == "X":
            assert event["ts"] > ends.get(event["tid"], 0), event
            ends[event["tid"]] = event["ts"] + event["dur"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names.keys() == ends.keys()
    assert {"endpoint 1 (shm)", "endpoint 1 (shm): arrivals, peers", "endpoint 1 (shm) +1"} <= set(
        names.values()
    )


def test_endpoints_of_a_process_share_a_file(tmp_path: Path) -> None:
    for _ in range(3):
        talk_to_itself(f"trace:file={tmp_path}/%p.json")
    (file,) = tmp_path.iterdir()
    assert file.name == f"{os.getpid()}.json"
    assert len(slices(events_of(file), "tsend")) == 3 * MESSAGES


def test_errors_and_what_never_left(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    hooks = f"trace:file={file};fault:nth=2,operation=tsend"
    with ofipy.open(provider="shm", hooks=hooks, progress="auto") as ep:
        me = ep.insert(ep.address)
        sends = [ep.tsend(b"x", me, tag=number) for number in range(6)]
        assert [failure(send) is None for send in sends] == [True, False] * 3
        for number in (0, 2, 4):
            ep.trecv(tag=number).wait(timeout=TIMEOUT)
    events = events_of(file)
    assert [each["args"]["error"] for each in slices(events, "tsend")] == [None, "Input/output error"] * 3
    # Only what left is counted, so that both ends count alike.
    assert len(arrows(events, "s")) == 3
    assert arrows(events, "s") == arrows(events, "f")


def test_after_a_loss_both_ends_count_anew(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    hooks = f"trace:file={file};fault:lose=1,operation=send"
    with ofipy.open(provider="tcp", hooks=hooks) as ep:
        me = ep.insert(ep.address)
        for number in range(3):
            ep.tsend(b"x", me, tag=number).wait(timeout=TIMEOUT)
            ep.trecv(tag=number).wait(timeout=TIMEOUT)
            assert isinstance(failure(ep.send(b"x", me)), ofipy.PeerLost)
    events = events_of(file)
    assert len(arrows(events, "s")) == 3
    assert arrows(events, "s") == arrows(events, "f")
    assert Counter(event["name"] for event in events)["peer lost"] >= 3


def test_beyond_the_limit_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "trace.json"
    talk_to_itself(f"trace:file={file},limit=4")
    assert len([event for event in events_of(file) if event["ph"] in "Xi"]) == 4
    (record,) = (record for record in caplog.records if record.name == "ofipy.trace")
    assert record.levelno == logging.WARNING
    assert "events of endpoint 1, which had more than limit=4" in record.getMessage()


def test_the_log_tells_of_operations(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "ofipy"):
        talk_to_itself("trace")
    lines = [record.getMessage() for record in caplog.records if record.name == "ofipy.trace"]
    assert sum("tsend, peer 0" in line and "done after" in line for line in lines) == MESSAGES
    assert sum("arrival from peer 0" in line for line in lines) == MESSAGES


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ofipy.InvalidArgument, match=r"hook trace: file=.*/none/t.json cannot be written"):
        ofipy.open(provider="shm", hooks=f"trace:file={tmp_path}/none/t.json")


# ------------------------------------------------------------------------------------------------------------ merging


def merge(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", "ofipy", "trace", "merge", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("provider", PROVIDERS)
def test_arrows_between_processes_meet_when_merged(provider: str, tmp_path: Path) -> None:
    environment = os.environ | {"OFIPY_HOOKS": f"trace:file={tmp_path}/%p.json"}
    command = [sys.executable, "-P", "-c", SERVER, provider, str(MESSAGES)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        with ofipy.open(provider=provider, hooks=f"trace:file={tmp_path}/%p.json") as ep:
            peer = ep.insert(address)
            for number in range(MESSAGES):
                ep.tsend(payload(number), peer, tag=number).wait(timeout=TIMEOUT)
                ep.trecv(tag=number).wait(timeout=TIMEOUT)
        assert server.wait(TIMEOUT) == 0
    one, other = (tmp_path / f"{pid}.json" for pid in (os.getpid(), server.pid))
    assert arrows(events_of(one), "s") == arrows(events_of(other), "f")
    assert arrows(events_of(other), "s") == arrows(events_of(one), "f")
    done = merge(one, other, "-o", tmp_path / "all.json")
    assert done.returncode == 0, done.stderr
    assert (
        f"2 processes, {len(events_of(tmp_path / 'all.json'))} events, {2 * MESSAGES} arrows" in done.stderr
    )
    events = events_of(tmp_path / "all.json")
    assert {event["pid"] for event in events} == {os.getpid(), server.pid}
    sent = {event["id"]: event for event in events if event["ph"] == "s"}
    received = {event["id"]: event for event in events if event["ph"] == "f"}
    assert sent.keys() == received.keys()
    assert all(sent[id]["ts"] < received[id]["ts"] for id in sent)
    assert [event.get("ts", 0) for event in events] == sorted(event.get("ts", 0) for event in events)


def small(pid: int, boot: str, phase: str, id: str = "0x1") -> dict[str, Any]:
    event = {"ph": phase, "pid": pid, "tid": 1, "ts": 1.5, "cat": "message", "name": "message", "id": id}
    return {"otherData": {"schema": 1, "host": f"of {boot}", "boot": boot}, "traceEvents": [event]}


def test_ids_of_processes_are_kept_apart_and_lone_arrows_left_out(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.json" for number in range(3)]
    for file, phase, id in zip(files, "sfs", ("0x1", "0x1", "0x2"), strict=True):
        file.write_text(json.dumps(small(7, "one", phase, id)))
    done = merge(*files, "--output", files[0])
    assert done.returncode == 0, done.stderr
    events = json.loads(files[0].read_text())["traceEvents"]
    assert [(event["ph"], event["pid"]) for event in events] == [("s", 7), ("f", 8)]
    assert "Warning" not in done.stderr


def test_clocks_of_two_hosts_are_warned_of(tmp_path: Path) -> None:
    for boot in ("one", "two"):
        (tmp_path / boot).write_text(json.dumps(small(7, boot, "s")))
    done = merge(tmp_path / "one", tmp_path / "two", "-o", tmp_path / "all")
    assert done.returncode == 0
    assert "Warning: the files are of 2 hosts or boots (of one, of two)" in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no whole JSON document"),
        ("[]", "was not written by the hook trace"),
        ('{"otherData": {"host": "", "boot": ""}, "traceEvents": [{}]}', "was not written by the hook trace"),
    ],
)
def test_what_is_no_trace_is_named(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    file.write_text(text)
    done = merge(file, "-o", tmp_path / "all.json")
    assert done.returncode == 1
    assert words in done.stderr
    assert not (tmp_path / "all.json").exists()
    assert "cannot be read" in merge(tmp_path / "none", "-o", tmp_path / "all.json").stderr
