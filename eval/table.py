"""A table is its columns and its rows: a terminal, Markdown, a page and a program each get it from here.

A cell holds a value, and the kind of its column says how that is written; so all four show the same numbers.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from markupsafe import Markup

from lcm.encoding import printable

if TYPE_CHECKING:
    from rich.table import Table as RichTable
    from rich.text import Text

Kind = Literal[
    "label", "key", "words", "verdict", "gate", "number", "mean", "value", "change", "interval", "p", "share"
]
"""How a column is written. Words: `label` names its row, `key` is code, `words` are a sentence, `verdict` and `gate` a
word with a colour. Numbers stand to the right and are never broken: `number` with the digits of its column, `mean` and
`value` by what they measure, `change` with its sign, `interval` of a change, `p` and `share`."""
Tone = Literal["", "better", "worse", "unsure", "quiet", "own"]
"""How a cell is meant: a verdict, less important than its neighbours, or of the system itself. Colour is never alone:
a verdict has its word and its sign."""
INTERVALS = "intervals"
"""Among what a narrow terminal lacks: the bounds beside means."""
Measures = Mapping[str, Mapping[str, Any]]
"""Measure -> value, n, low, high, as in a summary."""
WHOLE_FROM = 5
"""A mean cost above this, as tokens are, is written as a whole number."""

_WORDS = ("label", "key", "words", "verdict", "gate")
_FOLDED = ("label", "key", "words")
_VERDICTS: Mapping[str, Tone] = {
    "better": "better", "fine": "better", "worse": "worse", "regressed": "worse", "cannot tell": "unsure",
}  # fmt: skip
_STRONG = ("regressed", "cannot tell")
"""What a gate says in bold."""
_STYLES = {"better": "green", "worse": "red", "unsure": "yellow"}
_BREAKS = tuple(map(re.compile, (r"(?<=\s)(?!\s)", r"(?<=[=/,:;])|(?<=\.)(?!\d)", r"(?<=[_-])")))
"""Where a label is folded: at its spaces; where a word is too long, within a path or a key; then within a name."""
_SHARES = (0.3, 0.18)
"""Of the width of a terminal: a word of a label that is longer may be folded, of a narrow one sooner; several columns
share twice that."""
_MEANS = 5
"""So many of the most telling means stand in every table that has them; their bounds where they fit."""
_BORDER = 3
"""Letters that each column of a terminal's table takes besides its own; and one for the whole."""
_STEERING = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]"
)
"""Control characters but tab and line break, line and paragraph separators, and what turns the direction of writing."""
_MARKDOWN = re.compile(r"([\\`*\[\]<>|~]|(?<![^\W_])_|_(?![^\W_]))")
"""What Markdown reads: of underscores those that stand at the edge of a word."""


class Cell(NamedTuple):
    """A cell that is more than its value."""

    value: Any
    """Words, a number, the two ends of an interval, or None, which is no number."""
    is_cost: bool = False
    """Whether less is better: costs have fewer digits."""
    tone: Tone = ""
    note: str = ""
    """Beside the value; of words not on a terminal."""
    bounds: tuple[float, float] | None = None
    """Of a mean."""
    mark: str = ""
    """Behind the number, as a star."""


Row = Sequence[Any]
"""Values, of which some may be `Cell`."""


@dataclass(frozen=True, slots=True)
class Column:
    """What stands in one column, and how it is written."""

    title: str
    kind: Kind = "words"
    digits: int = 3
    """Of a `number` or `share` that is not whole."""

    @property
    def is_number(self) -> bool:
        return self.kind not in _WORDS

    def text(self, cell: Cell) -> str:
        """A cell as everybody reads it."""
        value = cell.value
        if value is None:
            return "-"
        if isinstance(value, str):
            return f"{value}{cell.mark}"
        return f"{self._number(value, cell.is_cost)}{cell.mark}"

    def _number(self, value: Any, is_cost: bool) -> str:
        match self.kind:
            case "mean":
                return written(value, is_cost)
            case "value":
                return number(value, is_cost)
            case "change":
                return signed(value, is_cost)
            case "interval":
                return f"[{signed(value[0], is_cost)}, {signed(value[1], is_cost)}]"
            case "p":
                return probability(value)
            case "share":
                return f"{value:.{self.digits}%}"
            case _:
                return f"{value:,.{self.digits}f}" if isinstance(value, float) else f"{value:,}"

    def tone(self, cell: Cell) -> Tone:
        return _VERDICTS.get(cell.value, "") if self.kind in ("verdict", "gate") else cell.tone


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below the titles of their columns; the first column names the row."""

    kind: ClassVar[str] = "table"
    columns: Sequence[Column]
    rows: Sequence[Row]
    caption: str = ""
    notes: Sequence[str] = ()
    """What is to be known of it, below."""
    lacks: Sequence[Collection[str]] = ()
    """Titles of the columns that a narrow terminal may lack, the least first; then columns go from the right."""
    lines: Collection[int] = ()
    """Numbers of the rows above which a terminal draws a line."""

    @property
    def cells(self) -> list[list[Cell]]:
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    def texts(self) -> list[list[str]]:
        """The cells as they are read, the same for a terminal, Markdown and a page."""
        return [[column.text(cell) for column, cell in zip(self.columns, row, strict=True)] for row in self.cells]

    def json(self) -> dict[str, Any]:
        """For a program: titles, and rows of values; a mean with bounds is a map of the three."""
        return {
            "columns": [column.title for column in self.columns],
            "rows": [
                [_plain(column, cell) for column, cell in zip(self.columns, row, strict=True)] for row in self.cells
            ],
        }

    def markdown(self) -> str:
        """The caption, the table and the notes, a paragraph each; words are escaped, so that they are no Markdown."""
        told = [f"| {' | '.join(_in_a_cell(column.title) for column in self.columns)} |"]
        told.append(f"|{'|'.join('--:' if column.is_number else '---' for column in self.columns)}|")
        for row in self.cells:
            cells = (_in_markdown(column, cell) for column, cell in zip(self.columns, row, strict=True))
            told.append(f"| {' | '.join(cells)} |")
        above = [plain_markdown(self.caption), ""] if self.caption else []
        below = ["", *(f"- {plain_markdown(note)}" for note in self.notes)] if self.notes else []
        return "\n".join([*above, *told, *below])

    def html(self) -> Markup:
        """An element for a page or a notebook: it needs no style, and has the classes of a report's."""
        words = sum(not column.is_number for column in self.columns)
        heads = Markup("").join(
            Markup('<th role="columnheader" scope="col"{}>{}</th>').format(
                Markup("") if column.is_number else Markup(' class="words"'), shown(column.title)
            )
            for column in self.columns
        )
        rows = Markup("").join(
            Markup('<tr role="row">{}</tr>\n').format(
                Markup("").join(_in_html(i, self.columns[i], cell) for i, cell in enumerate(row))
            )
            for row in self.cells
        )
        notes = Markup("").join(Markup("<li>{}</li>").format(shown(note)) for note in self.notes)
        caption = shown(self.caption)
        return Markup(
            '<div class="wide" tabindex="0"{region}>\n<table role="table"{stacked}>\n{caption}'
            '<thead role="rowgroup"><tr role="row">{heads}</tr></thead>\n'
            '<tbody role="rowgroup">\n{rows}</tbody>\n</table>\n</div>{notes}'
        ).format(
            region=Markup(' role="region" aria-label="{}"').format(caption) if caption else "",
            stacked=Markup(' class="stacked"') if words > 1 else "",
            caption=Markup("<caption><span>{}</span></caption>\n").format(caption) if caption else "",
            heads=heads,
            rows=rows,
            notes=Markup('\n<ul class="notes">{}</ul>').format(notes) if notes else "",
        )

    def _repr_html_(self) -> str:
        """For a notebook, which has none of a page's styles."""
        return str(self.html()).replace("<small>", '<small style="white-space: nowrap">')

    def terminal(self, width: int) -> "tuple[RichTable, list[str]]":
        """The fullest table that fits, and the titles of the columns that it lacks.

        Labels are folded by words, and titles too; a number is never broken. Only where nothing else is left to do, a
        word is.
        """
        size = cache(partial(self._size, self.cells, width))
        for lacking, share in self._steps():
            told = [i for i, column in enumerate(self.columns) if column.title not in lacking]
            sizes = [
                size(i, share if self.columns[i].kind in _FOLDED else _SHARES[0], INTERVALS in lacking) for i in told
            ]
            least, most = [one for one, _ in sizes], [one for _, one in sizes]
            room = width - 1 - _BORDER * len(told)
            if sum(least) <= room:
                break
        else:
            least = [1 if self.columns[i].kind in _FOLDED else one for i, one in zip(told, least, strict=True)]
        return self._drawn(told, _shared(least, most, room), is_bare=INTERVALS in lacking), lacking

    def _steps(self) -> Iterator[tuple[list[str], float]]:
        """What is left out, ever more, down to the words alone, and the share of the width that a word may take."""
        steps: list[list[str]] = [[], *map(list, self.lacks)]
        numbers = (column.title for column in self.columns[1:] if column.is_number)
        others = [title for title in numbers if title not in steps[-1]]
        yield from ((step, share) for share in _SHARES for step in steps)
        yield from (([*steps[-1], *others[-n:]], _SHARES[0]) for n in range(1, len(others) + 1))

    def _size(
        self, cells: Sequence[Sequence[Cell]], width: int, i: int, share: float, is_bare: bool
    ) -> tuple[int, int]:
        """How narrow a column may be, and how broad it would be."""
        from rich.cells import cell_len

        column = self.columns[i]
        texts = [_on_terminal(column, row[i], is_bare) for row in cells]
        longest = max((cell_len(line) for text in texts for line in text.splitlines()), default=0)
        labels = max(1, sum(one.kind in _FOLDED for one in self.columns))
        room = max(1, int(width * (share if labels == 1 else 2 * share / labels)))
        longest_word = max(room, (width - 1 - _BORDER * labels) // labels)
        is_folded = column.kind in _FOLDED
        pieces = (piece for text in (*(texts if is_folded else ()), column.title) for piece in _pieces(text, room))
        least = max((cell_len(atom.rstrip()) for piece in pieces for atom in _atoms(piece, longest_word)), default=1)
        most = max(longest, cell_len(column.title))
        return min(most, least if is_folded else max(least, longest)), most

    def _drawn(self, told: Sequence[int], widths: Sequence[int], *, is_bare: bool) -> "RichTable":
        from rich.table import Table as RichTable
        from rich.text import Text

        drawn = RichTable()
        shown_columns = [(i, self.columns[i], wide) for i, wide in zip(told, widths, strict=True)]
        for _, column, wide in shown_columns:
            justify: Literal["left", "right"] = "right" if column.is_number else "left"
            title = Text(folded(column.title, wide))
            drawn.add_column(title, justify=justify, width=wide, no_wrap=True, overflow="fold")
        for number, row in enumerate(self.cells):
            if number in self.lines:
                drawn.add_section()
            drawn.add_row(*(_styled(column, row[i], wide, is_bare) for i, column, wide in shown_columns))
        return drawn


def titled(label: str, numbers: Iterable[str], kind: Kind = "number", digits: int = 3) -> list[Column]:
    """The column that names the rows, and columns of numbers."""
    return [Column(label, "label"), *(Column(title, kind, digits) for title in numbers)]


def written(value: float, is_cost: bool) -> str:
    """A mean as tables have it: three places; a cost above 5 as a whole number, and a count as it is."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if is_cost and value > WHOLE_FROM else f"{value:.3f}"


def number(value: float | None, is_cost: bool) -> str:
    """A value that others are held against: of a cost above 1 to one place, else to three; `-` where there is none."""
    if value is None:
        return "-"
    return f"{value:,.1f}" if is_cost and (value == 0 or abs(value) >= 1) else f"{value:.3f}"


def signed(value: float, is_cost: bool) -> str:
    """A difference."""
    return f"+{number(value, is_cost)}" if value > 0 else number(value, is_cost)


def interval(row: Mapping[str, Any]) -> str:
    """The interval of a difference, of a row with `low`, `high` and `lower_is_better`."""
    if row["low"] is None:
        return "-"
    return f"[{signed(row['low'], row['lower_is_better'])}, {signed(row['high'], row['lower_is_better'])}]"


def probability(value: float | None) -> str:
    """A p value."""
    if value is None:
        return "-"
    return "< .001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def paired_cells(row: Mapping[str, Any]) -> tuple[Cell, Cell, float | None]:
    """Difference, its interval and the corrected p of a paired row."""
    is_cost = row["lower_is_better"]
    ends = None if row["low"] is None else (row["low"], row["high"])
    return Cell(row["difference"], is_cost), Cell(ends, is_cost), row["p_holm"]


def mean_cell(entry: Mapping[str, Any] | None, *, is_cost: bool = False) -> Cell:
    """A mean with its bounds, as a summary has them; one that is no number is quiet."""
    if entry is None or entry["value"] is None:
        return Cell(None, tone="quiet")
    bounds = None if None in (entry["low"], entry["high"]) else (entry["low"], entry["high"])
    return Cell(entry["value"], is_cost, bounds=bounds)


def means_table(
    heading: str,
    rows: Mapping[str, Measures],
    names: Sequence[str],
    costs: Collection[str] = (),
    *,
    kind: Kind = "label",
    own: str = "",
    stars: Mapping[str, Collection[int]] = MappingProxyType({}),
) -> Table:
    """Means with their bounds: a row of each label, a column of each measure, and the n that most of a row have.

    A narrow terminal lacks columns from the right while five are left, then the bounds, then further columns.

    Args:
        own: what the rows of the system itself are called, perhaps before an `@`.
        stars: measure -> numbers of the rows that are best by it, and significantly better.
    """
    told = []
    for i, (label, measures) in enumerate(rows.items()):
        n = usual_n(map(measures.get, names))
        told.append(
            (
                Cell(label, tone="own" if own and label.partition("@")[0] == own else ""),
                int(n),
                *(_mean(measures.get(name), name in costs, n, i in stars.get(name, ())) for name in names),
            )
        )
    columns = [Column(heading, kind), Column("n", "number"), *(Column(name, "mean") for name in names)]
    fewer = [list(names[place:]) for place in range(len(names), 0, -1)]
    lacks = [*fewer[1 : len(names) - _MEANS + 1], *([INTERVALS, *one] for one in fewer)]
    return Table(columns, told, lacks=lacks)


def _mean(entry: Mapping[str, Any] | None, is_cost: bool, n: float, is_starred: bool) -> Cell:
    """A mean, with its own n where that is not the row's, and perhaps a star."""
    own = "" if entry is None or entry["n"] in (n, None) else f"n={entry['n']:g}"
    cell = mean_cell(entry, is_cost=is_cost)._replace(note=own)
    return cell._replace(mark="*", tone="own") if is_starred else cell


def usual_n(entries: Iterable[Mapping[str, Any] | None]) -> float:
    """What stands for a row of means: the `n` that most of them have, of several the one that comes first."""
    counts = Counter(entry["n"] for entry in entries if entry is not None and entry["n"] is not None)
    return max(counts, key=lambda n: counts[n], default=0)


def shown(text: object) -> str:
    """Text as a page may show it: what would steer a display as its code point, `[U+202E]`."""
    return _STEERING.sub(lambda found: f"[U+{ord(found[0]):04X}]", str(text))


def plain_markdown(text: object) -> str:
    """Text on one line, with nothing that Markdown reads."""
    return _MARKDOWN.sub(r"\\\1", " ".join(str(text).split()))


def counted(n: int, one: str, more: str = "") -> str:
    """A count with its noun: `1 workspace`, `1,200 workspaces`.

    Args:
        more: the noun of several, where it is not `one` with an s.
    """
    return f"{n:,} {one if n == 1 else more or f'{one}s'}"


def sentence(words: str) -> str:
    """Words that begin as a sentence does."""
    return words[:1].upper() + words[1:]


def folded(text: str, width: int) -> str:
    """Text in lines of at most `width`, folded by words; a longer word at its signs, else cut."""
    from rich.cells import cell_len

    lines = []
    for told in text.splitlines():
        line = ""
        for atom in _atoms(told, width):
            if line and cell_len(f"{line}{atom.rstrip()}") > width:
                lines.append(line.rstrip())
                line = ""
            line += atom
        lines.append(line.rstrip())
    return "\n".join(lines)


def _atoms(text: str, width: int) -> Iterator[str]:
    """What stays in one line: pieces, cut where they are longer than one."""
    from rich.cells import cell_len, chop_cells

    for piece in _pieces(text, width):
        yield from (piece,) if cell_len(piece.rstrip()) <= width else chop_cells(piece, width)


def _pieces(text: str, width: int, level: int = 0) -> Iterator[str]:
    """Words, and where one is longer than a line its parts."""
    from rich.cells import cell_len

    for piece in _BREAKS[level].split(text):
        if cell_len(piece.rstrip()) <= width or level + 1 == len(_BREAKS):
            yield piece
        else:
            yield from _pieces(piece, width, level + 1)


def _shared(least: Sequence[int], most: Sequence[int], room: int) -> list[int]:
    """Widths between the least and the most: what is left over goes to the narrowest column that wants it."""
    widths = list(least)
    for _ in range(room - sum(least)):
        wanting = [i for i, wide in enumerate(widths) if wide < most[i]]
        if not wanting:
            break
        widths[min(wanting, key=lambda i: widths[i])] += 1
    return widths


def _plain(column: Column, cell: Cell) -> Any:
    if column.is_number and cell.value == "":
        return None
    if cell.bounds is not None:
        return {"value": cell.value, "low": cell.bounds[0], "high": cell.bounds[1]}
    return list(cell.value) if isinstance(cell.value, tuple) else cell.value


def _in_markdown(column: Column, cell: Cell) -> str:
    is_strong = cell.value in _STRONG if column.kind == "gate" else column.is_number and cell.tone == "own"
    text = column.text(cell._replace(mark=cell.mark.lstrip("*")) if is_strong else cell)
    said = plain_markdown(cell.note)
    note = f" {said if column.is_number else f'**{said}**'}" if said else ""
    if column.kind == "key":
        code = " ".join(text.split()).replace("`", "'")
        return f"`{_in_a_cell(code)}`{note}"
    text = _in_a_cell(text) if column.is_number else plain_markdown(text)
    text = f"**{text}**" if is_strong else text
    return f"{text}{_short_bounds(column, cell)}{note}"


def _in_a_cell(text: str) -> str:
    return text.replace("|", "\\|")


def _in_html(place: int, column: Column, cell: Cell) -> Markup:
    text = "–" if cell.value is None else column.text(cell)
    tone = "quiet" if cell.value is None else column.tone(cell)
    note = ", ".join(filter(None, (" – ".join(_bounds(column, cell)), cell.note)))
    within = Markup("{}{}").format(shown(text), Markup("<br><small>{}</small>").format(shown(note)) if note else "")
    if not place:
        return Markup('<th role="rowheader" scope="row" class="words {}">{}</th>').format(tone, within)
    kind = tone if column.is_number else f"words {tone}"
    return Markup('<td role="cell" data-name="{}" class="{}">{}</td>').format(shown(column.title), kind, within)


def _bounds(column: Column, cell: Cell) -> list[str]:
    """The bounds of a mean with as many places as itself; none where it has none."""
    places = len(column.text(cell._replace(mark="")).partition(".")[2])
    return [f"{bound:,.{places}f}" for bound in cell.bounds or ()]


def _on_terminal(column: Column, cell: Cell, is_bare: bool) -> str:
    """What a cell takes on a terminal: a mean with its bounds, but not those of a cost that is a whole number."""
    note = f" {cell.note}" if cell.note and column.is_number else ""
    return f"{printable(column.text(cell))}{'' if is_bare else _short_bounds(column, cell)}{note}"


def _short_bounds(column: Column, cell: Cell) -> str:
    if cell.bounds is None or "." not in column.text(cell._replace(mark="")):
        return ""
    return f" [{' '.join(map(_bound, cell.bounds))}]"


def _bound(value: float) -> str:
    """Three digits in four places: `.997`, `1.00`, `12.3`."""
    if abs(value) >= 0.9995:
        return f"{value:#.3g}" if abs(value) < 100 else f"{value:.0f}"
    return f"{value:.3f}".replace("0.", ".", 1)


def _styled(column: Column, cell: Cell, width: int, is_bare: bool) -> "Text":
    from rich.text import Text

    text = _on_terminal(column, cell, is_bare)
    text = folded(text, width) if column.kind in _FOLDED else text
    drawn = Text(text, style=_STYLES.get(column.tone(cell), ""))
    if (bounds := _short_bounds(column, cell)) and not is_bare:
        drawn.stylize("dim", begin := text.index(bounds), begin + len(bounds))
    return drawn
