"""States that somebody edited, with checksums that fit: an error at worst, never a crash.

A compiled loop that is given a wrong index writes outside its arrays and ends the process, so the
edits are tried in a process of its own; what must be survived is a list of seeds.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from driving import signed

import anyorder as ao
from anyorder import strategies
from anyorder.strategies.base import Answer
from anyorder.strategies.create import create
from anyorder.strategies.policy.config import Config
from anyorder.strategies.policy.search import PolicySearch

PLAIN = ao.Space(
    {
        "b": ao.Binary(),
        "c": ao.Categorical(list("vwxyzab")),
        "i": ao.Integer(0, 60),
        "d": ao.Binary(when={"b": 1}),
        "j": ao.Integer(0, 4),
    }
)
LISTS = ao.Space(
    {"p": ao.Permutation(list("abcde")), "s": ao.Subset(list("vwxyz")), "b": ao.Binary()}
)
SPACES = {"binary": ao.Space.binary(9), "plain": PLAIN, "lists": LISTS}
EDITS = 12  # of each state


def made(name: str, space: ao.Space) -> Any:
    if name == "policy":
        return PolicySearch(space, 0, Config(population=4), "cpu")
    return create(name, space, 0)


def value(codes: Any) -> float:
    return float(np.sin(codes @ np.arange(1, len(codes) + 1)))


def step(strategy: Any, rounds: int) -> None:
    for _ in range(rounds):
        proposals = strategy.propose(2)
        answers = [
            Answer(ticket, codes, value(codes))
            for ticket, codes in zip(proposals.tickets, proposals.codes, strict=True)
        ]
        strategy.learn(answers)
    strategy.propose(1)  # some proposals wait


def edited(state: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The state with one array changed: values out of range, NaN, another shape or type."""
    arrays = {name: np.array(array) for name, array in state.items()}
    names = [n for n in arrays if n != "header" and arrays[n].dtype.kind in "iufb"]
    if not names:
        return arrays
    name = rng.choice(names)
    array = arrays[name]
    kind = rng.randrange(8)
    if kind == 0:
        array = array.reshape(-1)[: max(array.size - 1, 0)]
    elif kind == 1:
        array = np.concatenate([array.reshape(-1), array.reshape(-1)])
    elif kind == 2:
        array = array.astype(rng.choice([np.int64, np.float64, np.int8, np.float32]))
    elif kind == 3 and array.ndim:
        array = array[:0]
    elif array.size:
        array = array.copy()
        places = [rng.randrange(array.size) for _ in range(rng.choice([1, 3, 50]))]
        wrong = [-1, 1, 2, 7, 1000, 2**31 - 1, -(2**31), 10**9]
        if array.dtype.kind == "f":
            wrong += [np.nan, np.inf, -np.inf, 1e300]
        for place in places:
            with np.errstate(all="ignore"):
                number = np.array(rng.choice(wrong)).astype(array.dtype)
            array.reshape(-1)[place] = number
    arrays[name] = array
    return signed(arrays)


def survive(name: str, kind: str, seeds: range) -> None:
    """Restore edited states and go on with them: any exception will do."""
    space = SPACES[kind]
    strategy = made(name, space)
    step(strategy, 40)
    state = strategy.state()
    for seed in seeds:
        other = made(name, space)
        try:
            other.restore(edited(state, random.Random(seed)))
        except ValueError:
            continue
        try:
            step(other, 6)
        except Exception:
            continue


def works(name: str, kind: str) -> bool:
    try:
        made(name, SPACES[kind])
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("kind", SPACES)
def test_an_edited_state_does_not_end_the_process(kind: str) -> None:
    seed = 0 if "CI" in os.environ else random.randrange(10**6)
    done = subprocess.run(
        [sys.executable, __file__, kind, str(seed)], check=False, capture_output=True, text=True,
        timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, f"seed {seed}: {done.stdout[-300:]} {done.stderr[-2000:]}"


@pytest.mark.parametrize("name", strategies.names())
def test_a_state_with_codes_outside_the_space_is_refused(name: str) -> None:
    """A repair of a list asks for as much memory as the largest code says."""
    space = SPACES["lists"]
    if not works(name, "lists"):
        pytest.skip("has no lists")
    strategy = made(name, space)
    step(strategy, 20)
    state = {key: np.array(array) for key, array in strategy.state().items()}
    edits = 0
    for key, array in state.items():
        codes = array.size and array.dtype == np.int32 and array.shape[-1:] == (len(space),)
        if key != "header" and codes:
            wrong = array.copy()
            wrong.reshape(-1)[:1] = 2**31 - 1
            with pytest.raises(ValueError, match=r"damaged|impossible|outside|lists"):
                made(name, space).restore(signed({**state, key: wrong}))
            edits += 1
    assert edits > 0 or name in ("random", "policy", "cga", "pbil", "umda")


@pytest.mark.parametrize("name", strategies.names())
def test_an_edited_state_is_refused_by_its_checksum(name: str) -> None:
    kind = "lists" if name == "auto" else "binary"
    strategy = made(name, SPACES[kind])
    step(strategy, 10)
    state = strategy.state()
    made(name, SPACES[kind]).restore(state)
    for key, array in state.items():
        if key != "header" and array.size:
            changed = np.ascontiguousarray(array).copy()
            changed.reshape(-1).view(np.uint8)[0] ^= 1
            with pytest.raises(ValueError, match="changed since it was made"):
                made(name, SPACES[kind]).restore({**state, key: changed})


if __name__ == "__main__":
    faulthandler.enable()
    with contextlib.suppress(ImportError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    np.seterr(all="ignore")
    for each in strategies.names():
        if works(each, sys.argv[1]):
            print(each, flush=True)
            survive(each, sys.argv[1], range(int(sys.argv[2]), int(sys.argv[2]) + EDITS))
