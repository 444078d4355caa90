"""The Google Robot on a table: pick an object up, move it near another."""
