# SPDX-License-Identifier: BSD-3-Clause
"""Both sides of a ping-pong on this machine, each in a process of its own on a core of its own."""

from collections.abc import Iterator
from dataclasses import replace

from ofipy.pingpong.loop import measure
from ofipy.pingpong.pair import Pair
from ofipy.pingpong.pipe import pick_cores
from ofipy.pingpong.plan import Measurement, PingPongPlan
from ofipy.pingpong.side import Side

__all__ = ["LocalSide", "measure_local"]

ROW_SECONDS = 300.0


class LocalSide(Side):
    """A side that lives in a worker process."""

    def measure(self, plan: PingPongPlan) -> list[Measurement]:
        """Run the whole plan."""
        return list(measure(self, plan))


def measure_local(
    plan: PingPongPlan,
    *,
    provider: str | None = None,
    cores: tuple[int, int] | None = None,
    timeout: float = ROW_SECONDS,
) -> Iterator[Measurement]:
    """Start both sides, run the plan, yield the first side's rows as they come.

    Parameters
    ----------
    plan : PingPongPlan
        What to run.
    provider : str, optional
        Provider by name; None: as configured.
    cores : tuple of int, optional
        The core of each side; None: the first two that are allowed.
    timeout : float
        Seconds for each size.

    Raises
    ------
    ofipy.pingpong.pair.PairError
        When a side fails.
    """
    with Pair("ofipy.pingpong.local:LocalSide", cores=cores or pick_cores(), provider=provider) as pair:
        offers = pair.call("offer")
        pair.call_each("meet", [(offers[1],), (offers[0],)])
        for size in plan.sizes:
            rows = pair.call("measure", replace(plan, sizes=(size,)), timeout=timeout)
            yield rows[0][0]
