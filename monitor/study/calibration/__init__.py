"""Fits of a calibration to recorded runs."""
