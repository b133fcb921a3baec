"""From result lines to the numbers of ours: which line a term selects, and what it states."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.model.cost import per_dollar
from penstock.report.papers.rows import Curve, Point, Term
from penstock.report.papers.run_files import RunLine

GRAPH = re.compile(r"\bkron:(\d+)")


@dataclass(frozen=True)
class Found:
    """A number of ours and the lines that it comes from, the first of which it was selected by."""

    value: float
    lines: tuple[RunLine, ...]
    lowest: float | None = None
    """Of the repeats, where the line has each."""
    highest: float | None = None
    instead: str = ""
    """The smaller graph that it was measured over; empty: that of the point."""

    @property
    def verified(self) -> bool | None:
        """Whether all lines are; None where one does not say."""
        stated = [line.verified for line in self.lines]
        return None if None in stated else all(stated)


class RunIndex:
    """Result lines by id."""

    def __init__(self, lines: Iterable[RunLine]) -> None:
        self.by_id: dict[str, list[RunLine]] = defaultdict(list)
        for line in lines:
            self.by_id[line.measurement.id].append(line)

    def point_or_smaller(self, point: Point) -> Found | None:
        """The point, or the same over the largest smaller graph that has all of its lines."""
        if (found := self.point(point)) is not None:
            return found
        asked = max((scale for term in point.ours for scale in scales_of(term.id)), default=0)
        known = {scale for id in self.by_id for scale in scales_of(id) if scale < asked}
        for scale in sorted(known, reverse=True):
            terms = tuple(over_graph(term, scale) for term in point.ours)
            if (found := self.point(replace(point, ours=terms))) is not None:
                return replace(found, instead=f"kron:{scale}")
        return None

    def point(self, point: Point) -> Found | None:
        """None where a term finds no line."""
        found = [self.term(term) for term in point.ours]
        if not found or None in found:
            return None
        parts = [part for part in found if part is not None]
        if len(parts) == 1:
            return parts[0]
        mean = math.exp(math.fsum(math.log(part.value) for part in parts) / len(parts))
        return Found(mean, tuple(line for part in parts for line in part.lines))

    def term(self, term: Term) -> Found | None:
        """The newest line that matches and whose companions the same machine has; before it the newest one
        that has them of one commit: what is compared was measured over the same data."""
        found = [each for line in self._candidates(term) if (each := self._of_line(term, line)) is not None]
        together = (each for each in found if len({line.measurement.commit for line in each.lines}) == 1)
        return next(together, found[0] if found else None)

    def curve(self, curve: Curve) -> list[tuple[float, float]]:
        """The newest value at each x, ascending."""
        points: dict[float, float] = {}
        for line in self.by_id.get(curve.id, []):
            x, y = line.condition(curve.x), line.field(curve.take)
            if x is not None and y is not None and _matches(line, curve.where):
                points[float(x) * curve.x_scale] = float(y) * curve.scale
        return sorted(points.items())

    def _candidates(self, term: Term, machine: str | None = None) -> list[RunLine]:
        """Best first."""
        matching = [
            line
            for line in self.by_id.get(term.id, [])
            if _matches(line, term.where)
            and line.field(term.take) is not None
            and machine in (None, line.machine)
        ]
        matching.reverse()
        if term.pick == "newest" or not matching:
            return matching
        newest = matching[0].measurement.commit
        of_commit = [line for line in matching if line.measurement.commit == newest]
        sign = 1 if term.pick == "lowest" else -1
        return sorted(of_commit, key=lambda line: sign * float(line.field(term.take)))

    def _of_line(self, term: Term, line: RunLine) -> Found | None:
        value = float(line.field(term.take))
        lines = [line]
        for part in (term.minus, term.over):
            if part is None:
                continue
            companion = self._companion(part, line)
            if companion is None:
                return None
            value = value / companion.value if part is term.over else value - companion.value
            lines += companion.lines
        if term.per_dollar is not None:
            value = per_dollar(value, term.per_dollar, term.instead_of)
        samples = [] if len(lines) > 1 or term.take != "value" or term.per_dollar else line.samples()
        return Found(
            value * term.scale,
            tuple(dict.fromkeys(lines)),
            min(samples) * term.scale if samples else None,
            max(samples) * term.scale if samples else None,
        )

    def _companion(self, term: Term, line: RunLine) -> Found | None:
        """From the same line where the id is its own; else of the same machine, the same commit first."""
        if term.id == line.measurement.id and _matches(line, term.where):
            return self._of_line(term, line) if line.field(term.take) is not None else None
        candidates = self._candidates(term, line.machine)
        candidates.sort(key=lambda other: other.measurement.commit != line.measurement.commit)
        return next((found for other in candidates if (found := self._of_line(term, other))), None)


def _matches(line: RunLine, where: Mapping[str, str]) -> bool:
    return all(line.condition(name) == text for name, text in where.items())


def scales_of(id: str) -> list[int]:
    """Of the graphs in an id."""
    return [int(scale) for scale in GRAPH.findall(id)]


def over_graph(term: Term, scale: int) -> Term:
    """The term with graphs of 2^scale vertices at most."""
    id = GRAPH.sub(lambda graph: f"kron:{min(int(graph[1]), scale)}", term.id)
    over, minus = (each and over_graph(each, scale) for each in (term.over, term.minus))
    return replace(term, id=id, over=over, minus=minus)
