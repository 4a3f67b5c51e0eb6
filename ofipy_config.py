# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy-config``: where the C headers of the installed ofipy are, and which interface to providers they declare.

It imports nothing of ofipy, so that a build for another machine can use the wheel of that machine.
"""

import argparse
import re
import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["main"]


def find_package() -> Path:
    """The folder of ofipy."""
    spec = find_spec("ofipy")
    if spec is None or spec.origin is None:
        sys.exit(f"ofipy is not installed for {sys.executable}")
    return Path(spec.origin).parent


def find_headers(package: Path) -> Path:
    """The folder to include from; that of the sources in an editable installation."""
    installed = package / "include"
    return installed if installed.is_dir() else package.parent / "native" / "include"


def read_abi(headers: Path) -> str:
    """The version of the interface to providers, major and minor, as the headers say it."""
    text = (headers / "ofipy" / "types.h").read_text()
    return ".".join(
        re.findall(rf"^#define {name} (\d+)$", text, re.MULTILINE)[0]
        for name in ("OFP_PROVIDER_ABI", "OFP_PROVIDER_ABI_MINOR")
    )


def find_pkgconfig(package: Path) -> Path:
    """The folder of ofipy.pc."""
    folder = package / "pkgconfig"
    if not (folder / "ofipy.pc").is_file():
        sys.exit(
            "ofipy.pc is not there: an editable installation has none; use --includedir, or install ofipy"
        )
    return folder


def main() -> None:
    """Print what the options name, one a line, in the order of the options below."""
    parser = argparse.ArgumentParser(prog="ofipy-config", description=main.__doc__)
    parser.add_argument(
        "--includedir", action="store_true", help="folder of the C headers, for the compiler's -I"
    )
    parser.add_argument("--abi", action="store_true", help="version of the interface to providers, as 4.1")
    parser.add_argument(
        "--headers", type=Path, metavar="DIR", help="headers that are not installed, for --abi"
    )
    parser.add_argument("--pkgconfigdir", action="store_true", help="folder of ofipy.pc, for PKG_CONFIG_PATH")
    chosen = parser.parse_args()
    if not (chosen.includedir or chosen.abi or chosen.pkgconfigdir):
        parser.error("name at least one of --includedir, --abi and --pkgconfigdir")
    if chosen.includedir:
        print(find_headers(find_package()))
    if chosen.abi:
        print(read_abi(chosen.headers or find_headers(find_package())))
    if chosen.pkgconfigdir:
        print(find_pkgconfig(find_package()))


if __name__ == "__main__":
    main()
