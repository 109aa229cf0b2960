"""The law of an observation given the parameters, learned from simulations."""
