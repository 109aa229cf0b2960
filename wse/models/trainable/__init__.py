"""The models that are known by name, with weights: what `wse run` trains."""
