"""How Sphinx builds these pages as a site: `make docs`. Nothing is fetched, while building or while reading."""

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

import reference  # noqa: E402 - beside this file

project = "lcm"
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
highlight_language = "text"
html_theme = "furo"
html_title = "lcm"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
exclude_patterns = ["pictures", "examples"]
suppress_warnings = ["misc.highlighting_failure", "toc.excluded"]


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (_inline_math, None), (_displayed_math, None))
    app.connect("builder-inited", lambda _: reference.write_components(DOCS / reference.COMPONENTS))
    app.connect("source-read", _link_components)
    app.connect("doctree-read", _name_what_lies_outside)


def _inline_math(writer: Any, node: nodes.math) -> None:
    """As MathML, which browsers show by themselves: no script, no fonts."""
    writer.body.append(_mathml(node, is_block=False))
    raise nodes.SkipNode


def _displayed_math(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f"<div class='formula'>{_mathml(node, is_block=True)}</div>")
    raise nodes.SkipNode


def _mathml(node: nodes.Element, is_block: bool) -> str:
    try:
        return latex2mathml.tex2mathml(node.astext(), as_block=is_block)
    except MathError as error:
        logging.getLogger(__name__).warning("formula: %s in %s", error, node.astext(), location=node)
        return ""


def _link_components(_: Sphinx, name: str, text: list[str]) -> None:
    """On the site each group of the choices leads to its page, which no checkout holds."""
    if name == reference.CHOICES.stem:
        for group in reference.groups():
            text[0] = text[0].replace(
                f"\n## `{group}`\n", f"\n## `{group}`\n\n[How each works](components/{group}.md)\n"
            )


def _name_what_lies_outside(app: Sphinx, tree: nodes.document) -> None:
    """A folder, or a page beside this site, is named and not linked; what does not exist stays a warning."""
    folder = Path(app.env.doc2path(app.env.docname)).parent
    for link in list(tree.findall(addnodes.pending_xref)):
        is_page = link.get("refdomain") == "doc" and link["reftarget"] not in app.env.found_docs
        if (folder / link["reftarget"]).is_dir() or (is_page and Path(f"{link['reftarget']}.md").is_file()):
            link.replace_self(link.children)
