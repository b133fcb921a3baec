"""sqlglot's syntax tree, and what is said about parts of it that are not covered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NoReturn

Node = Any
"""Of sqlglot's syntax tree."""

CALLED = "<called>"
"""In a sentence about a part: the name by which the statement calls a function; "it" for what is no call."""

WORDS = {
    "cluster": "CLUSTER BY", "connect": "CONNECT BY", "direction": "FETCH", "distribute": "DISTRIBUTE BY",
    "hint": "a hint", "key_expressions": "USING KEY", "laterals": "LATERAL",
    "limit_options": "LIMIT with PERCENT or WITH TIES", "locks": "FOR UPDATE", "match": "MATCH_RECOGNIZE",
    "pivots": "PIVOT", "sort": "SORT BY", "system_time": "FOR SYSTEM_TIME", "when": "AT",
}  # fmt: skip
"""Parts that sqlglot calls otherwise than a statement does."""

NULL_OF = "null of the type of"
"""The function that stands for a key that a set of GROUP BY has not: of the key."""


def expressions() -> Any:
    """The classes of sqlglot's tree, which is imported where a statement is read."""
    from sqlglot import expressions as found

    return found


def kind_of(node: Node) -> str:
    return type(node).__name__


class NotCoveredError(ValueError):
    """A part of a statement that is not covered."""

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(sentence(node, why))
        self.node, self.why = node, why


def refuse(node: Node, why: str = f"{CALLED} is not covered here") -> NoReturn:
    """One sentence about a part of the statement.

    Raises:
        NotCoveredError: Always.
    """
    raise NotCoveredError(node, why)


def sentence(node: Node, why: str, statement: str = "") -> str:
    """About a part. With the statement a call is shown as it stands there."""
    text = " ".join((call_in(statement, node) or node.sql(dialect="duckdb")).split()).removeprefix(", ")
    text = re.sub(r'"(?:pairs|windows) \d+"\."([^"]+)"', r"\1", text)  # tables of parts of the statement
    is_call = isinstance(node, (expressions().Func, expressions().SubqueryPredicate))
    call = re.fullmatch(r"(\w+)( ?\(.*\))?", text)
    why = why.replace(CALLED, call[1].upper() if call and is_call else "it")
    shown = text if len(text) <= 80 else text[:77] + "..."
    return (
        f"sql: {shown}: {why}: write it another way, or give the tables to DuckDB, which reads columns whole"
    )


def call_in(statement: str, node: Node) -> str | None:
    """The call of a function as a statement has it: sqlglot has one class, and prints one name, for several.

    It notes where most calls stand. One of the others is the first that is read as the same tree.
    """
    import sqlglot

    place = node.meta.get("start")
    tokens = sqlglot.tokenize(statement, dialect="duckdb")
    for k, (name, bracket) in enumerate(pairwise(tokens), 1):
        if bracket.token_type is sqlglot.TokenType.L_PAREN and place in (None, name.start):
            text = statement[name.start : _end_of_brackets(tokens[k:]) + 1]
            if place is not None or _parsed(text) == node:
                return text
    return None


def _end_of_brackets(tokens: Sequence[Any]) -> int:
    """Where the bracket closes that the first token opens; the end where none does."""
    steps = {"L_PAREN": 1, "R_PAREN": -1}
    depths = accumulate(steps.get(token.token_type.name, 0) for token in tokens)
    ends = (int(token.end) for token, depth in zip(tokens, depths, strict=True) if depth == 0)
    return next(ends, int(tokens[-1].end))


def _parsed(text: str) -> Node:
    """None for what is no expression."""
    import sqlglot

    try:
        return sqlglot.parse_one(text, dialect="duckdb")
    except sqlglot.errors.ParseError:
        return None


def check_parts(node: Node, known: set[str]) -> None:
    """Refuses a part of a statement that nothing would look at."""
    for part, value in node.args.items():
        if value and part not in known:
            is_unpivot = part == "pivots" and value[0].args.get("unpivot")
            word = "UNPIVOT" if is_unpivot else WORDS.get(part, part.strip("_").upper().replace("_", " "))
            refuse(node, f"{word} is not covered here")


def check_one_argument(call: Node) -> None:
    """Refuses more arguments of an aggregate: with two, MAX has a list of the first values."""
    if call.args.get("expressions") or call.args.get("count"):
        refuse(call, f"{CALLED} of several values is not covered here")


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
