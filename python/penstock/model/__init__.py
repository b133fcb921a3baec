"""A first-principle model of threads that read lines from drives or over a link, and of other hardware.

    system = model.System(model.gpu("a100"), model.link("gen4x16"), model.drive("p5800x"), drives=4)
    print(model.predict(system).gb_per_s_by_warps)

The equations are of the BaM dissertation (4.5, 6.1, 6.2) and of the zero-copy dissertation (2.3.3, 3.3.2).
"""

from __future__ import annotations

from penstock.model import cost, laws
from penstock.model.hardware import Drive, Gpu, Link, drive, gpu, link, names
from penstock.model.prediction import Prediction, System, alternatives, predict

__all__ = [
    "Drive",
    "Gpu",
    "Link",
    "Prediction",
    "System",
    "alternatives",
    "cost",
    "drive",
    "gpu",
    "laws",
    "link",
    "names",
    "predict",
]
