# SPDX-License-Identifier: BSD-3-Clause
"""A setting that names a file which only its owner may use."""

import os
import stat

__all__ = ["FaultError", "check_private"]


class FaultError(Exception):
    """What makes a setting unusable: a finding, and what to do."""

    def __init__(self, finding: str, remedy: str) -> None:
        super().__init__(finding)
        self.finding, self.remedy = finding, remedy


def check_private(variable: str, path: str) -> os.stat_result:
    """Whether only its owner may use a file."""
    try:
        status = os.stat(path)
        with open(path, "rb") as file:
            file.read(1)
    except OSError as error:
        raise FaultError(
            f"{variable}={path}: {error.strerror}", "name a file that this user can read"
        ) from None
    if not stat.S_ISREG(status.st_mode):
        raise FaultError(f"{variable}={path}: it is no regular file", "name one")
    mode = stat.S_IMODE(status.st_mode)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise FaultError(
            f"{variable}={path} has mode {mode:o}: others than its owner may use it", f"chmod 600 {path}"
        )
    return status
