"""The weights and the optimizer's state, off the device."""
