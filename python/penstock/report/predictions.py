"""What the model predicts beside result lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

from penstock import model
from penstock.report.papers.rows import Term
from penstock.report.papers.run_files import RunLine
from penstock.report.papers.terms import RunIndex

LINK_BYTES = 40
"""Beside data and headers, of a command: its completion entry, behind a header of its own."""


@dataclasses.dataclass(frozen=True)
class Predicted:
    what: str
    law: str
    unit: str
    predicted: float
    measured: float
    line: RunLine

    @property
    def ratio(self) -> float:
        """Measured over predicted."""
        return self.measured / self.predicted

    def as_dict(self) -> dict[str, Any]:
        m = self.line.measurement
        return {
            "what": self.what,
            "law": self.law,
            "unit": self.unit,
            "predicted": self.predicted,
            "measured": self.measured,
            "ratio": self.ratio,
            "id": m.id,
            "file": self.line.file,
            "line": self.line.number,
            "machine": self.line.machine,
            "commit": m.commit,
        }


def predictions(lines: Iterable[RunLine]) -> list[Predicted]:
    """Those that have a result line, in the order of the data's way: drives, link, memory, algorithms."""
    index = RunIndex(lines)
    return [*_depths(index), *_drives(index), *_links(index), *_graphs(index)]


def _depths(index: RunIndex) -> Iterator[Predicted]:
    """Commands in flight and one drive: latency bound, then the drive's rate."""
    for name in ("p5800x", "pm1735", "980pro"):
        drive = model.drive(name)
        for depth in (1, 16, 128, 512):
            rate = min(model.laws.rate_of(depth, drive.latency_us * 1e-6), drive.reads_per_s(512))
            term = Term(f"model.512.hbm.read.depth.{name}", {"depth": str(depth)}, scale=1e-6)
            what = f"{drive.title}, {depth} commands of 512 B in flight"
            yield from _beside(index, what, "Little's law", "M/s", rate * 1e-6, term)


def _drives(index: RunIndex) -> Iterator[Predicted]:
    """Drives behind a Gen4 link, random reads of 512 bytes and of 4 KiB."""
    link, drive = model.link("gen4x16"), model.drive("p5800x")
    for id, block, unit, scale in (("fig5.6.read", 512, "M/s", 1e-6), ("fig5.8.read", 4096, "GB/s", 1.0)):
        for drives in (1, 4, 10):
            packets = -(-block // 256)
            of_link = link.gb_per_s * 1e9 / (block + packets * link.header_bytes + LINK_BYTES)
            rate = min(drive.reads_per_s(block) * drives, of_link)
            predicted = rate * 1e-6 if unit == "M/s" else rate * block / 1e9
            term = Term(id, {"drives": str(drives), "threads": "65536"}, scale=scale)
            what = f"{drives} P5800X behind Gen4 x16, reads of {'512 B' if block == 512 else '4 KiB'}"
            yield from _beside(index, what, "drives or link", unit, predicted, term)


def _links(index: RunIndex) -> Iterator[Predicted]:
    """Reads of 128 bytes by a GPU's threads over Gen5, beside what headers and outstanding reads leave."""
    link = model.link("gen5x16")
    of_headers = link.payload_gb_per_s(128)
    bound = of_headers
    if link.outstanding is not None:
        bound = min(bound, model.laws.rate_of(link.outstanding * 128, link.round_trip_us * 1e-6) / 1e9)
    law = "headers, outstanding reads"
    for what, id, take in (
        ("rows of 1 MiB in place over Gen5 x16", "gather.wide.1048576", "value"),
        ("whole lines in place over Gen5 x16", "miss.line4k.host", "baseline_value"),
        ("misses of whole lines over Gen5 x16", "miss.line4k.host", "value"),
    ):
        yield from _beside(index, what, law, "GB/s", bound, Term(id, {}, take))
    copy = Term("gather.wide.1048576", {}, "details.copy_engine_gb_per_s")
    what = "copy engine over Gen5 x16, packets of 256 B"
    yield from _beside(index, what, "headers", "GB/s", link.payload_gb_per_s(256), copy)


def _graphs(index: RunIndex) -> Iterator[Predicted]:
    """A search is as fast as its lines come: bytes moved over the drives' bandwidth."""
    drive = model.drive("p5800x")
    for title, name in (("BFS", "bfs"), ("CC", "cc"), ("PageRank", "pagerank"), ("SSSP", "sssp")):
        id = f"graph.cold.{name}.kron:24.auto.p5800x4"
        moved = index.term(Term(id, {}, "details.bytes_moved"))
        if moved is not None:
            seconds = moved.value / (4 * drive.reads_per_s(4096) * 4096)
            what = f"{title} of kron:24 over four P5800X"
            yield from _beside(
                index, what, "bytes over bandwidth", "s", seconds, Term(id, {}, "details.seconds")
            )


def _beside(
    index: RunIndex, what: str, law: str, unit: str, predicted: float, term: Term
) -> Iterator[Predicted]:
    found = index.term(term)
    if found is not None:
        yield Predicted(what, law, unit, predicted, found.value, found.lines[0])
