"""The page of `penstock report` in a real browser: console, plots, links, width on a phone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from penstock.report import papers

RESULTS = Path(__file__).parents[2] / "benchmarks/results"
NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)
PROBE = """<script>
const boxes = [...document.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect());
const empty = boxes.filter(box => box.width < 1 || box.height < 1);
const targets = [...document.querySelectorAll("a")].map(a => a.getAttribute("href").slice(1));
const broken = targets.filter(id => !document.getElementById(id));
const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
document.title = `plots ${boxes.length} empty ${empty.length} links ${broken.length} over ${over}`;
</script>"""

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here"),
    pytest.mark.skipif(not RESULTS.is_dir(), reason="the results are not beside the package"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, with a script at its end that writes what it finds into the title."""
    known = papers.load_papers()
    text = papers.page(papers.evaluate(known, papers.load_answers(known), papers.read_run_files([RESULTS])))
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(text.replace("</body>", PROBE + "</body>"))
    return path


@pytest.mark.parametrize(("width", "more"), [(1200, ()), (390, ()), (1200, ("--force-dark-mode",))])
def test_a_browser_draws_all_of_it(page: Path, tmp_path: Path, width: int, more: tuple[str, ...]) -> None:
    assert BROWSER is not None
    ran = subprocess.run(
        [
            BROWSER,
            *("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"),
            *(f"--window-size={width},900", f"--user-data-dir={tmp_path}", *more),
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "CONSOLE" not in ran.stderr
    found = re.search(r"<title>plots (\d+) empty (\d+) links (\d+) over (\d+)</title>", ran.stdout)
    assert found
    plots, empty, links, over = map(int, found.groups())
    assert plots == page.read_text().count("<svg ")
    assert (empty, links, over) == (0, 0, 0)
