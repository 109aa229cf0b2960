"""PyTorch beside its own way of keeping weights on the host, FSDP with `CPUOffloadPolicy`.

Weights and optimizer state are shards on the host; each layer's are gathered before it computes,
forward and backward, and freed after it; gradients go back to the shards, and Adam runs on them. It
is meant for a GPU; on a CPU the same code gathers within the host's memory.
"""

import importlib.util
import tempfile
from collections.abc import Callable
from itertools import pairwise
from typing import Any

THREADS = 1  # without a card: where a program takes a core, two threads spin at their barriers


def torch_steps(shape: tuple[int, int] | None) -> dict[str, Callable[[], None]]:
    """Return steps in PyTorch: plain, and with weights on the host.

    Args:
        shape: units and batch of the published dense net; None: the U-Net of `streaming.py`.
    """
    import torch

    if _device() == "cpu":
        torch.set_num_threads(THREADS)

    def made() -> Any:
        return _unet() if shape is None else _net(shape[0])

    def samples(device: str) -> tuple[Any, Any]:
        if shape is None:
            images = torch.randn(2, 8, 2, 32, 32, device=device)
            return images[0], images[1]
        count = shape[1]
        return torch.randn(count, 1000, device=device), torch.rand(count, 2, device=device)

    return {
        "torch": _step(made().to(_device()), *samples(_device())),
        "torch, offloaded": _step(_offloaded(made()), *samples(_device())),
    }


def left_out() -> list[str]:
    """Say which peers cannot run here, and why."""
    found = []
    if importlib.util.find_spec("torch") is None:
        found.append("PyTorch: not run, it is not installed (pip install 'sciml-wse[bench]')")
    elif _device() == "cpu":
        found.append("PyTorch's FSDP with CPU offload on a GPU: not run, there is none")
    found.append("DeepSpeed's ZeRO-Offload: not run, it is not among the requirements")
    found.append(accelerated())
    return found


def accelerated() -> str:
    """Say whether accelerate's `cpu_offload` trains; it is made for inference."""
    if importlib.util.find_spec("accelerate") is None:
        return "accelerate: not run, it is not installed (pip install accelerate)"
    import accelerate
    import torch

    net = accelerate.cpu_offload(_net(64), execution_device=torch.device(_device()))
    samples = torch.randn(10, 1000, device=_device()), torch.rand(10, 2, device=_device())
    _step(net, *samples)()
    found = [parameter.grad is not None for parameter in net.parameters()]
    said = f"{sum(found)} of {len(found)} parameters got a gradient"
    return f"accelerate {accelerate.__version__}, cpu_offload: {said} in a step"


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _net(width: int) -> Any:
    from torch import nn

    sizes = [1000, *[width] * 8, 2]
    layers = [nn.Sequential(nn.Linear(n, m), nn.SiLU()) for n, m in pairwise(sizes)]
    layers[-1][1] = nn.Sigmoid()
    return nn.Sequential(*layers)


def _unet(width: int = 16) -> Any:
    """Two levels of 3 x 3 convolutions, as `streaming.UNet`."""
    import torch
    from torch import nn
    from torch.nn.functional import avg_pool2d, interpolate, silu

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            sizes = [(2, width), (width, 2 * width), (2 * width, 4 * width)]
            ups = [(6 * width, 2 * width), (3 * width, width)]
            self.down = nn.ModuleList(nn.Conv2d(n, m, 3, padding=1) for n, m in sizes)
            self.more = nn.ModuleList(nn.Conv2d(m, m, 3, padding=1) for _, m in sizes)
            self.up = nn.ModuleList(nn.Conv2d(n, m, 3, padding=1) for n, m in ups)
            self.end = nn.Conv2d(width, 2, 1)

        def forward(self, x: Any) -> Any:
            kept = []
            for first, second in zip(self.down, self.more, strict=True):
                x = silu(second(silu(first(x))))
                kept.append(x)
                x = avg_pool2d(x, 2)
            x = kept.pop()
            for layer in self.up:
                skip = kept.pop()
                x = silu(layer(torch.cat([interpolate(x, skip.shape[2:]), skip], 1)))
            return self.end(x)

    return UNet()


def _layers(net: Any) -> list[Any]:
    """What holds weights of its own, or a pair of layers that compute together."""
    from torch import nn

    return (
        list(net)
        if isinstance(net, nn.Sequential)
        else [part for part in net.modules() if isinstance(part, nn.Conv2d)]
    )


def _offloaded(net: Any) -> Any:
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard

    device = _device()
    if not dist.is_initialized():
        backend = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
        place = f"file://{tempfile.mkdtemp()}/store"
        dist.init_process_group(backend, init_method=place, rank=0, world_size=1)
    mesh = init_device_mesh(device, (1,))
    policy = CPUOffloadPolicy(pin_memory=device == "cuda")
    for part in (*_layers(net), net):
        fully_shard(part, mesh=mesh, offload_policy=policy)
    return net


def _step(net: Any, x: Any, y: Any) -> Callable[[], None]:
    import torch
    from torch import nn

    adam = torch.optim.Adam(net.parameters(), lr=1e-4)

    def step() -> None:
        adam.zero_grad(set_to_none=True)
        nn.functional.mse_loss(net(x), y).backward()
        adam.step()
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    return step
