"""The command `wse`."""
