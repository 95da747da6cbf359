"""Engines: sampling from a policy and training it.

    base.py       the protocol: `fresh`, `sample`, `conditionals`, `train`, and the arrays exchanged
    memory.py     the number of runs that fit in memory
    reference.py  engine "reference": NumPy, written to be read
    cpu.py        engine "cpu": threads over kernels.py, compiled by Numba
    shared_cpu/   engine "cpu" for the shared network
    cuda/         engine "cuda": Triton kernels

    model.network.kind, name ──> ENGINE_CLASSES ──> the class, imported when it is needed

Engines are made from names by `create` only. If an engine is named and cannot run, an error says
why; "auto" takes the fastest engine that can run, and `choose` tells which one, and why.
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

from anyorder._internal.checks import unknown
from anyorder._internal.compiling import announce_compilation
from anyorder.strategies.policy.engines.base import Batch, Draw, Engine, Policy
from anyorder.strategies.policy.model import Model, make_model, model_of
from anyorder.strategies.policy.networks import Network

__all__ = ["ENGINES", "ENGINE_CLASSES", "Batch", "Draw", "Engine", "Model", "Policy", "choose",
           "create", "make_model", "model_of", "why_not"]  # fmt: skip

ENGINES = {
    "cuda": "Triton kernels on an NVIDIA GPU, many runs at once",
    "cpu": "compiled loops on all cores (Numba)",
    "reference": "plain NumPy: slow, to read and to check against",
}

# The class that computes a kind of network: a module beside this one, and a name in it. A new kind
# of network is a file in `networks/`, and an entry here for each engine that can compute it.
ENGINE_CLASSES = {
    ("separate", "cuda"): ("cuda", "CudaEngine"),
    ("separate", "cpu"): ("cpu", "CpuEngine"),
    ("separate", "reference"): ("reference", "ReferenceEngine"),
    ("shared", "cuda"): ("cuda", "SharedCudaEngine"),
    ("shared", "cpu"): ("shared_cpu", "SharedCpuEngine"),
    ("shared", "reference"): ("reference", "ReferenceEngine"),
}

_TRITON = (3, 6)  # the oldest version with which the kernels are tested
_CAPABILITY = (8, 0)  # the first GPUs that multiply bfloat16
# Multiply-adds of a generation (those of a forward pass x population x epochs x runs) from which
# "auto" takes a GPU. A generation on the GPU takes 1.4 to 2 ms whatever its size, and 16 cores are
# slower than that from 3e6 on (benchmarks/cuda.py auto, results/cuda_auto.csv). But PyTorch and the
# kernels take seconds to start (`first_call_s` in results/cuda.csv); a thousand generations make up
# for that at 1e8.
_WORTH_A_GPU = 1e8
# The most units of two shared hidden layers on a GPU: the weights between them are kept on the
# chip.
_WIDEST_PAIR = 128
_NO_MASKS = "has no masks for lists"

_log = logging.getLogger("anyorder")


def why_not(name: str, network: str = "separate") -> str | None:
    """Return why an engine cannot run here, or cannot compute a kind of network; None if it can."""
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    if (network, name) not in ENGINE_CLASSES:
        able = [engine for kind, engine in ENGINE_CLASSES if kind == network]
        return f"it does not compute {network} networks; engines that do: {', '.join(able)}"
    if name == "cpu" and importlib.util.find_spec("numba") is None:
        return "Numba is not installed (pip install numba)"
    if name == "cuda":
        return _why_no_cuda()
    return None


def choose(model: Model[Network], runs: int = 1) -> tuple[str, str]:
    """Return the engine that "auto" takes for `runs` runs at once, and the reason."""
    config, kind = model.config, model.network.kind
    missing: str | None = "there is no NVIDIA GPU"
    if _may_have_a_gpu():
        missing = why_not("cuda", kind) or _not_on_a_gpu(model)
    work = model.network.multiply_adds * config.population * config.epochs * runs
    if missing is None:
        amount = f"a generation is {work:.2g} multiply-adds and a GPU pays from {_WORTH_A_GPU:.2g}"
        if work >= _WORTH_A_GPU:
            return "cuda", amount
        missing = amount
    absent = why_not("cpu", kind)
    return ("cpu", missing) if absent is None else ("reference", f"{missing}; {absent}")


def create(name: str, model: Model[Network], runs: int = 1) -> Engine:
    """Return a new engine of that name; "auto" is the fastest one for `runs` runs at once."""
    if name == "auto":
        name, reason = choose(model, runs)
        _log.info("engine %s: %s", name, reason)
    if not isinstance(name, str) or name not in ENGINES:
        raise unknown("engine", name, ["auto", *ENGINES])
    if name == "cuda" and model.groups:
        raise RuntimeError(f"the engine {name!r} {_NO_MASKS}, expected 'cpu' or 'auto'")
    missing = why_not(name, model.network.kind)
    if missing is None and name == "cuda":
        missing = _not_on_a_gpu(model)
    if missing is not None:
        raise RuntimeError(f"the engine {name!r} cannot run here: {missing}")
    if name == "cpu" and model.network.kind == "shared":
        from anyorder.strategies.policy.engines.shared_cpu.kernels import training

        announce_compilation(training.slopes, "the cpu engine for shared networks", 20)
    elif name == "cpu":
        from anyorder.strategies.policy.engines import kernels

        announce_compilation(kernels.train, "the cpu engine", 20)
    module, attribute = ENGINE_CLASSES[model.network.kind, name]
    engine: Engine = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)(model)
    engine.runs_that_fit(1, 0)  # raises MemoryError if not even one run does
    return engine


def _not_on_a_gpu(model: Model[Network]) -> str | None:
    """Return why the engine "cuda" cannot compute a model; None if it can."""
    config = model.config
    if model.groups:
        return f"it {_NO_MASKS}"
    if model.network.kind == "shared":
        if config.critic is not None:
            return f"it does not compute a critic of shared networks (critic={config.critic})"
        if config.generation_order == "learned":
            return "it does not learn orders of shared networks (generation_order='learned')"
        if config.generation_order == "gibbs":
            return "it does not sample shared networks by sweeps (generation_order='gibbs')"
        if len(config.hidden) not in (1, 2):
            return f"it computes shared networks of one or two hidden layers, not {config.hidden}"
        if len(config.hidden) == 2 and max(config.hidden) > _WIDEST_PAIR:
            return (
                f"it computes two shared hidden layers of up to {_WIDEST_PAIR} units, not "
                f"{config.hidden}"
            )
        if model.graph is not None or config.drop_generation or config.drop_training:
            return "it computes shared networks without dropout and without a known graph"
        if config.training_order == "none":
            return "it trains shared networks under orders (training_order='none')"
    return None


def _may_have_a_gpu() -> bool:
    """Return whether there may be a GPU, which is worth the seconds of importing PyTorch."""
    devices = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl")
    return sys.platform == "win32" or any(Path(device).exists() for device in devices)


def _why_no_cuda() -> str | None:
    if sys.platform != "linux" and importlib.util.find_spec("triton") is None:
        return "it requires Triton, which is for Linux"
    extra = "pip install 'anyorder[cuda]'"
    for module, title in (("torch", "PyTorch"), ("triton", "Triton")):
        if importlib.util.find_spec(module) is None:
            return f"{title} is not installed ({extra})"
    try:
        version = metadata.version("triton")
    except metadata.PackageNotFoundError:  # a build under another name
        try:
            version = importlib.import_module("triton").__version__
        except (ImportError, OSError) as error:
            return f"Triton is installed, but does not import: {error}"
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < _TRITON:
        return f"Triton {version} is too old, expected {'.'.join(map(str, _TRITON))} or later"
    if os.environ.get("TRITON_INTERPRET") == "1":
        return None  # the interpreter needs no GPU
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
