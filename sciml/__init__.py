"""Inverse maps for ODE parameters and super-resolution of wind."""
