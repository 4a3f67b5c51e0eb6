# SPDX-License-Identifier: BSD-3-Clause
"""Charts as characters, for a terminal."""

import math
from collections.abc import Sequence

import plotext

from fabtests.compare.report.charts import Chart
from ofipy.pingpong.sizes import shorten_bytes

__all__ = ["plot"]

HEIGHT = 18
TICKS = 5


def plot(charts: Sequence[Chart], *, width: int, colours: bool) -> str:
    """Charts that have more than one size, one below the other.

    Parameters
    ----------
    charts : sequence of Chart
        From :func:`fabtests.compare.report.charts.charts_of`.
    width : int
        Columns of the terminal.
    colours : bool
        Whether it shows any.
    """
    return "\n".join(plot_one(chart, width, colours=colours) for chart in charts if len(chart.sizes) > 1)


def plot_one(chart: Chart, width: int, *, colours: bool) -> str:
    """One chart. Both axes are logarithmic by their ticks: the library's own scale knows powers of ten only."""
    plotext.clear_figure()
    plotext.plot_size(width, HEIGHT)
    plotext.theme("pro" if colours else "clear")
    values = [math.log10(value) for series in chart.series.values() for value in series.values]
    for series in chart.series.values():
        points = sorted(zip(series.sizes, series.values, strict=True))
        plotext.plot(
            [math.log2(size) for size, _ in points],
            [math.log10(value) for _, value in points],
            label=series.name,
            marker="hd" if series.own else "dot",
        )
    plotext.title(chart.title)
    plotext.xlabel(chart.size_key)
    shown = chart.sizes[:: max(1, len(chart.sizes) // TICKS)]
    label = shorten_bytes if chart.size_key == "bytes" else str
    plotext.xticks([math.log2(size) for size in shown], [label(size) for size in shown])
    low, high = min(values), max(values)
    heights = [low + (high - low) * step / (TICKS - 1) for step in range(TICKS)]
    plotext.yticks(heights, [f"{10**height:.3g}" for height in heights])
    drawn = str(plotext.build())
    return drawn if colours else str(plotext.uncolorize(drawn))
