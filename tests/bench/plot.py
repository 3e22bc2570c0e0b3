"""The medians of a run as bars on a logarithmic scale, a panel a case, from the JSON alone."""

from __future__ import annotations

import math
import statistics
import textwrap
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import ticker

from tests.bench.findings import Finding, findings

_COLUMNS = 2
_TITLE_WIDTH = 80  # characters that fit over a panel
_SUBJECT, _BASELINE, _OTHER = "#1f6f8b", "#c9a227", "#b8b8b8"
_LIMIT = "#b3261e"


def draw(document: dict[str, Any], path: Path) -> None:
    """Each panel: the arm that is judged, what it is judged by, the other arms, and a line where its bar is."""
    mpl.use("svg")
    # the same JSON gives the same file
    mpl.rcParams.update({"svg.hashsalt": "ranked-ledger", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot  # after the choice of its output

    timed = [one for one in findings(document) if one.timings]
    lines = max(1, math.ceil(len(timed) / _COLUMNS))
    figure, panels = pyplot.subplots(
        lines, _COLUMNS, figsize=(13, 1.45 * lines), squeeze=False, layout="constrained"
    )
    for panel, finding in zip(panels.flat, timed, strict=False):
        _panel(panel, finding)
    for panel in panels.flat[len(timed) :]:
        panel.axis("off")
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _panel(panel: Any, finding: Finding) -> None:
    medians = {arm: statistics.median(raw) for arm, raw in finding.timings.items()}
    colours = [_colour(finding, arm) for arm in medians]
    bars = panel.barh(list(medians), list(medians.values()), color=colours)
    panel.bar_label(bars, [f" {_shown(value)}" for value in medians.values()])
    marks = list(medians.values())
    if finding.bar is not None:
        base, factor = medians[finding.baseline], finding.bar.limit
        marks.append(base * factor if finding.bar.at_most else base / factor)
        panel.axvline(marks[-1], color=_LIMIT, linewidth=1, linestyle="--")
    panel.set_xscale("log")
    panel.set_xlim(min(marks) / 3, max(marks) * 6)
    panel.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    panel.xaxis.set_minor_formatter(ticker.NullFormatter())
    panel.invert_yaxis()
    panel.spines[["top", "right"]].set_visible(False)
    vectors = f", {finding.vectors} vectors" if finding.vectors else ""
    title = textwrap.fill(f"{finding.title}, {finding.rows:,}{vectors} (ms)", _TITLE_WIDTH)
    panel.set_title(title, loc="left", fontsize=8)


def _shown(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def _colour(finding: Finding, arm: str) -> str:
    return {finding.subject: _SUBJECT, finding.baseline: _BASELINE}.get(arm, _OTHER)
