# SPDX-License-Identifier: BSD-3-Clause
"""A member of a group that does what lines from a socket say, and answers each with a line."""

import os
import socket
import sys

import numpy as np

import ofipy

TIMEOUT = 120.0


def perform(group: ofipy.Group, what: str) -> tuple[ofipy.Group, str]:
    """Do one thing; the group to go on with, and what came of it."""
    try:
        if what == "agree":
            flag, dead = group.agree().wait(timeout=TIMEOUT)
            return group, f"agreed {flag} {dead}"
        if what == "shrink":
            group = group.shrink().wait(timeout=TIMEOUT)
            return group, f"rank {group.rank} of {group.size}"
        assert what == "allreduce"
        return group, f"sum {group.allreduce(np.array([1])).wait(timeout=TIMEOUT)[0]}"
    except ofipy.GroupBroken as error:
        return group, f"broken {error.ranks} {error}"


def claim_host(hosts: str) -> None:
    """Claim to be on the own one of these hosts, a number for each rank."""
    if len(set(hosts.split(","))) > 1:
        own = hosts.split(",")[int(os.environ["OFIPY_JOB_RANK"])]
        os.environ |= {"OFIPY_HOST_ID": f"{int(own) + 1:016x}", "OFIPY_INTERFACE": "lo"}


def main() -> None:
    claim_host(sys.argv[3])
    job = ofipy.job()
    # The groups before stay open: they answer those that are late.
    groups = [job.group(ofipy.open(provider=sys.argv[2]))]
    with socket.socket(socket.AF_UNIX) as connected:
        connected.connect(sys.argv[1])
        with connected.makefile("rw") as lines:
            print(job.rank, os.getpid(), file=lines, flush=True)
            for line in lines:
                group, answer = perform(groups[-1], line.strip())
                groups.append(group)
                print(answer, file=lines, flush=True)


main()
