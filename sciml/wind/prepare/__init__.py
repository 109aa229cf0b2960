"""Fields made ready for learning: coarse and fine, in parts, in channels, in patches."""
