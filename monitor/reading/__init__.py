"""Reading of steps: anything that a loop hands in becomes finite numbers, or a fault."""
