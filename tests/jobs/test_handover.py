# SPDX-License-Identifier: BSD-3-Clause
"""Keys that a launcher hands out as plain text: refused where everything is to be encrypted, and told otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from started import launcher, run

from ofipy.cli.key import new_key
from tests.certificates import Authority, is_openssl_there

SAID = "hands keys out unencrypted"

# Both ranks claim to be hosts of their own.
PROGRAM = """
import logging, os
os.environ["OFIPY_HOST_ID"] = os.environ["PMI_RANK"]
os.environ["OFIPY_INTERFACE"] = "lo"
logging.basicConfig(format="%(message)s")
import ofipy
job = ofipy.job()
print("joined" + "." * len(job.hosts))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path / "program.py"


def start(program: Path, **environment: str) -> tuple[int, str, str]:
    ran = run(
        launcher("mpiexec.hydra"), "-n", "2", sys.executable, "-P", str(program), environment=environment
    )
    return ran.returncode, ran.stdout, ran.stderr


def test_required_refuses_such_a_key(program: Path) -> None:
    code, joined, told = start(program, OFIPY_ENCRYPTION="required")
    assert code != 0
    assert "joined" not in joined
    assert SAID in told
    assert "OFIPY_AUTH_KEY_FILE" in told


def test_a_key_file_is_no_such_key(program: Path, tmp_path: Path) -> None:
    new_key(tmp_path / "key")
    code, joined, told = start(
        program, OFIPY_ENCRYPTION="required", OFIPY_AUTH_KEY_FILE=str(tmp_path / "key")
    )
    assert code == 0, told
    assert joined.count("joined..") == 2
    assert SAID not in told


@pytest.mark.skipif(not is_openssl_there(), reason="the command openssl is not installed")
def test_auto_tells_once_where_it_encrypts(program: Path, tmp_path: Path) -> None:
    certified = Authority(tmp_path / "authority").sign("peer").environment()
    for environment, times in ((certified, 1), ({}, 0)):
        code, joined, told = start(program, OFIPY_ENCRYPTION="auto", **environment)
        assert code == 0, told
        assert joined.count("joined..") == 2
        assert told.count(SAID) == times
