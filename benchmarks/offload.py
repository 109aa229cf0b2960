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

THREADS = 1  # with two, PyTorch's threads spin at barriers wherever another program takes a core


def torch_steps(width: int, batch: int) -> dict[str, Callable[[], None]]:
    """Return steps of the published dense net in PyTorch: plain, and with weights on the host."""
    import torch

    torch.set_num_threads(THREADS)
    return {
        "torch": _step(_net(width), batch, "cpu"),
        "torch, offloaded": _step(_offloaded(_net(width)), batch, _device()),
    }


def left_out() -> list[str]:
    """Say which peers cannot run here, and why."""
    found = []
    if importlib.util.find_spec("torch") is None:
        found.append("PyTorch: not run, it is not installed (pip install 'sciml-wse[bench]')")
    elif _device() == "cpu":
        found.append("PyTorch's FSDP with CPU offload on a GPU: not run, there is none")
    found.append("DeepSpeed's ZeRO-Offload: not run, it is not among the requirements")
    found.append(
        "accelerate: not run, it is not among the requirements; its cpu_offload is for inference, "
        "and its offloaded training is FSDP's or DeepSpeed's"
    )
    return found


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _net(width: int) -> Any:
    from torch import nn

    sizes = [1000, *[width] * 8, 2]
    layers = [nn.Sequential(nn.Linear(n, m), nn.SiLU()) for n, m in pairwise(sizes)]
    layers[-1][1] = nn.Sigmoid()
    return nn.Sequential(*layers)


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
    for part in (*net, net):
        fully_shard(part, mesh=mesh, offload_policy=policy)
    return net


def _step(net: Any, batch: int, device: str) -> Callable[[], None]:
    import torch
    from torch import nn

    adam = torch.optim.Adam(net.parameters(), lr=1e-4)
    x, y = torch.randn(batch, 1000, device=device), torch.rand(batch, 2, device=device)

    def step() -> None:
        adam.zero_grad(set_to_none=True)
        nn.functional.mse_loss(net(x), y).backward()
        adam.step()

    return step
