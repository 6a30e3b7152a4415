"""Figures as SVG within the page: drawn when it is written, coloured by its style, in light and in dark.

Every point has its numbers as a title, which a browser shows beside the pointer and reads aloud. Each figure is drawn
twice, broad and narrow, of which the style shows the one that fits: letters stay as large on a telephone.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from eval.report.page import Figure
from eval.table import shown

_ROW = 26
_TALL_ROW = 42
"""With its label above it."""
_BROAD, _NARROW = 720, 360
_LETTER = 7
"""How wide one of a tick is."""
_LONGEST_LABEL = 30
_LABELS = 214
"""Where the labels before a broad figure end: room for the longest."""
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


def intervals(rows: Sequence[Interval], caption: str, zero: float | None = None) -> Figure:
    """A dot and its whisker for each row.

    Args:
        zero: where a line is drawn that values lie on one side of; None = no line, and the axis begins at 0.
    """
    return _twice(caption, lambda width: _intervals(rows, zero, width))


def _intervals(rows: Sequence[Interval], zero: float | None, width: int) -> "_Drawing":
    is_narrow = width == _NARROW
    ends = [end for row in rows for end in (row.low, row.value, row.high) if end is not None]
    first, last = min(ends, default=0.0), max(ends, default=1.0)
    start, end = (24, width - 56) if is_narrow else (_LABELS + 10, width - 60)
    axis = _Axis.over(min(first, 0.0), max(last, 0.0) if zero is not None else last, start, end)
    tall = _TALL_ROW if is_narrow else _ROW
    height = tall * len(rows) + 34
    drawn = [axis.grid(6, height - 24), axis.ticks(height - 8, axis.apart(axis.marks()))]
    if zero is not None:
        drawn.append(
            f'<line class="zero" x1="{axis.at(zero):.1f}" x2="{axis.at(zero):.1f}" y1="6" y2="{height - 24}"/>'
        )
    for number, row in enumerate(rows):
        y = 6 + tall * (number + (0.68 if is_narrow else 0.5))
        told = f"{row.label}: {_number(row.value)}"
        whisker = ""
        if row.low is not None and row.high is not None:
            told += f" [{_number(row.low)}, {_number(row.high)}]"
            whisker = f'<line x1="{axis.at(row.low):.1f}" x2="{axis.at(row.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        place = f'x="0" y="{y - 12:.1f}"' if is_narrow else f'x="{_LABELS}" y="{y + 4}" text-anchor="end"'
        drawn.append(
            f'<g class="{"own" if row.is_own else "other"}"><title>{_text(told)}</title>'
            f"<text {place}>{_text(_short(row.label))}</text>{whisker}"
            f'<circle cx="{axis.at(row.value):.1f}" cy="{y:.1f}" r="5"/>'
            f'<text class="value" x="{end + 12}" y="{y + 4:.1f}">{_number(row.value)}</text></g>'
        )
    return drawn, height


def lines(
    series: Mapping[str, Sequence[tuple[float, float]]], caption: str, x: str, y: str, loose: Collection[str] = ()
) -> Figure:
    """A line for each series, over a number; over a logarithm where the numbers span two decades.

    Args:
        loose: series whose points have nothing to do with their neighbours, and are joined by no line.
    """
    return _twice(caption, lambda width: _lines(series, x, y, loose, width))


def _lines(
    series: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str, loose: Collection[str], width: int
) -> "_Drawing":
    is_narrow = width == _NARROW
    points = [point for line in series.values() for point in line]
    xs, ys = [point[0] for point in points], [point[1] for point in points]
    is_log = min(xs, default=0) > 0 and max(xs) / min(xs) >= 30
    left, right = (40, width - 16) if is_narrow else (56, 480)
    across = _Axis.over(min(xs, default=0), max(xs, default=1), left, right, is_log=is_log)
    top = max(ys, default=1.0)
    up = _Axis.over(min(0.0, *ys) if top <= 1.2 else min(ys), top, 280, 36)
    exact = sorted(set(xs))
    marks = exact if len(exact) <= 8 and across.apart(exact) == exact else across.apart(across.marks())
    drawn = [up.rows(left, right), across.ticks(300, marks)]
    drawn.append(f'<text class="axis" x="{(left + right) / 2:g}" y="324" text-anchor="middle">{_text(x)}</text>')
    drawn.append(f'<text class="axis" x="0" y="12">{_text(y)}</text>')
    for number, (name, line) in enumerate(series.items()):
        path = " ".join(f"{across.at(px):.1f},{up.at(py):.1f}" for px, py in line)
        dots = "".join(
            f'<circle cx="{across.at(px):.1f}" cy="{up.at(py):.1f}" r="3.5">'
            f"<title>{_text(f'{name}: {_number(py)} at {_number(px)}')}</title></circle>"
            for px, py in line
        )
        joined = "" if name in loose else f'<polyline points="{path}"/>'
        key_x, key_y = (left, 348 + 20 * number) if is_narrow else (494, 44 + 20 * number)
        drawn.append(
            f'<g class="c{number % COLOURS}">{joined}{dots}<circle cx="{key_x}" cy="{key_y - 4}" r="5"/>'
            f'<text x="{key_x + 12}" y="{key_y}">{_text(_short(name))}</text></g>'
        )
    return drawn, 340 + 20 * len(series) if is_narrow else max(332, 44 + 20 * len(series))


def shares(rows: Mapping[str, Mapping[str, float]], caption: str) -> Figure:
    """A bar for each row, cut into its parts; parts have one colour in all rows, named below."""
    return _twice(caption, lambda width: _shares(rows, width))


def _shares(rows: Mapping[str, Mapping[str, float]], width: int) -> "_Drawing":
    is_narrow = width == _NARROW
    tall, left, columns = (_TALL_ROW, 0.0, 1) if is_narrow else (_ROW, _LABELS + 10.0, 3)
    names = list(dict.fromkeys(name for parts in rows.values() for name in parts))
    most = max((sum(parts.values()) for parts in rows.values()), default=1) or 1
    drawn = []
    for number, (label, parts) in enumerate(rows.items()):
        y, at = 6 + tall * number, left
        place = f'x="0" y="{y + 12}"' if is_narrow else f'x="{_LABELS}" y="{y + 16}" text-anchor="end"'
        drawn.append(f"<text {place}>{_text(_short(label))}</text>")
        y += tall - _ROW
        for name, value in parts.items():
            long = (width - left - 60) * value / most
            title = _text(f"{label}: {name} {_number(value)}")
            drawn.append(
                f'<rect class="f{names.index(name) % COLOURS}" x="{at:.1f}" y="{y + 3}" '
                f'width="{max(0, long - 1):.1f}" height="{_ROW - 8}"><title>{title}</title></rect>'
            )
            at += long
        drawn.append(f'<text class="value" x="{at + 6:.1f}" y="{y + 16}">{_number(sum(parts.values()))}</text>')
    below = 18 + tall * len(rows)
    for number, name in enumerate(names):
        x, y = (0 if is_narrow else 20) + 235 * (number % columns), below + 20 * (number // columns)
        drawn.append(f'<rect class="f{number % COLOURS}" x="{x}" y="{y}" width="11" height="11"/>')
        drawn.append(f'<text x="{x + 17}" y="{y + 10}">{_text(_short(name))}</text>')
    return drawn, below + 20 * math.ceil(len(names) / columns) + 4


def scatter(points: Sequence[tuple[int, float, Interval]], caption: str, cost: str, value: str) -> Figure:
    """Quality over cost, each point with the interval of its mean: its number in the table beside it, cost, quality."""
    return _twice(caption, lambda width: _scatter(points, cost, value, width))


def _scatter(points: Sequence[tuple[int, float, Interval]], cost: str, value: str, width: int) -> "_Drawing":
    ends = [end for *_, one in points for end in (one.low, one.value, one.high) if end is not None]
    costs = [at for _, at, _ in points]
    left, right = (44, width - 34) if width == _NARROW else (56, width - 60)
    across = _Axis.over(min(0.0, *costs), max(costs), left, right)
    up = _Axis.over(min(ends), max(ends), 260, 40)
    drawn = [up.rows(left, right + 30), across.ticks(280, across.apart(across.marks()))]
    drawn.append(f'<text class="axis" x="{width / 2:g}" y="304" text-anchor="middle">{_text(cost)}</text>')
    drawn.append(f'<text class="axis" x="0" y="12">{_text(value)}</text>')
    for number, at, point in points:
        x, y = across.at(at), up.at(point.value)
        told = f"{point.label}: {_number(point.value)} at {_number(at)}"
        whisker = ""
        if point.low is not None and point.high is not None:
            whisker = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up.at(point.low):.1f}" y2="{up.at(point.high):.1f}"/>'
        drawn.append(
            f'<g class="{"own" if point.is_own else "other"}"><title>{_text(told)}</title>{whisker}'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6"/><text x="{x + 10:.1f}" y="{y + 4:.1f}">{number}</text></g>'
        )
    return drawn, 312


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

    def apart(self, marks: Sequence[float]) -> list[float]:
        """Of the marks those whose labels do not touch: all, every second, third ..., the first among them."""
        for step in range(1, len(marks) + 1):
            found = list(marks[::step])
            wide = [_LETTER * (len(_tick(mark)) + 1) / 2 for mark in found]
            middles = [self.at(mark) for mark in found]
            if all(b - a >= x + y for a, b, x, y in zip(middles, middles[1:], wide, wide[1:], strict=False)):
                return found
        return []

    def ticks(self, y: float, marks: Sequence[float]) -> str:
        return "".join(
            f'<text class="tick" x="{self.at(mark):.1f}" y="{y}" text-anchor="middle">{_tick(mark)}</text>'
            for mark in marks
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


_Drawing = tuple[list[str], float]
"""Elements, and how high they stand."""


def _twice(caption: str, draw: Callable[[int], _Drawing]) -> Figure:
    """A figure for broad screens and for narrow ones."""
    told, drawn = _text(f"{caption}; its numbers stand in the tables, or at its points"), []
    for kind, width in (("broad", _BROAD), ("narrow", _NARROW)):
        elements, height = draw(width)
        drawn.append(f'<svg class="{kind}" viewBox="0 0 {width} {height:g}" role="img" aria-label="{told}">')
        drawn += [*elements, "</svg>"]
    return Figure(caption, Markup("".join(drawn)))  # noqa: S704  # all words within have gone through `_text`


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
