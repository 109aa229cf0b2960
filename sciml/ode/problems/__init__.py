"""The reference problems: equation, prior, grid and source in one file each."""
