"""What nets of both kinds are made of."""
