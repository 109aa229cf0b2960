"""Weight streaming: weights come and go layer by layer."""
