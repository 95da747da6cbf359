"""The policy: n conditional distributions, sampled in random orders, trained by policy gradient.

    rng.py        the random stream, a function of (seed, generation, purpose, candidate, variable)
    layout.py     where inputs, outputs and parameters lie
    orders.py     who sees whom
    advantage.py  from values to advantages
    base.py       what an engine is: `fresh`, `sample`, `conditionals`, `train`
    memory.py     how many runs the machine's memory holds
    reference.py  engine "reference": NumPy, meant to be read
    cpu.py        engine "cpu": threads over kernels.py, compiled by Numba
    cuda/         engine "cuda": Triton kernels

`create` below is the only way from a name to an engine. Naming one that cannot serve is an error
that says why; "auto" takes the fastest that can, and `choose` tells which that is, and why.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import re
import sys
from importlib import metadata
from pathlib import Path

from anyorder.strategies.policy.engines.base import Batch, Draw, Engine, Policy
from anyorder.strategies.policy.layout import Layout, make_layout

__all__ = ["ENGINES", "Batch", "Draw", "Engine", "Layout", "Policy", "choose", "create",
           "make_layout", "why_not"]  # fmt: skip

ENGINES = {
    "cuda": "Triton kernels on an NVIDIA GPU, many runs at once",
    "cpu": "compiled loops on all cores (Numba)",
    "reference": "plain NumPy: slow, to read and to check against",
}

_TRITON = (3, 6)  # the oldest that the kernels are tested with
_CAPABILITY = (8, 0)  # the first GPUs that multiply bfloat16
# Multiply-adds of a generation (parameters x population x epochs x runs) from which a GPU pays. One
# takes 1.4 to 2 ms whatever its size; 16 cores are slower than that from 3e6 on (benchmarks/cuda.py
# auto, results/cuda_auto.csv). But PyTorch and the kernels take seconds to start (`first_call_s` in
# results/cuda.csv), which a thousand generations win back at 1e8.
_WORTH_A_GPU = 1e8

_log = logging.getLogger("anyorder")


def why_not(name: str) -> str | None:
    """Why the engine cannot run here, or None if it can."""
    if name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}; there are {', '.join(ENGINES)}")
    if name == "cpu" and importlib.util.find_spec("numba") is None:
        return "Numba is not installed (pip install numba)"
    if name == "cuda":
        return _why_no_cuda()
    return None


def choose(layout: Layout, runs: int = 1) -> tuple[str, str]:
    """The engine that "auto" takes for so many runs at once, and why."""
    missing = _why_no_cuda() if _may_have_a_gpu() else "there is no NVIDIA GPU"
    work = layout.parameters * layout.config.population * layout.config.epochs * runs
    if missing is None:
        amount = f"a generation is {work:.2g} multiply-adds and a GPU pays from {_WORTH_A_GPU:.2g}"
        if work >= _WORTH_A_GPU:
            return "cuda", amount
        missing = amount
    absent = why_not("cpu")
    return ("cpu", missing) if absent is None else ("reference", f"{missing}; {absent}")


def create(name: str, layout: Layout, runs: int = 1) -> Engine:
    """The engine of that name, or the fastest one for "auto" and so many runs at once."""
    if name == "auto":
        name, reason = choose(layout, runs)
        _log.info("engine %s: %s", name, reason)
    if not isinstance(name, str) or name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}; there are auto, {', '.join(ENGINES)}")
    missing = why_not(name)
    if missing is not None:
        raise RuntimeError(f"the engine {name!r} cannot run here: {missing}")
    if name == "cuda":
        from anyorder.strategies.policy.engines.cuda import CudaEngine

        engine: Engine = CudaEngine(layout)
    elif name == "reference":
        from anyorder.strategies.policy.engines.reference import ReferenceEngine

        engine = ReferenceEngine(layout)
    else:
        from anyorder.strategies.policy.engines.cpu import CpuEngine

        _say_when_compiling()
        engine = CpuEngine(layout)
    engine.runs_that_fit(1, 0)  # or say how much memory it would take
    return engine


def _may_have_a_gpu() -> bool:
    """Whether it is worth the seconds that importing PyTorch takes."""
    devices = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl")
    return sys.platform == "win32" or any(Path(device).exists() for device in devices)


def _why_no_cuda() -> str | None:
    extra = "pip install 'anyorder[cuda]'"
    for module, title in (("torch", "PyTorch"), ("triton", "Triton")):
        if importlib.util.find_spec(module) is None:
            return f"{title} is not installed ({extra})"
    try:
        version = metadata.version("triton")
    except metadata.PackageNotFoundError:  # a build of it under another name
        try:
            version = importlib.import_module("triton").__version__
        except (ImportError, OSError) as error:
            return f"Triton is installed, but does not import: {error}"
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < _TRITON:
        return f"Triton {version} is too old, expected {'.'.join(map(str, _TRITON))} or later"
    if os.environ.get("TRITON_INTERPRET") == "1":
        return None  # its interpreter needs no GPU
    try:
        import torch
    except (ImportError, OSError) as error:
        return f"PyTorch is installed, but does not import: {error}"

    if torch.version.cuda is None:
        return f"PyTorch {torch.__version__} is a build without CUDA"
    if not torch.cuda.is_available():
        return "PyTorch finds no NVIDIA GPU, or none that its CUDA can use"
    capability = torch.cuda.get_device_capability()
    if capability < _CAPABILITY:
        return (
            f"{torch.cuda.get_device_name()} has compute capability {capability[0]}."
            f"{capability[1]}, expected {_CAPABILITY[0]}.{_CAPABILITY[1]} or later"
        )
    return None


def _say_when_compiling() -> None:
    """On the first run of an installation, say why nothing happens for a while."""
    from anyorder.strategies.policy.engines import kernels

    if sys.stderr.isatty() and not kernels.cached():
        print(
            "anyorder: compiling the cpu engine, once (about 20 s); later runs find it on disk",
            file=sys.stderr,
        )
