"""Docstrings as reStructuredText: Google's sections, paragraphs of `name: text`, `code` in backticks."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.util.inspect import signature, stringify_signature

SECTION = re.compile(r"[A-Z][a-z]+:$")
OUTCOME = re.compile(r"(Returns|Errors|Raises):?\s+(?=\S)")
CODE = re.compile(r"(?<![`:\w])`([^`]+)`(?!`)")
OURS = re.compile(r"penstock\.(?!py$)[\w.]+")
RAISES = re.compile(r"(?<=[.;]) (?:Raises|Errors:) ")
ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
PAGE = re.compile(r"(?<![`/\w])(docs/[\w/]+)\.md\b")
STAR = re.compile(r"(?<=[\w-])\*(?![*\w])")
OVER_LISTS = ("penstock.gnn.", "penstock.sampling.", "penstock.tiering.")
GRAPH = re.compile(r"(?<![\w.])Graph\b")
GRAPHS = re.compile(r"penstock\.(bfs|cc|pagerank|sssp)")

RETURNED = ("penstock.Array", "penstock.GatherHandle")
GOOGLE = Config(
    napoleon_use_param=False,
    napoleon_use_rtype=False,
    napoleon_use_ivar=True,  # else attributes are documented twice: as members, too
    napoleon_custom_sections=[("Raises", "params_style")],
)


def names_of(thing: Any) -> set[str]:
    """What a docstring may describe: parameters, the options of graph algorithms, properties of a class."""
    bases = inspect.getmro(thing) if inspect.isclass(thing) else ()
    ours = [base for base in bases if OURS.match(base.__module__)]
    names = {name for base in ours for name in vars(base) if not name.startswith("_")}
    try:
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return names
    names |= set(parameters)
    if "options" in parameters:
        from penstock.graph.options import GraphOptions

        names |= set(GraphOptions.__annotations__)
    return names


def described(text: str, names: set[str]) -> list[str]:
    """The items `name: text` or `name, name: text` of a paragraph; none if it does not begin with one."""
    if not names:
        return []
    name = f"(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})"
    item = re.compile(rf"(?:^|(?<=[.;)] )){name}(?:, {name})*: ")
    starts = [found.start() for found in item.finditer(text)]
    if not starts or starts[0] != 0:
        return []
    return [text[at:end].strip() for at, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def paragraphs(lines: list[str]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [each for each in found if each]


def rewritten(paragraph: list[str], names: set[str]) -> list[str]:
    """A paragraph as Google's style or reStructuredText has it."""
    text = " ".join(line.strip() for line in paragraph)
    outcome = OUTCOME.match(text)
    if paragraph[0] == "Returns:" or (outcome and not SECTION.match(paragraph[0])):
        kind = outcome[1].lower() if outcome else "returns"
        body = text[outcome.end() :] if outcome else ""
        return [f":{'returns' if kind == 'returns' else 'Raises'}: {body[:1].upper()}{body[1:]}"]
    if all(line.startswith("    ") for line in paragraph):
        return ["::", "", *paragraph]
    if len(paragraph) > 1 and paragraph[0].endswith(":") and described(f"{paragraph[1]} ", names):
        return [paragraph[0], "", *rewritten(paragraph[1:], names)]
    items = described(text, names)
    if not items:
        return paragraph
    items[-1], *raised = RAISES.split(items[-1], maxsplit=1)
    outcome_lines = ["", f":Raises: {raised[0]}"] if raised else []
    return ["Args:", *(f"    {item}" for item in items), *outcome_lines]


def joined(parts: list[list[str]]) -> list[str]:
    """Paragraphs; lists of parameters that follow each other are one."""
    lines: list[str] = []
    in_parameters = False
    for part in parts:
        parameters = part[0] == "Args:"
        if parameters and in_parameters:
            lines.pop()
            part = part[1:]
        lines += [*part, ""]
        in_parameters = parameters
    return lines


def linked(text: str) -> str:
    """Penstock's names and pages as links, other code as literals; a star within a word is no emphasis."""

    def link(found: re.Match[str]) -> str:
        code = found[1]
        if GRAPHS.fullmatch(code):
            return f":py:obj:`{code} <penstock.graph.{code.rpartition('.')[2]}>`"
        return f":py:obj:`{code}`" if OURS.fullmatch(code) else f"``{code}``"

    return PAGE.sub(r":doc:`\g<0> </\1>`", CODE.sub(link, STAR.sub(r"\*", text)))


def process(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    callable_ = what in ("function", "method", "class", "exception")
    if callable_ or what == "module":
        names = names_of(thing) if callable_ else set()
        text = joined([rewritten(each, names) for each in paragraphs(lines)])
        lines[:] = GoogleDocstring(text, GOOGLE, what=what, name=name, obj=thing, options=options).lines()
    lines[:] = linked("\n".join(lines)).split("\n")


def shown_signature(
    app: Any, what: str, name: str, thing: Any, options: Any, given: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """None of what functions return; of a class over a mocked one that of its `__init__`."""
    if what == "class" and (dataclasses.is_dataclass(thing) or name in RETURNED):
        return "", None
    if what == "class" and given == "(*args: Any, **kwargs: Any)":
        given = stringify_signature(
            signature(thing.__init__, bound_method=True), show_return_annotation=False
        )
    if name.startswith(OVER_LISTS):  # penstock.networkx has a Graph, too
        given, returns = (text and GRAPH.sub("penstock.sampling.Graph", text) for text in (given, returns))
    return given and ALIAS.sub(r"\1", given), returns and ALIAS.sub(r"\1", returns)


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", shown_signature)
