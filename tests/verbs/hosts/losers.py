# SPDX-License-Identifier: BSD-3-Clause
"""Peers that are killed: ``losers.py ADDRESS COUNT``. For each line of standard input a process with COUNT endpoints.

Each endpoint says hello. Then every other one sends a message of two packets, of which the target's host drops the
second. At the next line the process is killed. It answers each line with one of its own, when that is done.
"""

import logging
import os
import signal
import sys
import traceback

import ofipy

TIMEOUT = 60
TAG_HELLO, TAG_HALF = 1, 2
# The header of a message makes two packets of it, where one has at most 4,096 bytes.
HALF_BYTES = 4096
# Each loser receives a word or two from one peer. An emulated kernel needs most of its time to pin more buffers.
BUFFERS = 16


def lose(address: str, count: int, told: int) -> None:
    """Be the peers, until somebody kills this process."""
    info = ofipy.getinfo(provider="verbs", ep_type="rdm")[0]
    domain = ofipy.Fabric(info).domain(progress="auto")
    endpoints = [domain.endpoint().enable() for _ in range(count)]
    peers = [each.insert(address) for each in endpoints]
    hellos = [
        each.tsend(b"hello", peer, tag=TAG_HELLO, complete="transmit")
        for each, peer in zip(endpoints, peers, strict=True)
    ]
    ofipy.wait_all(hellos, timeout=TIMEOUT)
    # Kept, as the requests of a program that would wait for them.
    halves = [
        each.tsend(bytes(HALF_BYTES), peer, tag=TAG_HALF, complete="transmit")
        for each, peer in list(zip(endpoints, peers, strict=True))[::2]
    ]
    os.write(told, b"up")
    while halves:
        signal.pause()


def main() -> None:
    address, count = sys.argv[1], int(sys.argv[2])
    # Why a loser waits, if it does.
    logging.basicConfig(level=logging.WARNING)
    # 4.3 s: what is not acknowledged is not sent again before the kill.
    os.environ["OFIPY_VERBS_ACK_TIMEOUT"] = "20"
    os.environ["OFIPY_VERBS_PACKET_BUFFERS"] = str(BUFFERS)
    for _ in sys.stdin:
        reader, writer = os.pipe()
        # The modules are there already, which take an emulated processor seconds to import; a device is not.
        child = os.fork()
        if not child:
            os.close(reader)
            try:
                lose(address, count, writer)
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(writer)
        print("up" if os.read(reader, 2) else "failed", flush=True)
        os.close(reader)
        sys.stdin.readline()
        os.kill(child, signal.SIGKILL)
        print(-os.WTERMSIG(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
