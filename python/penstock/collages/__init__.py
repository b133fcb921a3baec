"""Collages: a picture made of small ones that look like its parts (Shahar and Silberstein, SYSTOR 2016).

    penstock.collages.make_dataset("holiday", "holiday-tiles")
    made = penstock.collages.collage("portrait.jpg", "holiday-tiles")
    made.save("collage.png")

The dataset's colour histograms and the index over them stay in files; the executor's threads read the
candidates of each block. Pillow reads and writes the pictures: pip install 'penstock[images]'.
"""

from __future__ import annotations

from penstock.collages.collage import Collage, collage
from penstock.collages.dataset import Dataset, make_dataset, make_synthetic_dataset, synthetic_picture

__all__ = [
    "Collage",
    "Dataset",
    "collage",
    "make_dataset",
    "make_synthetic_dataset",
    "synthetic_picture",
]
