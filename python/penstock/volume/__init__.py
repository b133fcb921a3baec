"""Arrays, tables and graphs on volumes: what `penstock volume` stores there, by name (docs/VOLUMES.md)."""
