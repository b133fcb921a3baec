"""Which columns of a table are the source, the target and the weight of an edge.

Columns are named by the user, or taken by their names where these say what they are, or else by place:
source, target, and perhaps a weight. Indexes of DataFrames and columns without a name are never taken by
themselves."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

SOURCES = frozenset(
    [
        "source",
        "src",
        "from",
        "u",
        "start",
        "origin",
        "sender",
        "follower",
        "citing",
        "subject",
        "node1",
        "id1",
        "vertex1",
        "i",
        "row",
    ]
)
TARGETS = frozenset(
    [
        "target",
        "tgt",
        "dst",
        "dest",
        "destination",
        "to",
        "v",
        "end",
        "receiver",
        "followee",
        "cited",
        "object",
        "node2",
        "id2",
        "vertex2",
        "j",
        "col",
    ]
)
WEIGHTS = frozenset(
    [
        "weight",
        "weights",
        "w",
        "wt",
        "cost",
        "distance",
        "dist",
        "length",
        "capacity",
        "value",
        "val",
        "strength",
    ]
)
OTHERS = frozenset(
    [
        "time",
        "timestamp",
        "ts",
        "date",
        "datetime",
        "year",
        "label",
        "type",
        "kind",
        "relation",
        "rel",
        "predicate",
        "key",
        "id",
        "name",
        "edge",
        "index",
    ]
)
"""What a third column is not taken for a weight by place by."""

_UNNAMED = re.compile(r"\s*|unnamed: ?\d+(_level_\d+)?(\.\d+)*|__index_level_\d+__|__null_dask_index__", re.I)
_OF_NODES = re.compile(r"(node|vertex)?_?(id|key|idx)?$")


@dataclass(frozen=True)
class Chosen:
    """Places of columns, from 0, and what they are called."""

    source: int
    target: int
    weight: int | None
    names: tuple[str, ...]
    """Of these two or three, as sentences have them."""
    left_out: tuple[str, ...]

    @property
    def places(self) -> list[int]:
        return [self.source, self.target, *([] if self.weight is None else [self.weight])]

    def reading(self, rows: int, weight_type: str | None) -> str:
        """What was taken as what, for people."""
        weight = "no weight" if self.weight is None else f"weight {self.names[2]} ({weight_type})"
        text = (
            f"{rows} row{'' if rows == 1 else 's'}: source {self.names[0]}, target {self.names[1]}, {weight}"
        )
        return text + (f"; left out: {', '.join(self.left_out)}" if self.left_out else "")


def is_unnamed(name: str) -> bool:
    """Whether that is what a column without a name, or an index without one, is called."""
    return _UNNAMED.fullmatch(name) is not None


def kind_of(name: str) -> str:
    """ "source", "target", "weight", "other", "head" or "tail", which are both; "" where the name says
    nothing."""
    plain = re.sub(r"[^a-z0-9]+", "", name.casefold().replace("#", ""))
    stem = _OF_NODES.sub("", plain)  # "source_id", "FromNodeId", but not "uid"
    for each in (plain, stem if len(stem) > 1 else "", plain.removeprefix("edge")):
        for kind, names in (("source", SOURCES), ("target", TARGETS), ("weight", WEIGHTS), ("other", OTHERS)):
            if each in names:
                return kind
        if each in ("head", "tail"):
            return each
    return ""


def choose(
    called: str,
    names: Sequence[str] | None,
    count: int,
    given: Sequence[str | int],
    index: Collection[str] = (),
) -> Chosen:
    """The columns of a table that has `count` of them.

    names: None where they have none. given: those that the user names, by name or by number from 0, two or
    with a weight three; empty: none. index: names of those that are an index.
    Raises ValueError with the columns where it is not known which to take.
    """
    titles = [_title(names, i) for i in range(count)]
    if given:
        places = [_place(called, each, names, count) for each in given]
        if len(set(places)) < len(places):
            raise ValueError(
                f"read {called}: columns {_listed(given)}: one is named twice: name different ones"
            )
        return _chosen(titles, places)
    free = [
        i for i in range(count) if names is None or not (is_unnamed(names[i]) or names[i] in index)
    ]  # fmt: skip
    if len(free) < 2:
        raise _unknown(
            called, names, count, "it has no two columns besides indexes and columns without a name"
        )
    kinds = {i: "" if names is None else kind_of(names[i]) for i in free}
    places = _by_name(called, names, count, free, kinds) or _by_place(called, names, count, free, kinds)
    _check_unique(called, names, places)
    return _chosen(titles, places)


def _place(called: str, given: str | int, names: Sequence[str] | None, count: int) -> int:
    if isinstance(given, str) and names is not None and given in names:
        _check_unique(called, names, [names.index(given)])
        return names.index(given)
    if isinstance(given, int) or (given.isascii() and given.isdigit()):
        if 0 <= int(given) < count:
            return int(given)
        raise ValueError(f"read {called}: column {given}: it has {count}: name one by its number from 0")
    shown = f"has {count} columns without names" if names is None else f"has the columns {_listed(names)}"
    raise ValueError(f"read {called}: there is no column '{given}': it {shown}: name others (columns)")


def _by_name(
    called: str, names: Sequence[str] | None, count: int, free: list[int], kinds: dict[int, str]
) -> list[int] | None:
    """Both ends where names say which they are, and a weight where it is known to be one."""
    found = {
        kind: [i for i in free if kinds[i] == kind] for kind in ("source", "target", "weight", "head", "tail")
    }
    sources, targets, weights = found["source"], found["target"], found["weight"]
    if not sources and not targets and found["head"] and found["tail"]:
        # An arc leads from its tail to its head, but (head, relation, tail) is an edge from head to tail.
        if found["tail"][0] < found["head"][0]:
            raise _unknown(called, names, count, "which of 'tail' and 'head' is the source is not known")
        sources, targets = found["head"], found["tail"]
    if not sources or not targets:
        return None
    if len(sources) > 1 or len(targets) > 1 or len(weights) > 1:
        raise _unknown(
            called, names, count, "several columns are called like an end of an edge, or like a weight"
        )
    ends = [sources[0], targets[0]]
    rest = [i for i in free if i not in ends]
    if weights or not rest:
        return ends + weights
    if len(rest) == 1 and rest[0] == free[-1] and kinds[rest[0]] == "":
        return ends + rest
    raise _unknown(called, names, count, "which column is a weight, if any, is not known")


def _by_place(
    called: str, names: Sequence[str] | None, count: int, free: list[int], kinds: dict[int, str]
) -> list[int]:
    if len(free) > 3:
        raise _unknown(called, names, count, "which are the ends of an edge is not known")
    end = ("", "other") if len(free) == 2 else ("",)
    fits = {"source": (*end, "source", "head"), "target": (*end, "target", "tail"), "weight": ("", "weight")}
    for place, role in zip(free, fits, strict=False):
        if kinds[place] not in fits[role]:
            raise _unknown(
                called, names, count, f"{_title(names, place)} is the {role} by place, but not by its name"
            )
    return free


def _check_unique(called: str, names: Sequence[str] | None, places: Sequence[int]) -> None:
    for place in places:
        if names is not None and list(names).count(names[place]) > 1:
            raise ValueError(
                f"read {called}: several columns are called '{names[place]}': "
                "name the columns by their numbers from 0 (columns=(0, 1), on the command line "
                "--columns 0,1), or rename them"
            )


def _chosen(titles: list[str], places: list[int]) -> Chosen:
    taken = tuple(titles[i] for i in places)
    left_out = tuple(title for i, title in enumerate(titles) if i not in places)
    return Chosen(places[0], places[1], places[2] if len(places) > 2 else None, taken, left_out)


def _unknown(called: str, names: Sequence[str] | None, count: int, why: str) -> ValueError:
    shown = f"{count} column{'' if count == 1 else 's'}" + (
        f" ({_listed(names)})" if names is not None else ""
    )
    here, there = ("(0, 1)", "0,1") if names is None else ("(source, target)", "SOURCE,TARGET[,WEIGHT]")
    remedy = (
        "give source, target and perhaps a weight, in this order, or name them "
        f"(columns={here}, on the command line --columns {there})"
    )
    return ValueError(f"read {called}: {shown}: {remedy}, for {why}")


def _title(names: Sequence[str] | None, place: int) -> str:
    return f"column {place}" if names is None or not names[place].strip() else f"'{names[place]}'"


def _listed(names: Sequence[str | int]) -> str:
    shown = [str(name) for name in names[:12]]
    return ", ".join(shown) + (", ..." if len(names) > len(shown) else "")
