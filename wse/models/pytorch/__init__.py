"""Modules of PyTorch as JAX functions: core ATen, mapped one operation at a time."""
