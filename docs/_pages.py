"""What MkDocs does to every page of the site beyond its own work.

Formulas become MathML, drawn by the browser itself, without a script or the network: the arithmatex
extension marks what stands between dollar signs, and each is converted here. A formula that cannot
be converted stops the build. Examples that show a session (``>>>``) are coloured as one.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<(span|div) class="arithmatex">(?:\\\((.*?)\\\)|\\\[(.*?)\\\])</\1>', re.DOTALL
)

# Between a function's name and the letter beside it, TeX leaves a thin space.
NAME = r"<mi>(?:sin|cos|tanh|ln)</mi>"
SPACE = '<mspace width="0.17em"/>'
BEFORE = re.compile(rf"(?<=</mi>)(?={NAME})")
AFTER = re.compile(rf"({NAME})(?=<m[ins])")


def _mathml(match: re.Match[str]) -> str:
    inline = match[2] is not None
    latex = unescape(match[2] if inline else match[3]).strip()
    mathml = convert(latex, display="inline" if inline else "block")
    return AFTER.sub(rf"\1{SPACE}", BEFORE.sub(SPACE, mathml))


def on_page_markdown(markdown: str, **_: Any) -> str:
    return re.sub(r"^```python\n(?=>>> )", "```pycon\n", markdown, flags=re.MULTILINE)


def on_page_content(html: str, **_: Any) -> str:
    return FORMULA.sub(_mathml, html)
