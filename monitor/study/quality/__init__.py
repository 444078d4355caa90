"""Execution, safety and grades of recorded episodes, and how far raters agree on them."""
