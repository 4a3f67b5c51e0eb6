# SPDX-License-Identifier: BSD-3-Clause
"""Fail unless the wheel has the stable ABI's tag, exactly the files of the source tree, and no stray symbols.

A library that leaves a symbol open loads only where something else defines the symbol. With glibc a symbol that was
found when the library was linked has a version. One without a version was found nowhere, and auditwheel does not
notice: `getcpu`, which glibc has from 2.29 on, in a wheel for 2.28. Only the interpreter's own symbols may be so.
musl's symbols have no versions, so they are looked up in the C library that `--libc` names.
"""

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 1_500_000  # bytes of a wheel
BUILT = {
    "ofipy/_measure.abi3.so": {"PyInit__measure"},
    "ofipy/_ofp.abi3.so": {"PyInit__ofp"},
    "ofipy/_requests.abi3.so": {"PyInit__requests"},
    "ofipy/providers/ofi/_bridge.abi3.so": {"ofp_provider_entry"},
    "ofipy/providers/shm/_shm.abi3.so": {"ofp_provider_entry"},
    "ofipy/providers/tcp/_tcp.abi3.so": {"ofp_provider_entry"},
    "ofipy/providers/verbs/_verbs.abi3.so": {"ofp_provider_entry"},
}


OFFERED = ("ofipy", "fabtests", "providers", "native/include")


def source_files() -> list[str]:
    """Return the files of the source tree from which the wheel comes: those that git knows, or all without git."""
    if not (ROOT / ".git").exists():
        return [
            str(path.relative_to(ROOT))
            for folder in OFFERED
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        ]
    command = ["git", "ls-files", "-co", "--exclude-standard", *OFFERED]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()


def expected_files() -> set[str]:
    """Return what the source tree has to offer, under the names that it gets in the wheel."""
    result = BUILT.keys() | {"ofipy_config.py", "ofipy/_build.py", "ofipy/pkgconfig/ofipy.pc"}
    for name in source_files():
        if name.startswith("native/"):
            result.add(name.replace("native/include", "ofipy/include", 1))
        elif name.startswith("providers/") and name.endswith(".py"):
            result.add(f"ofipy/{name}")
        elif not name.startswith(("providers/", "ofipy/requests/")) and not name.endswith(
            ("meson.build", "README.md")
        ):
            result.add(name)
    return result


def read_symbols(library: Path, *options: str) -> list[list[str]]:
    """Return the lines of nm about a library's dynamic symbols, as words. The last word is the symbol."""
    command = ["nm", "-D", *options, str(library)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split() for line in lines]


def exported(library: Path) -> set[str]:
    """Return the symbols that a shared object shows."""
    return {words[-1] for words in read_symbols(library, "--defined-only")}


def open_symbols(library: Path, libc: set[str]) -> list[str]:
    """Return the symbols that nothing defines where the library is loaded.

    Parameters
    ----------
    library : Path
        A shared object.
    libc : set of str
        What a C library without versions of symbols defines; empty for glibc.
    """
    names = [words[-1] for words in read_symbols(library, "--undefined-only") if words[-2] == "U"]
    return sorted(
        name for name in names if "@" not in name and not name.startswith(("Py", "_Py")) and name not in libc
    )


def check_library(library: Path, name: str, symbols: set[str], libc: set[str]) -> None:
    """Exit with a sentence if a library shows other symbols than it is meant to, or leaves one open."""
    if (shown := exported(library)) != symbols:
        sys.exit(f"{name} exports {sorted(shown)}, not {sorted(symbols)}")
    if missing := open_symbols(library, libc):
        sys.exit(
            f"{name} leaves open {', '.join(missing)}: the C library that it was linked with defines no such symbol, "
            "so it would load nowhere with that C library. Call something older, or make the system call"
        )


def main() -> None:
    """Check the one wheel in the folder given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the wheel is the only one in it")
    parser.add_argument("--libc", type=Path, help="musl, for a wheel that is linked with it")
    arguments = parser.parse_args()
    (wheel,) = arguments.folder.glob("*.whl")
    libc = exported(arguments.libc) if arguments.libc else set()
    # A newer interpreter than the oldest supported one is named in the tag when it builds.
    tag = "cp311-abi3" if sys.version_info[:2] == (3, 11) else "-abi3-"
    if tag not in wheel.name:
        sys.exit(f"{wheel.name} is not a wheel for the stable ABI")
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        # Tools that pack a wheel anew write its folders too.
        files = {name for name in archive.namelist() if ".dist-info/" not in name and not name.endswith("/")}
        if files != expected_files():
            sys.exit(
                f"missing in the wheel: {sorted(expected_files() - files)}, "
                f"not meant to be there: {sorted(files - expected_files())}"
            )
        for name, symbols in BUILT.items():
            check_library(Path(archive.extract(name, folder)), name, symbols, libc)
    if wheel.stat().st_size > MOST:
        sys.exit(f"{wheel.name} has {wheel.stat().st_size} bytes; {MOST} are the most")
    print(f"{wheel.name}: {len(files)} files, {wheel.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
