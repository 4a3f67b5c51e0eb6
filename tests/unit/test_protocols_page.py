# SPDX-License-Identifier: BSD-3-Clause
"""The table of versions in ``docs/reference/protocols.md`` beside the constants that the program has."""

import re
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
PAGE = TREE / "docs" / "reference" / "protocols.md"

PYTHON = r'^.*VERSIONS = (?:b"\w+", )?Versions\((\d+)(?:, (\d+))?\)$'
"""The newest version, and how many before it."""

# By the first words of a row: where its version stands, and the text of the row.
CONSTANTS = {
    "shared memory": ("providers/shm/memory/layout.h", r"^#define SHM_VERSION (\d+)$", "{}"),
    "rdm, over verbs": ("native/rdm/transfer/packet.h", r"^#define OFPI_RDM_VERSION (\d+)$", "{}"),
    "proof of a key over verbs": (
        "providers/verbs/packet/prove.h",
        r"^#define VERBS_PROOF_VERSION (\d+)$",
        "{}",
    ),
    "extension of libfabric's": (
        "providers/tcp/stream/wire.h",
        r"^#define TCP_EXTENSION_VERSION (\d+)$",
        "{}",
    ),
    "libfabric's tcp protocol": ("providers/tcp/stream/wire.h", r"^#define TCP_WIRE_VERSION (\d+)$", "{}"),
    "rendezvous of a job": ("ofipy/jobs/greeting.py", PYTHON, "{}"),
    "exchange of a job's": ("ofipy/jobs/dissemination.py", PYTHON, "{}"),
    "departures of a job's": ("ofipy/jobs/departures.py", PYTHON, "{}"),
    "Dask's connections": ("ofipy/dask/wire.py", PYTHON, "{}"),
    "executor's messages": ("ofipy/executor/wire.py", PYTHON, "{}"),
    "plan of a ping-pong": ("ofipy/pingpong/plan.py", PYTHON, "{}"),
    "messages of `ofipy ping`": ("ofipy/ping/wire.py", PYTHON, "{}"),
    "addresses as bytes": ("ofipy/_discovery/address.py", r"^VERSION = (\d+)$", "reads 1 to {0}, writes {0}"),
    "remote regions as bytes": ("ofipy/_memory/remote.py", PYTHON, "reads and writes 1 to {}"),
    "objects with their": ("ofipy/_operations/objects.py", PYTHON, "{}"),
    "providers' binary": (
        "native/include/ofipy/types.h",
        r"^#define OFP_PROVIDER_ABI (\d+)\n#define OFP_PROVIDER_ABI_MINOR (\d+)$",
        "{}.{}",
    ),
}
WITHOUT_A_VERSION = "several lanes"


def rows() -> dict[str, str]:
    """What the page says that this release speaks, by protocol."""
    table = PAGE.read_text().split("## What may change")[0]
    cells = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {row[0].removeprefix("| "): row[2].strip() for row in cells[1:]}


def test_every_row_is_checked() -> None:
    unknown = [name for name in rows() if not name.startswith((*CONSTANTS, WITHOUT_A_VERSION))]
    assert not unknown, f"add them to CONSTANTS: {unknown}"


@pytest.mark.parametrize("protocol", CONSTANTS)
def test_the_page_says_what_is_spoken(protocol: str) -> None:
    source, pattern, text = CONSTANTS[protocol]
    found = re.findall(pattern, (TREE / source).read_text(), re.MULTILINE)
    assert len(found) == 1, f"{source} has {len(found)} of {pattern}"
    (said,) = [value for name, value in rows().items() if name.startswith(protocol)]
    numbers = found if isinstance(found[0], str) else found[0]
    assert said == text.format(*numbers)
