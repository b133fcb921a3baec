"""sqlglot's syntax tree, and what is said about parts of it that are not covered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

Node = Any
"""Of sqlglot's syntax tree."""

NULL_OF = "null of the type of"
"""The function that stands for a key that a set of GROUP BY has not: of the key."""


def expressions() -> Any:
    """The classes of sqlglot's tree, which is imported where a statement is read."""
    from sqlglot import expressions as found

    return found


def kind_of(node: Node) -> str:
    return type(node).__name__


def refuse(node: Node, why: str = "is not covered here") -> NoReturn:
    """One sentence about a part of the statement.

    Raises:
        ValueError: Always.
    """
    raise ValueError(sentence(node, why))


def sentence(node: Node, why: str) -> str:
    text = node.sql(dialect="duckdb")
    shown = text if len(text) <= 80 else text[:77] + "..."
    return (
        f"sql: {shown}: {why}: write it another way, or give the tables to DuckDB, which reads columns whole"
    )


def check_parts(node: Node, known: set[str]) -> None:
    """Refuses a part of a statement that nothing would look at."""
    for part, value in node.args.items():
        if value and part not in known:
            refuse(node, f"{part.strip('_').upper().replace('_', ' ')} is not covered here")


def conjuncts(node: Node | None) -> list[Node]:
    """Conditions that stand with AND between them."""
    if node is None:
        return []
    kind = kind_of(node)
    if kind == "Paren":
        return conjuncts(node.this)
    return [*conjuncts(node.this), *conjuncts(node.expression)] if kind == "And" else [node]


def aggregates_in(node: Node) -> Iterator[Node]:
    """The aggregates of an expression, with FILTER, not those in its subqueries."""
    known = expressions()
    if isinstance(node, known.AggFunc) or kind_of(node) == "Filter":
        yield node
        return
    for part in node.iter_expressions() if not isinstance(node, known.Window) else ():
        if not isinstance(part, known.Query):
            yield from aggregates_in(part)


def columns_in(node: Node) -> Iterator[Node]:
    """The columns that an expression or a SELECT names, not those in its subqueries."""
    todo = [node]
    while todo:
        each = todo.pop()
        if kind_of(each) == "Column" and kind_of(each.this) != "Star":
            yield each
        todo += [part for part in each.iter_expressions() if not isinstance(part, expressions().Query)]
