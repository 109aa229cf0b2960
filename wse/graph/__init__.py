"""A training function as a row of layers: traced, cut, counted."""
