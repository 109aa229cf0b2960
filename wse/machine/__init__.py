"""What is known of machines, each number with its source. Nothing here needs JAX."""
