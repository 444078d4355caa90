"""Live views of a run: a terminal dashboard, plain lines, and what both of them show."""
