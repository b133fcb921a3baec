"""The formats of files that arrays lie in: one module each, which finds where the array is."""
