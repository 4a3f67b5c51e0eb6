# SPDX-License-Identifier: BSD-3-Clause
"""Sends whose buffer may be used again at once, or when they complete."""

import rich_click as click

from fabtests.base.options import Options
from fabtests.base.pattern import check, pattern
from fabtests.base.program import Program
from fabtests.base.session import Session

TAG = 0xABCD


def run(session: Session) -> None:
    """The client overwrites each message as soon as it may."""
    inject = session.options.extra["flag"] == "inject"
    size = min(session.size, session.endpoint.info.inject_size) if inject else session.size
    buffer = session.buffer(size)
    for _ in range(session.options.iterations or 1):
        if session.client:
            buffer[:] = pattern(size)
            if inject:
                request = session.start_send(buffer, tag=TAG, flags="inject")
                buffer[:] = 0x0B
                session.wait(request)
            else:
                session.send(buffer, tag=TAG)
                buffer[:] = 0x0B
        else:
            session.post(session.buffer(session.room), tag=TAG)
            request, room = session.posted()
            length = session.wait(request).length
            if session.options.verify:
                check(room[:length])
    session.passed(f"Completed {session.options.extra['flag']} testing")


def take_rdm(options: Options) -> None:
    """The C program takes ``-e``, and opens endpoints of type rdm all the same."""
    options.ep_type = "rdm"


PROGRAM = Program(
    summary="Reuse of send buffers, over rdm endpoints for every -e.",
    run=run,
    check=take_rdm,
    caps="tagged",
    tagged=True,
    iterations=1,
    post=True,
    end=False,
    options=(
        click.option(
            "-A",
            "flag",
            type=click.Choice(["inject", "inj_complete"]),
            default="inject",
            show_default=True,
            help="Operation after which the buffer may be reused.",
        ),
        click.option("-N", "sendmsg", is_flag=True, help="No effect: in the C program, use fi_sendmsg."),
    ),
)
