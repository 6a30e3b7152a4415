"""The shell of every report: one HTML file that needs nothing beside it, asks nothing of a network, and runs its own
script alone."""

import base64
import hashlib
from importlib import resources
from pathlib import Path

from markupsafe import Markup

from eval.report.parts import ReportPage
from eval.table import shown
from lcm.files import private, write_text

PAGE = "report.html"
_TEMPLATE = "page.html"


@private()
def write_page(path: Path, page: ReportPage) -> None:
    """Write a page that is there whole or not at all."""
    write_text(path, rendered(page))


def rendered(page: ReportPage) -> str:
    """The page as HTML.

    Its policy names the one style and the one script by their digests: whatever else a page came to hold would do
    nothing.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined  # here: only who writes a page needs it

    environment = Environment(
        loader=PackageLoader("eval.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    style, script = _static("report.css"), _static("folding.js") + _static("report.js")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return environment.get_template(_TEMPLATE).render(
        page=page,
        policy=policy,
        style=Markup(style),  # noqa: S704  # our own file
        script=Markup(script),  # noqa: S704  # our own file
        blocks=page.blocks.packed,
    )


def _static(name: str) -> str:
    return resources.files("eval.report").joinpath("static", name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
