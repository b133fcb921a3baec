"""The command `penstock`: its groups, their options, and the tables that they print."""
