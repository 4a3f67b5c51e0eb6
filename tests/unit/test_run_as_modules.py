# SPDX-License-Identifier: BSD-3-Clause
"""What CI runs by ``python -m tests.…`` does not import ofipy: it would find the tree's, which is not built."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parent.parent.parent


def modules() -> list[str]:
    """Those that the stages name, without what each of them starts."""
    stages = "".join(path.read_text() for path in sorted((TREE / ".ci" / "stages").glob("*.sh")))
    return sorted(set(re.findall(r"python3 -m (tests[.\w]+)", stages)))


@pytest.mark.parametrize("module", modules())
def test_it_does_without_the_package(module: str) -> None:
    code = f"import sys; sys.modules['ofipy'] = None; sys.path.insert(0, {str(TREE)!r}); import {module}"
    ran = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
