"""Training functions run as the machine runs them, on the devices present."""
