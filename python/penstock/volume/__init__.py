"""Arrays and graphs on raw namespaces of NVMe drives: what `penstock volume` does (docs/VOLUMES.md)."""
