# SPDX-License-Identifier: BSD-3-Clause
"""Fail unless the wheel has the stable ABI's tag, exactly the files of the source tree, and no stray symbols."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = {
    "ofipy/_measure.abi3.so": {"PyInit__measure"},
    "ofipy/_ofp.abi3.so": {"PyInit__ofp"},
    "ofipy/_requests.abi3.so": {"PyInit__requests"},
    "ofipy/providers/ofi/_bridge.abi3.so": {"ofp_provider_entry"},
    "ofipy/providers/shm/_shm.abi3.so": {"ofp_provider_entry"},
    "ofipy/providers/tcp/_tcp.abi3.so": {"ofp_provider_entry"},
    "ofipy/providers/verbs/_verbs.abi3.so": {"ofp_provider_entry"},
}


def expected_files() -> set[str]:
    """Return what the source tree has to offer, under the names that it gets in the wheel."""
    command = [
        "git",
        "ls-files",
        "-co",
        "--exclude-standard",
        "ofipy",
        "fabtests",
        "providers",
        "native/include",
    ]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    result = set(BUILT)
    for name in names:
        if name.startswith("native/"):
            result.add(name.replace("native/include", "ofipy/include", 1))
        elif name.startswith("providers/") and name.endswith(".py"):
            result.add(f"ofipy/{name}")
        elif not name.startswith(("providers/", "ofipy/requests/")) and not name.endswith("meson.build"):
            result.add(name)
    return result


def exported(library: Path) -> set[str]:
    """Return the symbols that a shared object shows."""
    command = ["nm", "-D", "--defined-only", str(library)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1] for line in lines}


def main() -> None:
    """Check the one wheel in the folder given."""
    (wheel,) = Path(sys.argv[1]).glob("*.whl")
    # A newer interpreter than the oldest supported one is named in the tag when it builds.
    tag = "cp311-abi3" if sys.version_info[:2] == (3, 11) else "-abi3-"
    if tag not in wheel.name:
        sys.exit(f"{wheel.name} is not a wheel for the stable ABI")
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
        if files != expected_files():
            sys.exit(
                f"missing in the wheel: {sorted(expected_files() - files)}, "
                f"not meant to be there: {sorted(files - expected_files())}"
            )
        for name, symbols in BUILT.items():
            if (shown := exported(Path(archive.extract(name, folder)))) != symbols:
                sys.exit(f"{name} exports {sorted(shown)}, not {sorted(symbols)}")
    print(f"{wheel.name}: {len(files)} files, {wheel.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
