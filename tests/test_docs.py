"""The documentation agrees with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import extensor as ex

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "adding-an-op.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w/.-]+\.(?:pyx|py|md|h))`:?")


def blocks() -> list[tuple[str, str]]:
    """The code blocks of the page, each with the file that was named last before it."""
    text = PAGE.read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(text):
        names = FILE.findall(FENCE.sub("", text[: fence.start()]))
        # a file followed by a colon introduces blocks; others are mentioned in passing
        introduced = re.findall(r"`([\w/.-]+\.(?:pyx|py|md|h))`:", text[: fence.start()])
        assert names and introduced, f"no file named before {fence[2]!r}"
        found.append((introduced[-1], fence[2]))
    return found


def squeezed(text: str) -> str:
    """Without the differences that line breaks make."""
    return re.sub(r"\s+", " ", text).strip()


@pytest.mark.parametrize(("file", "code"), blocks())
def test_adding_an_op_quotes_the_code(file: str, code: str) -> None:
    source = (ROOT / file).read_text(encoding="utf-8")
    assert squeezed(code) in squeezed(source), f"{PAGE.name} quotes what {file} no longer holds"


def test_adding_an_op_shows_all_five_places() -> None:
    files = {file for file, _ in blocks()}
    kinds = {Path(file).parts[0] for file in files}
    assert kinds == {"extensor", "tests", "docs"}
    assert len(re.findall(r"^## \d", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) == 5


def test_every_function_is_listed() -> None:
    text = (ROOT / "docs" / "functions.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"[`·] ?`?(\w+)[(`]", text)) | set(re.findall(r"`(\w+)`", text))
    missing = [name for name in ex.__all__ if name not in listed]
    assert not missing, f"docs/functions.md lacks {missing}"


def test_listed_functions_exist() -> None:
    text = (ROOT / "docs" / "functions.md").read_text(encoding="utf-8")
    listed = re.findall(r"`(\w+)\(", text)
    assert [name for name in listed if not hasattr(ex, name)] == []


def test_files_named_in_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_site_has_every_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert listed == pages


def test_the_reference_has_every_module() -> None:
    text = "".join(path.read_text("utf-8") for path in (ROOT / "docs" / "api").glob("*.md"))
    shown = set(re.findall(r"^::: extensor\.(\w+)", text, re.MULTILINE))
    modules = {path.stem for path in (ROOT / "extensor").glob("[a-z]*.py")}
    assert shown == modules


def test_links_between_pages() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        links = re.findall(r"\]\(([\w./-]+)(?:#[\w-]*)?\)", page.read_text("utf-8"))
        assert [link for link in links if not (page.parent / link).exists()] == [], page.name
