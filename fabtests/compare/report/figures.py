# SPDX-License-Identifier: BSD-3-Clause
"""Charts as figures of matplotlib: lines over the size, or bars where there is one size only."""

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from fabtests.compare.report.charts import Chart, Series
from ofipy.pingpong.sizes import shorten_bytes

__all__ = ["draw", "svg_of", "write_figures"]

# Colours that are told apart by most eyes: ofipy's are blues and greens, with marks; peers' are warm, and dashed.
OWN = ("#1f4e9c", "#2a9d8f", "#5b8def", "#0b6e4f", "#7b5ea7", "#00a6d6", "#445e93", "#3c887e")
PEERS = ("#d1495b", "#edae49", "#8d5524", "#9a9a9a", "#e76f51", "#b56576", "#6c757d", "#c08497")
MARKS = "os^Dv<>P"
WIDTH, HEIGHT = 7.2, 4.4  # inches


def colours_of(chart: Chart) -> dict[str, str]:
    """A colour for each series."""
    own = [name for name, series in chart.series.items() if series.own]
    peers = [name for name, series in chart.series.items() if not series.own]
    return {
        name: colours[index % len(colours)]
        for names, colours in ((own, OWN), (peers, PEERS))
        for index, name in enumerate(names)
    }


def draw(chart: Chart) -> Figure:
    """Draw one chart."""
    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = figure.add_subplot()
    if len(chart.sizes) > 1:
        draw_lines(axes, chart)
    else:
        draw_bars(axes, chart)
    axes.set_title(chart.title, loc="left", fontsize=10)
    return figure


def draw_lines(axes: Axes, chart: Chart) -> None:
    """Values over the size, both axes logarithmic."""
    colours = colours_of(chart)
    for index, series in enumerate(chart.series.values()):
        points = sorted(zip(series.sizes, series.values, strict=True))
        axes.plot(
            *zip(*points, strict=True),
            label=series.name,
            color=colours[series.name],
            linestyle="-" if series.own else "--",
            linewidth=1.8 if series.own else 1.2,
            marker=MARKS[index % len(MARKS)],
            markersize=4,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = chart.sizes
    shown = sizes[:: max(1, len(sizes) // 8)]
    axes.set_xticks(shown, [label_of(chart, size) for size in shown])
    axes.set_xlabel(chart.size_key)
    axes.set_ylabel(chart.unit)
    number_plainly(axes.yaxis)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=7, ncols=2)


def draw_bars(axes: Axes, chart: Chart) -> None:
    """One bar a contender, the best on top."""
    colours = colours_of(chart)
    ranked: list[Series] = sorted(
        chart.series.values(), key=lambda each: each.values[0], reverse=not chart.higher_is_better
    )
    bars = axes.barh(
        [series.name for series in ranked],
        [series.values[0] for series in ranked],
        color=[colours[series.name] for series in ranked],
        alpha=0.9,
    )
    axes.bar_label(bars, fmt="%.3g", fontsize=7, padding=3)
    axes.set_xscale("log")
    number_plainly(axes.xaxis)
    axes.margins(x=0.15)
    axes.tick_params(axis="y", labelsize=7)
    axes.set_xlabel(f"{chart.unit}, {label_of(chart, chart.sizes[0])} {chart.size_key}")
    axes.grid(visible=True, axis="x", which="major", alpha=0.3)


def number_plainly(axis: Axis) -> None:
    """0.1, 1, 10 in place of powers, and nothing in between, where such numbers would lie over each other."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def label_of(chart: Chart, size: int) -> str:
    """A size as it stands at the axis."""
    return shorten_bytes(size) if chart.size_key == "bytes" else str(size)


def svg_of(chart: Chart) -> str:
    """The chart as the text of an SVG element, to stand within a page."""
    text = io.StringIO()
    # Text stays text, and two runs of one result give one file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": chart.name}):
        draw(chart).savefig(text, format="svg", metadata={"Date": None})
    drawing = text.getvalue()
    return drawing[drawing.index("<svg") :]


def write_figures(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Write each chart as PNG and as SVG.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    OSError
        When the folder cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for chart in charts:
        png, svg = folder / f"{chart.name}.png", folder / f"{chart.name}.svg"
        draw(chart).savefig(png, dpi=150)
        svg.write_text(svg_of(chart), encoding="utf-8")
        written += [png, svg]
    return written
