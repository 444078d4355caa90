"""Figures of two classes of episodes: intervals, tests, AUROC, conformal ranks, probabilities."""
