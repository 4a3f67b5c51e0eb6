# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy-config``: what it prints, and that it does so without ofipy being importable."""

import subprocess
import sys
from pathlib import Path

import ofipy
import ofipy_config

SOURCE = Path(ofipy_config.__file__)


def run(
    *options: str, code: str = "import ofipy_config; ofipy_config.main()"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-c", code, *options], capture_output=True, text=True)


def test_what_it_prints() -> None:
    ran = run("--includedir", "--abi")
    folder, abi = ran.stdout.splitlines()
    assert (folder, abi) == (ofipy.get_include(), ".".join(map(str, ofipy.PROVIDER_ABI)))
    assert ran.returncode == 0


def test_it_imports_nothing_of_ofipy(tmp_path: Path) -> None:
    """A wheel of another machine: its modules in C cannot be imported here."""
    package = tmp_path / "ofipy"
    (package / "include" / "ofipy").mkdir(parents=True)
    (package / "pkgconfig").mkdir()
    (package / "pkgconfig" / "ofipy.pc").touch()
    (package / "__init__.py").write_text("raise ImportError('of another machine')\n")
    (package / "include" / "ofipy" / "types.h").write_text(
        "#define OFP_PROVIDER_ABI 7\n#define OFP_PROVIDER_ABI_MINOR 9\n"
    )
    (tmp_path / "ofipy_config.py").write_text(SOURCE.read_text())
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import ofipy_config; ofipy_config.main()"
    ran = subprocess.run(
        [sys.executable, "-P", "-S", "-c", code, "--includedir", "--abi", "--pkgconfigdir"],
        capture_output=True,
        text=True,
    )
    assert ran.stdout.splitlines() == [str(package / "include"), "7.9", str(package / "pkgconfig")], (
        ran.stderr
    )


def test_what_is_wrong_is_told() -> None:
    assert "name at least one of --includedir" in run().stderr
