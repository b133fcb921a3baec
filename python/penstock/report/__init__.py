"""Plots and tables of measurements."""
