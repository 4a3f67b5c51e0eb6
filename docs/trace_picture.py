# SPDX-License-Identifier: BSD-3-Clause
"""Draws a trace as SVG: a track a line, slices as boxes, messages as arrows.

``python docs/trace_picture.py`` runs a pair of the tutorial's programs under the hook ``trace``, merges what both wrote
and draws it to ``docs/how-to/trace.svg``; ``python docs/trace_picture.py TRACE PICTURE`` draws another merged trace.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from html import escape
from pathlib import Path
from typing import Any

from ofipy.cli.trace import merge_files

DOCS = Path(__file__).parent
PAIR = 1  # of the tutorial's: the arrays
WIDTH, LEFT, ROW, BOX, TOP = 1000, 210, 34, 20, 30
COLOURS = {"tsend": "#7eb0d5", "trecv": "#b2e061", "arrival": "#fd7f6f"}
OTHER_COLOUR = "#beb9db"

Event = dict[str, Any]


def run_tutorial(folder: Path) -> Path:
    """Run one pair of programs, the server first; return the merged trace."""
    page = (DOCS / "tutorial/first-messages.md").read_text()
    server = re.findall(r"```python\n(# server\.py\n.*?)```", page, re.DOTALL)[PAIR]
    client = re.findall(r"```python\n(# client\.py\n.*?)```", page, re.DOTALL)[PAIR]
    environment = os.environ | {"OFIPY_HOOKS": f"trace:file={folder}/%p.json"}
    with subprocess.Popen([sys.executable, "-P", "-c", server], env=environment) as process:
        time.sleep(2)  # it is there by then
        subprocess.run([sys.executable, "-P", "-c", client], env=environment, check=True, timeout=60)
        process.wait(60)
    merge_files(sorted(folder.glob("*.json")), folder / "all.json")
    return folder / "all.json"


class Picture:
    """The part of a trace in which messages travel, from a little before the first to a little after the last event."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.tracks = self._tracks()
        times = [event["ts"] for event in events if event["ph"] in "sf"]
        margin = (max(times) - min(times)) / 12
        self.begin, self.end = min(times) - margin, max(times) + 2 * margin

    def _tracks(self) -> dict[tuple[int, int], tuple[int, str]]:
        """Line and name of each track, processes in the order of their ids."""
        names = {
            (event["pid"], event["tid"]): event["args"]["name"]
            for event in self.events
            if event["name"] == "thread_name"
        }
        used = {(event["pid"], event["tid"]) for event in self.events if event["ph"] == "X"}
        return {key: (line, names[key]) for line, key in enumerate(sorted(used))}

    def x(self, at: float) -> float:
        inside = min(max(at, self.begin), self.end)
        return LEFT + (inside - self.begin) / (self.end - self.begin) * (WIDTH - LEFT - 10)

    def y(self, event: Event) -> float:
        return TOP + self.tracks[event["pid"], event["tid"]][0] * ROW

    def track(self, key: tuple[int, int]) -> str:
        line, name = self.tracks[key]
        first_of_process = min(each for each in self.tracks if each[0] == key[0]) == key
        above = (
            f"process {sorted({pid for pid, _ in self.tracks}).index(key[0]) + 1}, "
            if first_of_process
            else ""
        )
        at = TOP + line * ROW
        return (
            f'<text x="4" y="{at + 14}">{escape(above + name)}</text>'
            f'<line x1="{LEFT}" y1="{at + BOX}" x2="{WIDTH}" y2="{at + BOX}" stroke="#ccc"/>'
        )

    def slice(self, event: Event) -> str:
        if event["ts"] > self.end or event["ts"] + event["dur"] < self.begin:
            return ""
        left, right = self.x(event["ts"]), self.x(event["ts"] + event["dur"])
        args, width = event["args"], max(right - left, 2)
        told = f"{event['name']}, tag {args['tag']}, {args['bytes']} bytes, {event['dur']:.1f} us"
        label = (
            f'<text x="{left + 3:.1f}" y="{self.y(event) + 14}">{escape(event["name"])}</text>'
            if width > 50
            else ""
        )
        return (
            f'<rect x="{left:.1f}" y="{self.y(event)}" width="{width:.1f}" height="{BOX}" rx="2" '
            f'fill="{COLOURS.get(event["name"], OTHER_COLOUR)}" stroke="#555" stroke-width="0.5">'
            f"<title>{escape(told)}</title></rect>{label}"
        )

    def arrow(self, sent: Event, arrived: Event) -> str:
        return (
            f'<line x1="{self.x(sent["ts"]):.1f}" y1="{self.y(sent) + BOX / 2}" x2="{self.x(arrived["ts"]):.1f}" '
            f'y2="{self.y(arrived) + BOX / 2}" stroke="#333" stroke-width="1.2" marker-end="url(#head)"/>'
        )

    def text(self) -> str:
        """The whole picture."""
        height = TOP + len(self.tracks) * ROW + 10
        arrived = {event["id"]: event for event in self.events if event["ph"] == "f"}
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
            'font-size="11">',
            '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
            '<path d="M0,1 L8,4 L0,7 z" fill="#333"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            f'<text x="{LEFT}" y="16">{self.end - self.begin:.0f} us from left to right</text>',
            *(self.track(key) for key in self.tracks),
            *(self.slice(event) for event in self.events if event["ph"] == "X"),
            *(self.arrow(event, arrived[event["id"]]) for event in self.events if event["ph"] == "s"),
            "</svg>",
        ]
        return "\n".join(part for part in parts if part) + "\n"


def draw(trace: Path, picture: Path) -> None:
    """Draw a merged trace."""
    picture.write_text(Picture(json.loads(trace.read_text())["traceEvents"]).text())


if __name__ == "__main__":
    if len(sys.argv) == 3:
        draw(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as place:
            draw(run_tutorial(Path(place)), DOCS / "how-to/trace.svg")
