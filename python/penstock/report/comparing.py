"""Two sets of result lines, of two machines or two commits, side by side."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

from penstock.report.papers.run_files import RunLine

CHANGED = 0.05
"""Where chance alone makes such a difference less often, it is taken for a change."""
OF_MACHINES = ("server_units", "sms", "threads", "warps")
"""Parameters whose defaults follow from the machine: they may differ in what is compared."""
TIMES = ("s", "ms", "us", "ns")

Key = tuple[str, str, tuple[tuple[str, str], ...]]


@dataclasses.dataclass
class Difference:
    """What both sets have of one id and its parameters."""

    id: str
    params: dict[str, str]
    unit: str
    first: float
    """The newest value of the first set."""
    second: float
    first_samples: int
    second_samples: int
    p: float | None
    """Of Mann and Whitney's rank test, two-sided; None where a set has one value only."""
    differing: dict[str, tuple[str, str]]
    """Parameters that are not the same: those of the machines."""

    @property
    def changed(self) -> bool | None:
        """Whether chance alone makes such a difference less often than CHANGED; None without repeats."""
        return None if self.p is None else self.p < CHANGED

    @property
    def ratio(self) -> float | None:
        """The second over the first."""
        return self.second / self.first if self.first else None

    @property
    def faster(self) -> str:
        """ "first" or "second"; "" where nothing changed, and where the unit is neither a time nor a rate."""
        if (
            not self.changed
            or self.first == self.second
            or not (_is_time(self.unit) or self.unit.endswith("/s"))
        ):
            return ""
        return "second" if (self.second > self.first) != _is_time(self.unit) else "first"

    def as_dict(self) -> dict[str, Any]:
        more = {"ratio": self.ratio, "changed": self.changed, "faster": self.faster}
        return dataclasses.asdict(self) | more


@dataclasses.dataclass
class Comparison:
    differences: list[Difference]
    """Those that changed first, by the size of the change; then the others."""
    only_first: int
    """Ids that the second set does not have."""
    only_second: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "differences": [difference.as_dict() for difference in self.differences],
            "only_first": self.only_first,
            "only_second": self.only_second,
        }


def compare(first: Iterable[RunLine], second: Iterable[RunLine]) -> Comparison:
    """Match lines by id, unit and parameters, of which those that follow from the machine may differ."""
    left, right = _by_key(first), _by_key(second)
    pairs = [(key, key) for key in left if key in right]
    more = [key for key in left if key not in right], [key for key in right if key not in left]
    pairs += _pairs_of_machines(*more)
    differences = [_difference(one, left[one], other, right[other]) for one, other in pairs]
    differences.sort(key=lambda d: (d.changed is not True, -_size(d), d.id, sorted(d.params.items())))
    matched_left, matched_right = {one[0] for one, _ in pairs}, {other[0] for _, other in pairs}
    return Comparison(
        differences,
        len({key[0] for key in left} - matched_left),
        len({key[0] for key in right} - matched_right),
    )


def _by_key(lines: Iterable[RunLine]) -> dict[Key, list[RunLine]]:
    """Oldest first, as they came."""
    found: dict[Key, list[RunLine]] = {}
    for line in lines:
        m = line.measurement
        found.setdefault((m.id, m.unit, tuple(sorted(m.params.items()))), []).append(line)
    return found


def _pairs_of_machines(left: Sequence[Key], right: Sequence[Key]) -> list[tuple[Key, Key]]:
    """Those that differ in parameters of machines only, where there is one such on each side."""
    of_left, of_right = _by_rest(left), _by_rest(right)
    return [
        (keys[0], of_right[rest][0])
        for rest, keys in of_left.items()
        if len(keys) == 1 and len(of_right.get(rest, [])) == 1
    ]


def _by_rest(keys: Sequence[Key]) -> dict[Key, list[Key]]:
    found: dict[Key, list[Key]] = {}
    for id, unit, params in keys:
        rest = tuple(each for each in params if each[0] not in OF_MACHINES)
        found.setdefault((id, unit, rest), []).append((id, unit, params))
    return found


def _difference(one: Key, first: Sequence[RunLine], other: Key, second: Sequence[RunLine]) -> Difference:
    samples, more_samples = _samples(first), _samples(second)
    params, more_params = dict(one[2]), dict(other[2])
    names = [name for name in {**params, **more_params} if params.get(name) != more_params.get(name)]
    return Difference(
        id=one[0],
        params={name: text for name, text in params.items() if name not in names},
        unit=one[1],
        first=first[-1].measurement.value,
        second=second[-1].measurement.value,
        first_samples=len(samples),
        second_samples=len(more_samples),
        p=_rank_test(samples, more_samples),
        differing={name: (params.get(name, ""), more_params.get(name, "")) for name in names},
    )


def _samples(lines: Sequence[RunLine]) -> list[float]:
    """The repeats of the newest line; the values of its machine's lines where it has only their median."""
    newest = lines[-1]
    return newest.samples() or [line.measurement.value for line in lines if line.machine == newest.machine]


def _rank_test(first: Sequence[float], second: Sequence[float]) -> float | None:
    if min(len(first), len(second)) < 2:
        return None
    # Here and not above: it takes half a second, which no other command needs.
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(first, second, alternative="two-sided").pvalue)


def _size(difference: Difference) -> float:
    ratio = difference.ratio
    return abs(math.log(ratio)) if ratio is not None and ratio > 0 else math.inf


def _is_time(unit: str) -> bool:
    return unit.split(" ")[0] in TIMES
