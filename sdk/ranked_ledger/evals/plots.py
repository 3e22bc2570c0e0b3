"""Plots as inline SVG: sizes and places. Colors are the page's, by class, one set a theme."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from ranked_ledger.evals.statistics import Figure

_WIDTH: Final = 760
_ROW: Final = 24
_TOP, _BOTTOM = 8, 34
_LETTER: Final = 8.3  # of a bold label of 13 px, a little wider than most
_LINES: Final = 9  # classes of lines that the page knows


@dataclass(frozen=True, slots=True)
class Plot:
    """An SVG element, and what it shows in words."""

    svg: str
    caption: str


def intervals(
    figures: Mapping[str, Figure],
    caption: str,
    *,
    shown: Callable[[float], str],
    strong: Sequence[str] = (),
    zero: bool = False,
) -> Plot:
    """A dot and its interval for every name, in the given order. `zero`: differences, with a line at 0."""
    labels = max((len(name) for name in figures), default=0) * _LETTER + 14
    left, right = labels, _WIDTH - 64
    lows, highs = ([getattr(one, end) for one in figures.values()] for end in ("low", "high"))
    low, high = (min([0.0, *lows]), max([0.0, *highs])) if zero else (0.0, 1.0)
    margin = (high - low) * 0.04 if zero else 0
    scale = _Scale(low - margin, high + margin, left, right)
    height = _TOP + _ROW * len(figures) + _BOTTOM
    bottom = height - _BOTTOM
    parts = [*_x_axis(scale, bottom, "+g" if zero else "g")]
    if zero:
        parts.append(_line(scale(0), _TOP, scale(0), bottom, "zero"))
    for place, (name, figure) in enumerate(figures.items()):
        y = _TOP + _ROW * (place + 0.5)
        tone = "strong" if name in strong else "plain"
        if zero and figure.sign:
            tone = "good" if figure.sign > 0 else "bad"
        title = f"{name}: {shown(figure.value)} ({shown(figure.low)} to {shown(figure.high)})"
        parts.append(
            f'<g class="{tone}"><title>{escape(title)}</title>'
            f"{_text(left - 10, y + 4.5, name, 'label end')}"
            f"{_line(scale(figure.low), y, scale(figure.high), y, 'whisker')}"
            f'<circle cx="{scale(figure.value):.1f}" cy="{y:.1f}" r="4.5"/>'
            f"{_text(right + 12, y + 4.5, shown(figure.value), 'value')}</g>"
        )
    return Plot(_svg(height, parts, caption), caption)


def curves(
    lines: Mapping[str, Sequence[float]], at: Sequence[int], caption: str, *, strong: Sequence[str] = ()
) -> Plot:
    """A line for every name over the same places, each named at its end."""
    labels = max((len(name) for name in lines), default=0) * _LETTER + 18
    height = 380
    bottom = height - _BOTTOM - 14
    across = _Scale(0, max(at), 44, _WIDTH - labels)
    up = _Scale(0, 1, bottom, _TOP)
    parts = [*_x_axis(across, bottom, ",.0f", grid=False)]
    parts.append(_text((44 + _WIDTH - labels) / 2, height - 6, "token budget", "tick middle"))
    for tenth in range(0, 11, 2):
        y = up(tenth / 10)
        parts += [_line(44, y, across.end, y, "grid"), _text(38, y + 4, f"{tenth / 10:.1f}", "tick end")]
    ends = _spread({name: up(values[-1]) for name, values in lines.items()}, _TOP + 6, bottom)
    for number, (name, values) in enumerate(lines.items()):
        points = " ".join(f"{across(x):.1f},{up(value):.1f}" for x, value in zip(at, values, strict=True))
        weight = " heavy" if name in strong else ""
        last = f"{values[-1]:.2f} at {at[-1]:,}"
        parts.append(
            f'<g class="line c{number % _LINES}{weight}"><title>{escape(f"{name}: {last}")}</title>'
            f'<polyline points="{points}"/>'
            f"{_line(across.end, up(values[-1]), across.end + 9, ends[name], 'leader')}"
            f"{_text(across.end + 12, ends[name] + 4.5, name, 'label')}</g>"
        )
    return Plot(_svg(height, parts, caption), caption)


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = (self.high - self.low) or 1
        return self.start + (value - self.low) / span * (self.end - self.start)


def _x_axis(scale: _Scale, bottom: float, form: str, *, grid: bool = True) -> list[str]:
    parts = []
    for tick in _ticks(scale.low, scale.high):
        x = scale(tick)
        if grid:
            parts.append(_line(x, _TOP, x, bottom, "grid"))
        parts.append(_text(x, bottom + 18, format(tick, form), "tick middle"))
    return parts


def _ticks(low: float, high: float) -> list[float]:
    """Some five round numbers between two."""
    span = (high - low) or 1
    unit = 1.0
    while unit * 5 > span:
        unit /= 10
    while unit * 50 <= span:
        unit *= 10
    step = next(unit * factor for factor in (1, 2, 5, 10, 20, 50) if span / (unit * factor) <= 6)
    first = -int(-low // step) if low >= 0 else -int(-low / step)
    return [round(step * number, 9) for number in range(first, int(high / step) + 1)]


def _spread(places: Mapping[str, float], top: float, bottom: float) -> dict[str, float]:
    """Places for labels at the ends of lines, near them and not upon each other."""
    names = sorted(places, key=lambda name: places[name])
    put = [min(max(places[name], top), bottom) for name in names]
    for _ in range(200):
        moved = False
        for above, below in pairwise(range(len(put))):
            if (short := 15 - (put[below] - put[above])) > 0.1:
                put[above] = max(top, put[above] - short / 2)
                put[below] = max(put[below] + short / 2, put[above] + 15)
                moved = True
        if not moved:
            break
    return dict(zip(names, put, strict=True))


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _svg(height: float, parts: Sequence[str], caption: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(caption)}">'
        f"{''.join(parts)}</svg>"
    )
