"""Recorded runs in other formats: Parquet and LeRobot data sets."""
