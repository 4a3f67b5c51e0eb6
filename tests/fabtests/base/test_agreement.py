# SPDX-License-Identifier: BSD-3-Clause
"""Options that only the client has, and options that differ."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from fabtests.base.agreement import MARK, describe, differences, read_options
from fabtests.base.options import Options
from fabtests.base.program import Failed
from fabtests.base.sizes import Sizes

Pair = Callable[..., tuple["subprocess.Popen[str]", "subprocess.Popen[str]"]]


@pytest.mark.parametrize(
    ("program", "provider", "server", "client"),
    [
        ("rdm_tagged_pingpong", "shm", "", "-S 64 -I 10"),
        ("rdm_pingpong", "tcp", "-v", "-S l:8,64k -I 10 -w 3 -v"),
        ("rdm_pingpong", "shm", "", "-S 2m -I 10 -r"),
        ("rdm_pingpong", "tcp", "-E", "-S 100k -I 10 -E"),
        ("rdm_cntr_pingpong", "shm", "-S 8 -E", "-S 8 -I 10 -E"),
        ("rdm_pingpong", "shm", "-b", "-S 100k -I 10 -b -w 0"),
        ("rdm_bw", "tcp", "", "-S 64 -I 100 -W 7"),
        ("rma_bw", "shm", "", "-S 64 -I 100 -W 7 -o read"),
        ("rdm_bw_mt", "shm", "", "-S 64 -I 100"),
        ("unexpected_msg", "tcp", "", "-S 4096 -I 10"),
        ("multi_ep", "shm", "", "-S 4096"),
        # Programs of one size, whose first receive has to have room for the client's.
        ("cq_data", "tcp", "", "-S 200k"),
        ("cq_data", "tcp", "-E", "-S 200k -E"),
        ("av_xfer", "tcp", "-t counter -b", "-S 200k -t counter -b"),
    ],
)
def test_a_server_takes_the_options_that_it_was_not_given(
    pair: Pair, program: str, provider: str, server: str, client: str
) -> None:
    for process in pair(program, provider, server, client):
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said


@pytest.mark.parametrize(
    ("program", "provider", "meeting"),
    [
        ("rdm_tagged_pingpong", "shm", ""),
        ("rdm_bw", "tcp", ""),
        ("rdm_pingpong", "tcp", "-E"),
        ("rdm_pingpong", "shm", "-b"),
        ("msg_pingpong", "tcp", ""),
        ("msg_bw", "tcp", ""),
    ],
)
def test_options_that_differ_are_named_on_both_sides(
    pair: Pair, program: str, provider: str, meeting: str
) -> None:
    sides = pair(program, provider, f"-S 64 -I 20 {meeting}", f"-S 64 -I 10 {meeting}")
    for process, numbers in zip(sides, ("20 here, 10 there", "10 here, 20 there"), strict=True):
        said, _ = process.communicate(timeout=30)
        assert process.returncode == 1, said
        assert f"options differ between the sides: -I ({numbers});" in said.replace("\n", " ")


def test_connected_endpoints_need_the_same_on_both_sides(pair: Pair) -> None:
    for process in pair("msg_pingpong", "tcp", "", "-S 64 -I 10"):
        said, _ = process.communicate(timeout=30)
        assert process.returncode == 1, said
        assert "options differ between the sides: -I (" in said.replace("\n", " ")


def options(**values: Any) -> Options:
    return Options(
        **{"ep_type": "rdm", "iterations": 1, "completion": "queue", "sizes": sizes(None)} | values
    )


def sizes(text: str | None) -> Sizes:
    return Sizes.parse(text, default=64)


def test_sizes_are_compared_and_not_their_text() -> None:
    theirs = read_options(describe(options(sizes=sizes("1k"))) + b"\0behind", default=64)
    assert theirs is not None
    assert not differences(options(sizes=sizes("l:1024")), theirs)
    assert differences(options(), theirs) == "-S (not given here, 1k there)"


def test_a_list_of_sizes_that_is_too_long_does_not_travel() -> None:
    assert describe(options(sizes=sizes("l:" + ",".join(map(str, range(1, 400)))))) == b""


def described(**values: Any) -> bytes:
    known = json.loads(describe(options())[len(MARK) :])
    known["values"] |= {f"-{letter}": value for letter, value in values.items()}
    return json.dumps(known).encode()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"{",
        b"[" * 900,
        b"\xff",
        b"[]",
        b'{"values":{}}',
        b'{"values":[],"given":[]}',
        described(I="10"),
        described(I=0),
        described(I=True),
        described(w=-1),
        described(W=None),
        described(v=1),
        described(o=[]),
        described(S=[64]),
        described(S="many"),
        described().replace(b'"given": []', b'"given": 1'),
        described().replace(b'"given": []', b'"given": [[]]'),
    ],
)
def test_options_that_no_side_sends_end_a_side_with_a_sentence(said: bytes) -> None:
    with pytest.raises(Failed, match="options that cannot be read"):
        read_options(MARK + said, default=64)


def test_options_that_can_be_read() -> None:
    theirs = read_options(MARK + described(w=0, I=None, S="all", new=[1]), default=64)
    assert theirs is not None
    assert theirs.values["-S"] == sizes("all")
    assert read_options(b"a name of a C program", default=64) is None
