"""Figures as SVG within the page: drawn when it is written, coloured by its style, in light and in dark.

Every point has its numbers as a title, which a browser shows beside the pointer and reads aloud.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from eval.report.plain import shown

_ROW = 26
_WIDTH = 720
_LONGEST_LABEL = 30
COLOURS = 8
"""How many series the style tells apart."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its interval, under a name."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    is_own: bool = False
    """Of the system itself, rather than of what it is held against."""


def intervals(rows: Sequence[Interval], title: str, zero: float | None = None) -> Markup:
    """A dot and its whisker for each row.

    Args:
        zero: where a line is drawn that values lie on one side of; None = no line, and the axis begins at 0.
    """
    ends = [end for row in rows for end in (row.low, row.value, row.high) if end is not None]
    first, last = min(ends, default=0.0), max(ends, default=1.0)
    axis = _Axis.over(min(first, 0.0), max(last, 0.0) if zero is not None else last, 200, _WIDTH - 60)
    height = _ROW * len(rows) + 34
    drawn = [axis.grid(6, height - 24), axis.ticks(height - 8)]
    if zero is not None:
        drawn.append(
            f'<line class="zero" x1="{axis.at(zero):.1f}" x2="{axis.at(zero):.1f}" y1="6" y2="{height - 24}"/>'
        )
    for number, row in enumerate(rows):
        y = 6 + _ROW * (number + 0.5)
        kind = "own" if row.is_own else "other"
        told = f"{row.label}: {_number(row.value)}"
        whisker = ""
        if row.low is not None and row.high is not None:
            told += f" [{_number(row.low)}, {_number(row.high)}]"
            whisker = f'<line x1="{axis.at(row.low):.1f}" x2="{axis.at(row.high):.1f}" y1="{y}" y2="{y}"/>'
        drawn.append(
            f'<g class="{kind}"><title>{_text(told)}</title>'
            f'<text x="190" y="{y + 4}" text-anchor="end">{_text(_short(row.label))}</text>{whisker}'
            f'<circle cx="{axis.at(row.value):.1f}" cy="{y}" r="5"/>'
            f'<text class="value" x="{_WIDTH - 48}" y="{y + 4}">{_number(row.value)}</text></g>'
        )
    return _svg(drawn, _WIDTH, height, title)


def lines(series: Mapping[str, Sequence[tuple[float, float]]], title: str, x: str, y: str) -> Markup:
    """A line for each series, over a number; over a logarithm where the numbers span two decades."""
    points = [point for line in series.values() for point in line]
    xs, ys = [point[0] for point in points], [point[1] for point in points]
    is_log = min(xs, default=0) > 0 and max(xs) / min(xs) >= 30
    across = _Axis.over(min(xs, default=0), max(xs, default=1), 56, 480, is_log=is_log)
    top = max(ys, default=1.0)
    up = _Axis.over(min(0.0, *ys) if top <= 1.2 else min(ys), top, 264, 16)
    drawn = [up.rows(56, 480), across.ticks(284, sorted(set(xs)) if len(set(xs)) <= 8 else None)]
    drawn.append(f'<text class="axis" x="268" y="308" text-anchor="middle">{_text(x)}</text>')
    drawn.append(f'<text class="axis" x="0" y="10">{_text(y)}</text>')
    for number, (name, line) in enumerate(series.items()):
        colour = f"c{number % COLOURS}"
        path = " ".join(f"{across.at(px):.1f},{up.at(py):.1f}" for px, py in line)
        dots = "".join(
            f'<circle cx="{across.at(px):.1f}" cy="{up.at(py):.1f}" r="3.5">'
            f"<title>{_text(f'{name}: {_number(py)} at {_number(px)}')}</title></circle>"
            for px, py in line
        )
        key = 24 + 20 * number
        drawn.append(
            f'<g class="{colour}"><polyline points="{path}"/>{dots}<circle cx="510" cy="{key - 4}" r="5"/>'
            f'<text x="522" y="{key}">{_text(_short(name))}</text></g>'
        )
    return _svg(drawn, _WIDTH, max(316, 24 + 20 * len(series)), title)


def shares(rows: Mapping[str, Mapping[str, float]], title: str) -> Markup:
    """A bar for each row, cut into its parts; parts have one colour in all rows, named below."""
    names = list(dict.fromkeys(name for parts in rows.values() for name in parts))
    most = max((sum(parts.values()) for parts in rows.values()), default=1) or 1
    drawn = []
    for number, (label, parts) in enumerate(rows.items()):
        y, at = 6 + _ROW * number, 200.0
        drawn.append(f'<text x="190" y="{y + 16}" text-anchor="end">{_text(_short(label))}</text>')
        for name, value in parts.items():
            width = (_WIDTH - 260) * value / most
            title = _text(f"{label}: {name} {_number(value)}")
            drawn.append(
                f'<rect class="f{names.index(name) % COLOURS}" x="{at:.1f}" y="{y + 3}" '
                f'width="{max(0, width - 1):.1f}" height="{_ROW - 8}"><title>{title}</title></rect>'
            )
            at += width
        drawn.append(f'<text class="value" x="{at + 6:.1f}" y="{y + 16}">{_number(sum(parts.values()))}</text>')
    below = 18 + _ROW * len(rows)
    for number, name in enumerate(names):
        x, y = 20 + 235 * (number % 3), below + 20 * (number // 3)
        drawn.append(f'<rect class="f{number % COLOURS}" x="{x}" y="{y}" width="11" height="11"/>')
        drawn.append(f'<text x="{x + 17}" y="{y + 10}">{_text(_short(name))}</text>')
    return _svg(drawn, _WIDTH, below + 20 * math.ceil(len(names) / 3) + 4, title)


@dataclass(frozen=True, slots=True)
class Place:
    """A point over a cost, numbered as in the table beside it."""

    number: int
    label: str
    cost: float
    value: float
    low: float | None
    high: float | None
    is_own: bool


def scatter(points: Sequence[Place], title: str, cost: str, value: str) -> Markup:
    """Quality over cost, each point with the interval of its mean."""
    ends = [end for point in points for end in (point.low, point.value, point.high) if end is not None]
    across = _Axis.over(min(0.0, *(point.cost for point in points)), max(point.cost for point in points), 56, 660)
    up = _Axis.over(min(ends), max(ends), 244, 24)
    drawn = [up.rows(56, 690), across.ticks(264)]
    drawn.append(f'<text class="axis" x="360" y="288" text-anchor="middle">{_text(cost)}</text>')
    drawn.append(f'<text class="axis" x="0" y="10">{_text(value)}</text>')
    for point in points:
        x, y = across.at(point.cost), up.at(point.value)
        told = f"{point.label}: {_number(point.value)} at {_number(point.cost)}"
        whisker = ""
        if point.low is not None and point.high is not None:
            whisker = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up.at(point.low):.1f}" y2="{up.at(point.high):.1f}"/>'
        drawn.append(
            f'<g class="{"own" if point.is_own else "other"}"><title>{_text(told)}</title>{whisker}'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6"/><text x="{x + 10:.1f}" y="{y + 4:.1f}">{point.number}</text></g>'
        )
    return _svg(drawn, _WIDTH, 296, title)


@dataclass(frozen=True, slots=True)
class _Axis:
    """Numbers along a side of a figure."""

    first: float
    last: float
    start: float
    end: float
    is_log: bool = False

    @classmethod
    def over(cls, first: float, last: float, start: float, end: float, *, is_log: bool = False) -> "_Axis":
        if last <= first:
            first, last = (first * 0.9, first * 1.1) if first > 0 else (first - 0.5, first + 0.5)
        return cls(first, last, start, end, is_log)

    def at(self, value: float) -> float:
        low, high, one = (
            map(math.log, (self.first, self.last, value)) if self.is_log else (self.first, self.last, value)
        )
        return self.start + (self.end - self.start) * (one - low) / (high - low)

    def marks(self) -> list[float]:
        """About five round numbers."""
        if self.is_log:
            return [10.0**n for n in range(math.ceil(math.log10(self.first)), math.floor(math.log10(self.last)) + 1)]
        rough = (self.last - self.first) / 5
        unit = 10 ** math.floor(math.log10(rough))
        step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
        begin = math.ceil(self.first / step - 1e-9)
        return [step * n for n in range(begin, math.floor(self.last / step + 1e-9) + 1)]

    def ticks(self, y: float, marks: Sequence[float] | None = None) -> str:
        return "".join(
            f'<text class="tick" x="{self.at(mark):.1f}" y="{y}" text-anchor="middle">{_tick(mark)}</text>'
            for mark in (self.marks() if marks is None else marks)
        )

    def grid(self, top: float, bottom: float) -> str:
        return "".join(
            f'<line class="grid" x1="{self.at(mark):.1f}" x2="{self.at(mark):.1f}" y1="{top}" y2="{bottom}"/>'
            for mark in self.marks()
        )

    def rows(self, left: float, right: float) -> str:
        return "".join(
            f'<line class="grid" x1="{left}" x2="{right}" y1="{self.at(mark):.1f}" y2="{self.at(mark):.1f}"/>'
            f'<text class="tick" x="{left - 8}" y="{self.at(mark) + 4:.1f}" text-anchor="end">{_tick(mark)}</text>'
            for mark in self.marks()
        )


def _svg(drawn: Sequence[str], width: float, height: float, title: str) -> Markup:
    return Markup(  # noqa: S704  # all words within have gone through `_text`
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{_text(title)}">{"".join(drawn)}</svg>'
    )


def _text(text: str) -> str:
    return str(escape(shown(" ".join(text.split()))))


def _short(label: str) -> str:
    plain = " ".join(label.split())
    return plain if len(plain) <= _LONGEST_LABEL else f"{plain[: _LONGEST_LABEL - 1]}…"


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 20 else f"{value:.3f}"


def _tick(value: float) -> str:
    return f"{value / 1000:g}k" if abs(value) >= 10_000 else f"{round(value, 10):g}"
