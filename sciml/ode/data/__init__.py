"""Simulations as labelled data: drawn, kept, recognised."""
