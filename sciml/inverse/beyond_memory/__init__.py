"""What does not fit into memory: data sets that are read as a net trains."""
