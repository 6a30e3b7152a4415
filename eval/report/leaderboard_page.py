"""The page of a leaderboard: systems by dataset, what each number costs, and how every row is made again."""

from eval.dataset.dataset import generated_label
from eval.leaderboard import BoardRow, BoardRun, Leaderboard, Standings, results_of
from eval.report.page import Notes, Part, ReportPage, Section
from eval.table import Cell, Column, Row, Table, counted, mean_cell, titled

_DIGITS = 16
"""Of a digest, as far as it is shown."""
_ORDER = (
    "By the mean. Where two intervals overlap the order may be chance: `lcm compare` holds two runs against each "
    "other, query by query. Control arms have no rank. Of what did not run or measured otherwise there is no number."
)


def leaderboard_page(board: Leaderboard) -> ReportPage:
    sections = [_standings(board, table, number) for number, table in enumerate(board.tables, start=1)]
    if len(board.tables) > 1:
        sections.insert(0, _overview(board))
    if board.unranked:
        sections.append(Section("unranked", "Without a number", [Notes(list(board.unranked.values()))]))
    systems = counted(len({run.system_digest for run in board.runs}), "system")
    datasets = counted(len({table.terms.digest for table in board.tables}), "dataset")
    labels = dict.fromkeys(generated_label(run.summary["dataset"]) for run in board.runs)
    return ReportPage(
        kind="leaderboard",
        title=f"Leaderboard by {board.measure}",
        headline=[f"{counted(len(board.runs), 'run')} of {systems} on {datasets}.", _ORDER],
        sections=[*sections, _again(board), _digests(board)],
        label="; ".join(filter(None, labels)),
    )


def _overview(board: Leaderboard) -> Section:
    """Systems by dataset, each system by the digest of its settings."""
    names = {run.system_digest: run.system for run in reversed(board.runs)}
    rows: list[Row] = []
    for digest in dict.fromkeys(run.system_digest for run in board.runs):
        own = [
            next((row for row in table.rows if not row.is_arm and row.run.system_digest == digest), None)
            for table in board.tables
        ]
        rows.append((names[digest], *(mean_cell(row and row.measures[board.measure]) for row in own)))
    headings = (f"{one.terms.dataset} {one.terms.digest[:6]}, n {one.terms.queries:,}" for one in board.tables)
    lead = "A system is its settings, whatever it was called; – where it did not run."
    table = Table(titled("system", headings, "mean"), rows, f"Mean {board.measure} and its interval")
    return Section("overview", "Systems by dataset", [table], lead)


def _standings(board: Leaderboard, table: Standings, number: int) -> Section:
    terms = table.terms
    others = [one.terms for one in board.tables if one is not table and one.terms.dataset == terms.dataset]
    twins = [one for one in others if one.digest == terms.digest]
    apart = [name for name in terms._fields if any(getattr(one, name) != getattr(terms, name) for one in twins)]
    title = [f"{terms.dataset}, {terms.digest[:_DIGITS]}", *(f"{name} {getattr(terms, name)}" for name in apart)]
    means = (Column(one, "mean") for one in (board.measure, board.cost))
    columns = (*titled("system", ("rank",)), *means, Column("ms a live question, median", "number"), Column("run"))
    interval = f"its {100 * terms.confidence:g} % interval"
    caption = f"{board.measure} over {terms.queries:,} judged questions, with {interval}"
    parts: list[Part] = [Table(columns, [_line(board, row) for row in table.rows], caption)]
    if others:
        differs = {name for one in others for name in terms._fields if getattr(one, name) != getattr(terms, name)}
        told = f"Ranked apart from other runs on {terms.dataset}, which differ in: {', '.join(sorted(differs))}."
        parts.append(Notes([told]))
    if lacking := [row for row in table.rows if row.lacks]:
        parts.append(Notes([_lacking(row, terms.queries) for row in lacking]))
    return Section(f"table-{number}", ", ".join(title), parts)


def _lacking(row: BoardRow, queries: int) -> str:
    told = f"{row.run.name} {row.name}: no value of {row.lacks:,} of {counted(queries, 'question')}"
    return f"{told}, so it has no rank: its mean is over the others"


def _line(board: Leaderboard, row: BoardRow) -> Row:
    latency = None if row.is_arm or row.run.latency_ms is None else row.run.latency_ms.get("p50_ms")
    return (
        Cell(row.name, tone="quiet" if row.is_arm else ""),
        row.rank,
        mean_cell(row.measures[board.measure]),
        mean_cell(row.measures.get(board.cost), is_cost=True),
        None if latency is None else f"{latency:,.3g}",
        f"{row.run.name}{', beside it' if row.is_arm else ''}",
    )


def _again(board: Leaderboard) -> Section:
    rows = [(run.name, run.command or f"lcm verify FOLDER row={run.name}", run.system) for run in board.runs]
    lead = "With the code and data of the row. `lcm verify FOLDER` makes all of them again, and compares the digests."
    table = Table(list(map(Column, ("run", "command", "system"))), rows, "The command that repeats each run")
    return Section("again", "Made again", [table], lead)


def _digests(board: Leaderboard) -> Section:
    columns = list(map(Column, ("run", "dataset", "configuration", "results", "code", "lcm")))
    rows = list(map(_digest_row, board.runs))
    lead = "manifest.json beside this page has them whole; runs/ has the versions of all packages."
    table = Table(columns, rows, "What each row was made of")
    return Section("digests", "Digests and versions", [table], lead)


def _digest_row(run: BoardRun) -> Row:
    dataset, results = run.summary["dataset"], results_of(run.folder).get("per_query.parquet", "")
    code = run.summary.get("config_hash", "–"), results[:_DIGITS] or "–", (run.summary.get("commit") or "–")[:12]
    return run.name, Cell(dataset["name"], note=dataset["digest"][:_DIGITS]), *code, run.version or "–"
