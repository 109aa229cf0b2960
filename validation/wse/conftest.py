"""What needs PyTorch is read by the tests that import it, which skip where it is not installed."""

collect_ignore = ["as_pytorch.py", "torch_models.py"]
