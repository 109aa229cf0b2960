"""How far samples lie from one another."""
