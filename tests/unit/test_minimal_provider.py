# SPDX-License-Identifier: BSD-3-Clause
"""The provider that the guide quotes whole: it is built, found by an entry point, and keeps what it declares.

Built with the headers of earlier times (tests/abi) it works as well.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ofipy

TESTS = Path(__file__).resolve().parents[1]
SOURCE = TESTS / "minimal_provider" / "loopback.c"
HEADERS = {"present": ofipy.get_include()} | {
    folder.name: str(folder) for folder in sorted((TESTS / "abi").glob("provider_*"))
}

PROGRAM = """
import sys

import numpy as np

import ofipy

with ofipy.open(provider="loopback") as ep:
    me = ep.insert(ep.address)
    # Short and long, matched before and after they arrive, each cut to its receive.
    for size in 0, 1, 256, 257, 1_000_000:
        sent, got = np.arange(size, dtype=np.uint8), np.zeros(size, np.uint8)
        request = ep.trecv_into(got, tag=size)
        ep.tsend(sent, me, tag=size).wait(timeout=30)
        assert request.wait(timeout=30).source == me
        assert (sent == got).all()
        late = ep.tsend(sent, me, tag=size, remote_data=7)
        message = ep.trecv(tag=size).wait(timeout=30)
        assert (bytes(message.data), message.remote_data) == (bytes(sent), 7)
        late.wait(timeout=30)
    # More than the core keeps, if it is told so: payload stays with the sender, announcements wait for room.
    waiting = [ep.tsend(bytes([number]) * 200, me, tag=number) for number in range(100)]
    for number in sorted(range(100), reverse=sys.argv[1] == "last first"):
        assert bytes(ep.trecv(tag=number).wait(timeout=30).data) == bytes([number]) * 200
    ofipy.wait_all(waiting, timeout=30)
    with ofipy.open(provider="loopback") as other:
        try:
            ep.tsend(b"", ep.insert(other.address), tag=1).wait(timeout=30)
        except ofipy.FabricError as error:
            assert "reaches itself only" in str(error), error
        else:
            sys.exit("an endpoint reached another")
    # What was never received ends with its endpoint.
    long = ep.tsend(bytes(1000), me, tag=1)
    ep.close(linger=0)
try:
    long.wait(timeout=30)
except ofipy.FabricError:
    print("done")
"""


@pytest.fixture(scope="module", params=HEADERS)
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the provider as an installed package would."""
    folder = tmp_path_factory.mktemp("site")
    compiler = [
        *os.environ.get("CC", "cc").split(),
        "-std=c11",
        "-D_GNU_SOURCE",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    include = [f"-I{HEADERS[request.param]}", "-shared", "-fPIC", "-fvisibility=hidden"]
    subprocess.run([*compiler, *include, str(SOURCE), "-o", str(folder / "_loopback.abi3.so")], check=True)
    text = 'from ofipy import Provider\n\nprovider = Provider(name="loopback", module="_loopback")\n'
    (folder / "loopback.py").write_text(text)
    (folder / "loopback-0.1.dist-info").mkdir()
    (folder / "loopback-0.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: loopback\nVersion: 0.1\n"
    )
    point = "[ofipy.providers]\nloopback = loopback:provider\n"
    (folder / "loopback-0.1.dist-info" / "entry_points.txt").write_text(point)
    return folder


@pytest.mark.parametrize(
    ("order", "bounds"),
    [
        ("last first", {}),
        ("last first", {"OFIPY_UNEXPECTED_SIZE": "2k"}),
        ("first first", {"OFIPY_UNEXPECTED_SIZE": "2k", "OFIPY_ANNOUNCEMENTS": "60"}),
    ],
)
def test_the_program_runs_over_it(installed: Path, order: str, bounds: dict[str, str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, order],
        env=os.environ | bounds | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr


def test_nothing_but_the_entry_is_exported(installed: Path) -> None:
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", "-P", str(installed / "_loopback.abi3.so")],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert [line.split()[0] for line in listing.stdout.splitlines()] == ["ofp_provider_entry"]


@pytest.mark.parametrize("entry", ["refuses the core", "hands out its table"])
def test_a_provider_of_another_abi_is_refused_by_its_name(
    entry: str, installed: Path, tmp_path: Path
) -> None:
    headers, site = tmp_path / "headers", tmp_path / "site"
    shutil.copytree(ofipy.get_include(), headers)
    types = headers / "ofipy" / "types.h"
    text = types.read_text()
    types.write_text(text.replace("#define OFP_PROVIDER_ABI 4", "#define OFP_PROVIDER_ABI 5"))
    assert text != types.read_text()
    source = SOURCE.read_text()
    if entry == "hands out its table":
        source = source.replace("core->abi == OFP_PROVIDER_ABI ?", "core ?")
        assert source != SOURCE.read_text()
    (tmp_path / "loopback.c").write_text(source)
    shutil.copytree(installed, site)
    command = [
        *os.environ.get("CC", "cc").split(),
        "-std=c11",
        "-D_GNU_SOURCE",
        f"-I{headers}",
        "-shared",
        "-fPIC",
    ]
    subprocess.run(
        [*command, str(tmp_path / "loopback.c"), "-o", str(site / "_loopback.abi3.so")], check=True
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", "import ofipy; ofipy.open(provider='loopback')"],
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    said = ran.stderr.splitlines()[-1]
    assert said.startswith("ofipy.ProviderUnavailable: ")
    what = "another ABI of providers than this ofipy has, 4.1", "ABI 5 of providers, and this ofipy has 4.1"
    assert f"loopback: it was built for {what[entry != 'refuses the core']}; build it again" in said
