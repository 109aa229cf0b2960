"""Nets that read parameters off observations."""
