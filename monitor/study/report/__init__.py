"""The report page about recorded runs: its figures, tables and template."""
