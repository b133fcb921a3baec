"""Leaves out of doxygen's XML what readers of the site have no use for: private members, and `inline`."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def is_private(node: ET.Element) -> bool:
    return node.get("prot") == "private" or node.get("kind", "").startswith("private-")


def prune(path: Path) -> None:
    tree = ET.parse(path)
    for parent in list(tree.iter()):
        for child in [child for child in parent if is_private(child)]:
            parent.remove(child)
        if parent.get("inline") == "yes":  # whether a body stands in its class
            parent.set("inline", "no")
    tree.write(path, encoding="utf-8", xml_declaration=True)


def main() -> None:
    for path in Path(sys.argv[1]).glob("*.xml"):
        if path.name != "index.xml":
            prune(path)


if __name__ == "__main__":
    main()
