"""The configuration: presets, validation, and writing it down."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest
from conftest import case

from anyorder.strategies.policy.advantage import advantages
from anyorder.strategies.policy.config import (
    PRESETS,
    Config,
    PaperReadings,
    resolve,
)

# The paper's text, field by field; the other presets as differences from it.
PAPER = {
    "population": 10, "network": "separate", "hidden": (20,), "masked_input": 0.0,
    "unchosen_input": -1.0, "integer_encoding": "thermometer", "digits_above": 50,
    "generation_order": "random",
    "training_order": "random", "order_per": "candidate", "drop_generation": 0.0,
    "drop_training": 0.0, "drop_decay": 1.0,
    "epochs": 50, "learning_rate": 1e-3, "layer_rates": None, "input_rate": None, "beta": 1.0,
    "kl": "categorical", "clip": 1e-3, "adam": "anew", "adam_beta1": 0.9, "adam_beta2": 0.999,
    "adam_eps": 1e-8, "loss_runs": None, "utility": (1.0, -1.0), "ties": "strict",
    "restart_agreement": None, "restart_patience": 5, "gibbs_sweeps": 10, "critic": None,
    "order_rate": 1e-2, "objective": "ratio", "kl_target": None,
}  # fmt: skip
PAPER_CODE = {
    **PAPER, "hidden": (20, 20), "layer_rates": (1.0, 0.0, 1.0), "masked_input": -1.0,
    "unchosen_input": 0.0, "ties": "sort", "loss_runs": 500,
}  # fmt: skip
DEFAULT = {**PAPER, "input_rate": 12.8, "restart_agreement": 0.995}

# a good value other than the default for every field
OTHER = {
    "population": 3, "network": "univariate", "hidden": (3, 2, 1), "masked_input": -1.0,
    "unchosen_input": 0.5, "integer_encoding": "onehot", "digits_above": 100,
    "generation_order": "fixed",
    "training_order": "none", "order_per": "population", "drop_generation": 1.0,
    "drop_training": 0.25, "drop_decay": 0.993,
    "epochs": 1, "learning_rate": 0.1, "layer_rates": (1.0, 0.0), "input_rate": 1.5, "beta": 0.0,
    "kl": "bernoulli", "clip": 0.05, "adam": "kept", "adam_beta1": 0.0, "adam_beta2": 0.5,
    "adam_eps": 1e-3, "loss_runs": 7, "utility": (3.0, 1.0, 1.0, -2.0), "ties": "average",
    "restart_agreement": None, "restart_patience": 2, "gibbs_sweeps": 3, "critic": 10.0,
    "order_rate": 0.0, "objective": "log", "kl_target": 0.01,
}  # fmt: skip

# a few bad ones; TypeError where the type is wrong
BAD = {
    "population": [1, 0, -5, 2.0, True, "10", None],
    "network": ["conv", "", None, 1],
    "hidden": [(0,), (20, -1), (2.5,), 20, "20", (True,)],
    "masked_input": [-1.5, 2, math.nan, "0", None, False],
    "unchosen_input": [-1.01, 2, math.nan, "0", None],
    "integer_encoding": ["binary", None],
    "digits_above": [1, 2.5, None],
    "generation_order": ["generation", "none", None],
    "training_order": ["same", None],
    "order_per": ["run", None],
    "order_rate": [-1e-3, 1e4, math.nan, None, "1"],
    "drop_generation": [-0.1, 1.1, math.nan, None],
    "drop_training": [-0.1, 1.1, "0.5"],
    "drop_decay": [-0.5, 1.5, None],
    "epochs": [0, -1, 1.5, True, None],
    "learning_rate": [0, -1e-3, math.nan, math.inf, None, True],
    "layer_rates": [(-1.0, 1.0), ("1", 1.0), (math.nan, 1.0), 1.0],
    "input_rate": [0, -1, "12.8", math.nan, math.inf],
    "beta": [-1, math.nan, math.inf, None],
    "kl": ["reverse", None],
    "clip": [0, 0.5, -0.1, math.nan, None],
    "adam": ["new", None, True],
    "adam_beta1": [-0.1, 1.0, None],
    "adam_beta2": [-0.1, 1.0, math.nan],
    "adam_eps": [0, -1e-8, None],
    "loss_runs": [0, -1, 1.5, True],
    "utility": [(1.0,), (), (0.0, 1.0), (math.inf, 0.0), (1.0, math.nan), 1.0, ("1", "-1")],
    "ties": ["random", None],
    "restart_agreement": [0, 1.01, -1, math.nan, "0.9"],
    "restart_patience": [0, -1, 2.5, None],
    "gibbs_sweeps": [0, -1, 1.5, None, True],
    "critic": [0.0, -1.0, 2e6, math.nan, "1"],
    "objective": ["ln", None],
    "kl_target": [0.0, -1.0, 2e6, math.nan, "1"],
}


def fields_of(config: Config) -> dict:
    return {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}


@pytest.mark.parametrize(
    ("name", "fields"), [("paper", PAPER), ("paper-code", PAPER_CODE), ("default", DEFAULT)]
)
def test_presets(name, fields):
    assert fields_of(PRESETS[name]) == fields
    assert resolve(name) is PRESETS[name]


def test_the_default_is_the_default():
    assert Config() == PRESETS["default"]
    assert set(PRESETS) == {"default", "paper", "paper-code", "fast", "balanced"}
    assert resolve(PRESETS["paper"]) is PRESETS["paper"]


def test_curricula():
    """Univariate at first; the paper's settings otherwise on top of the default."""
    fast, balanced = PRESETS["fast"], PRESETS["balanced"]
    assert fields_of(fast) == {
        **DEFAULT, "population": 5, "epochs": 100, "drop_generation": 1.0, "drop_training": 1.0,
        "drop_decay": 0.999,
    }  # fmt: skip
    assert fields_of(balanced) == {
        **DEFAULT, "drop_generation": 1.0, "drop_training": 1.0, "drop_decay": 0.993,
    }  # fmt: skip


def test_resolve_refuses():
    with pytest.raises(ValueError, match=r"unknown preset 'papers' .did you mean 'paper'"):
        resolve("papers")
    with pytest.raises(ValueError, match=r"one of default, paper, paper-code, fast, balanced$"):
        resolve("zzz")
    with pytest.raises(TypeError, match=r"config is 3, expected a Config or the name of a preset"):
        resolve(3)


def test_tables_above_are_whole():
    names = {f.name for f in dataclasses.fields(Config)}
    assert set(OTHER) == set(BAD) == set(PAPER) == names
    assert all(OTHER[name] != getattr(Config(), name) for name in names)


def test_every_field_is_documented():
    for name in PAPER:
        assert re.search(rf"^    {name}\n        \S", Config.__doc__, re.MULTILINE), name
    for field in dataclasses.fields(PaperReadings):
        assert re.search(rf"^    {field.name}\n", PaperReadings.__doc__, re.MULTILINE)


def test_readings_of_the_paper():
    """Presets of the paper differ from each other in these and in the network only."""
    readings = {f.name for f in dataclasses.fields(PaperReadings)}
    differ = {name for name in PAPER if PAPER[name] != PAPER_CODE[name]}
    assert differ - readings == {"hidden"}
    assert isinstance(Config(), PaperReadings)
    with pytest.raises(TypeError, match="positional"):
        Config(10)


@pytest.mark.parametrize("name", OTHER)
def test_round_trip(name):
    config = Config(**{name: OTHER[name]})
    written = config.to_dict()
    assert set(written) == {f.name for f in dataclasses.fields(Config)}
    assert Config.from_dict(written) == config
    again = Config.from_dict(json.loads(json.dumps(written, allow_nan=False)))
    assert again == config
    assert fields_of(again) == fields_of(config)
    assert hash(again) == hash(config)
    assert Config.from_dict({name: OTHER[name]}) == config  # the others have their default


def test_values_are_normal():
    config = Config(hidden=[3, 4], beta=2, layer_rates=[1, 0, 1], utility=[2, 0])
    assert config.hidden == (3, 4)
    assert config.layer_rates == (1.0, 0.0, 1.0)
    assert config.utility == (2.0, 0.0)
    assert isinstance(config.beta, float)
    assert all(isinstance(u, float) for u in config.utility)
    counted = Config(population=np.int64(7), beta=np.float32(0.5), hidden=(np.int32(3),))
    assert counted == Config(population=7, beta=0.5, hidden=(3,))
    json.dumps(counted.to_dict())


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().epochs = 3


@pytest.mark.parametrize(("name", "value"), [(k, v) for k, some in BAD.items() for v in some])
def test_bad_values(name, value):
    """The message names the field and the value, or the entry of a tuple that is wrong."""
    with pytest.raises((TypeError, ValueError)) as caught:
        Config(**{name: value})
    message = str(caught.value)
    assert message.startswith(name)
    entries = value if isinstance(value, tuple) and value else [value]
    assert any(repr(entry) in message for entry in [value, *entries]), message
    with pytest.raises(type(caught.value), match=f"^{re.escape(message)}$"):
        Config().replace(**{name: value})


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"population": 1}, ValueError, "population is 1, expected an integer of at least 2"),
        ({"epochs": 2.5}, TypeError, "epochs is 2.5, expected an integer of at least 1"),
        (
            {"clip": 0},
            ValueError,
            "clip is 0, expected a finite number of at least 1e-07 and of at most 0.49",
        ),
        (
            {"beta": "1"},
            TypeError,
            "beta is '1', expected a finite number of at least 0 and of at most 1e+06",
        ),
        ({"hidden": (3, 0)}, ValueError, "hidden[1] is 0, expected an integer of at least 1"),
        ({"kl": "x"}, ValueError, "kl is 'x', expected 'categorical' or 'bernoulli'"),
        (
            {"utility": (0, 1)},
            ValueError,
            "utility is (0, 1), expected values that do not increase from the best rank to the "
            "worst",
        ),
        (
            {"layer_rates": (1.0,)},
            ValueError,
            "layer_rates is (1.0,), expected 2 entries: hidden=(20,) makes 2 layers with the "
            "output layer",
        ),
    ],
)
def test_messages(settings, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        Config(**settings)


def test_layer_rates_of_a_univariate_policy():
    assert Config(network="univariate", layer_rates=(0.5,)).layer_rates == (0.5,)
    with pytest.raises(ValueError, match="expected 1 entries"):
        Config(network="univariate", layer_rates=(0.5, 1.0))


@pytest.mark.parametrize("call", [Config().replace, lambda **fields: Config.from_dict(fields)])
def test_unknown_fields(call):
    with pytest.raises(ValueError, match=r"unknown setting 'popultion' .did you mean 'population'"):
        call(popultion=3)
    with pytest.raises(ValueError, match="did you mean 'learning_rate'"):
        call(learningrate=0.1)
    with pytest.raises(
        ValueError, match=r"unknown setting 'zzz', expected one of population, network"
    ) as e:
        call(zzz=1)
    assert "did you mean" not in str(e.value)


def test_replace():
    config = Config().replace(epochs=7, hidden=(4,))
    assert (config.epochs, config.hidden) == (7, (4,))
    assert config.replace(epochs=50, hidden=(20,)) == Config()


# Settings that float32 cannot compute with

TOO_LARGE = {
    "beta": 1e38,
    "utility": (1e38, -1e38),
    "learning_rate": 1e30,
    "layer_rates": (1e30, 1.0),
    "input_rate": 1e30,
    "adam_eps": 1e30,
    "clip": 1e-30,
    "loss_runs": 10**400,
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_overflowing_values_are_refused(name):
    with pytest.raises(ValueError, match=rf"^{name}.*expected .*of at (most|least)|from 1 to"):
        Config(**{name: TOO_LARGE[name]})


EXTREMES = [
    {"beta": 1e6},
    {"utility": (1e6, -1e6), "clip": 1e-7},
    {"learning_rate": 1e3, "layer_rates": (1e3, 1e3)},
    {"learning_rate": 1e-300, "input_rate": 1e-300},
    {"adam_eps": 1.0, "loss_runs": 10**6},
    {"beta": 1e6, "utility": (1e6, -1e6), "clip": 1e-7, "learning_rate": 1e3,
     "adam_beta1": 0.999999, "adam_beta2": 0.999999, "kl": "bernoulli"},
]  # fmt: skip


@pytest.mark.parametrize("settings", EXTREMES, ids=str)
def test_the_largest_settings_give_finite_numbers(settings):
    variant = case(n=6, cards=(2, 3, 40), hidden=(4,), runs=1, adam="kept", **settings)
    engine = variant.engine("cpu")
    policy = variant.policy(engine)
    utility = variant.config.utility
    for generation in range(6):
        points, old = engine.sample(policy, variant.draw(generation))
        values = np.random.default_rng(generation).permutation(10).astype(float)
        gain = advantages(values, utility, "strict")[None, :, None]
        gain = np.broadcast_to(gain, points.shape)
        engine.train(policy, variant.answers(points, old, gain, generation))
        assert np.isfinite(old).all()
        assert (old > 0).all()
        for array in (policy.theta, policy.m, policy.v):
            assert np.isfinite(array).all()
