"""Models of strangers' files as JAX functions on shapes alone, to be traced and checked."""
