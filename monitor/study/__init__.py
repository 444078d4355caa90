"""What is made of runs once they are on disk: summaries, calibration, reports, studies."""
