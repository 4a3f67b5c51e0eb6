# SPDX-License-Identifier: BSD-3-Clause
"""Rows in Prometheus' formats, by prometheus-client."""

import math
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from ofipy.exporter.family import Distribution, Family, Rows
from ofipy.exporter.state import replace_file

__all__ = ["make_registry", "write_file"]


class RowsAsMetrics:
    """What prometheus-client asks for metrics."""

    def __init__(self, collect_rows: Callable[[], Rows]) -> None:
        self._collect_rows = collect_rows

    def describe(self) -> list[Metric]:
        """Nothing: names are known before a scrape, and asking for them must not scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        """One scrape."""
        for family, rows in self._collect_rows().of.items():
            yield to_metric(family, rows)


def make_registry(collect_rows: Callable[[], Rows]) -> CollectorRegistry:
    """A registry that has these rows, and nothing about the process that serves them.

    Parameters
    ----------
    collect_rows : callable
        Called for each scrape, by any thread.
    """
    registry = CollectorRegistry()
    registry.register(RowsAsMetrics(collect_rows))
    return registry


def to_metric(family: Family, rows: list[tuple[tuple[str, ...], float | Distribution]]) -> Metric:
    """One metric with its samples."""
    metric = Metric(family.name.removesuffix("_total"), family.help, family.kind)
    for labels, value in rows:
        named = dict(zip(family.labels, labels, strict=True))
        if isinstance(value, Distribution):
            for bound, count in value.buckets:
                limit = "+Inf" if math.isinf(bound) else f"{bound:.1f}"
                metric.add_sample(f"{family.name}_bucket", named | {"le": limit}, count)
            metric.add_sample(f"{family.name}_count", named, value.buckets[-1][1])
            metric.add_sample(f"{family.name}_sum", named, value.sum)
        else:
            metric.add_sample(family.name, named, value)
    return metric


def write_file(path: str, registry: CollectorRegistry) -> None:
    """Replace a file at once: a reader sees the old contents or the new ones.

    Parameters
    ----------
    path : str
        Everybody may read it: the collector that reads it is another user's.
    registry : CollectorRegistry
        What is written.

    Raises
    ------
    OSError
        When the file cannot be written. Then the old one is still there.
    """
    replace_file(path, generate_latest(registry), 0o644)
