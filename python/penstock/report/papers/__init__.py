"""The figures and tables of the papers beside result lines of ours: what `penstock report` writes.

lines = papers.read_run_files([Path("benchmarks/results")])
figures = papers.load_papers()
report = papers.evaluate(figures, papers.load_answers(figures), lines)
Path("report.html").write_text(papers.page(report))
"""

from __future__ import annotations

from penstock.report.papers.evaluation import evaluate
from penstock.report.papers.listing import Listed, listing
from penstock.report.papers.page import page
from penstock.report.papers.rows import Answer, Figure, Paper, Point, load_answers, load_papers
from penstock.report.papers.run_files import RunLine, read_run_files

__all__ = [
    "Answer",
    "Figure",
    "Listed",
    "Paper",
    "Point",
    "RunLine",
    "evaluate",
    "listing",
    "load_answers",
    "load_papers",
    "page",
    "read_run_files",
]
