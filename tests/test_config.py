"""The configuration: presets, validation, and writing it down."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest

from anyorder.strategies.policy.config import PRESETS, Config, resolve

# The paper's text, field by field; the other presets as differences from it.
TEXT = {
    "population": 10, "network": "separate", "hidden": (20,), "masked_input": 0.0,
    "unchosen_input": -1.0, "integer_encoding": "thermometer", "generation_order": "random",
    "training_order": "random", "order_per": "candidate", "drop_generation": 0.0,
    "drop_training": 0.0, "drop_decay": 1.0,
    "epochs": 50, "learning_rate": 1e-3, "layer_rates": None, "input_rate": None, "beta": 1.0,
    "kl": "categorical", "clip": 1e-3, "adam": "anew", "adam_beta1": 0.9, "adam_beta2": 0.999,
    "adam_eps": 1e-8, "loss_runs": None, "utility": (1.0, -1.0), "ties": "strict",
    "restart_agreement": None, "restart_patience": 5,
}  # fmt: skip
AUTHORS = {
    **TEXT, "hidden": (20, 20), "layer_rates": (1.0, 0.0, 1.0), "masked_input": -1.0,
    "unchosen_input": 0.0, "ties": "sort", "loss_runs": 500,
}  # fmt: skip
DEFAULT = {**TEXT, "input_rate": 12.8, "restart_agreement": 0.995}

# a good value other than the default for every field
OTHER = {
    "population": 3, "network": "univariate", "hidden": (3, 2, 1), "masked_input": -1.0,
    "unchosen_input": 0.5, "integer_encoding": "onehot", "generation_order": "fixed",
    "training_order": "none", "order_per": "population", "drop_generation": 1.0,
    "drop_training": 0.25, "drop_decay": 0.993,
    "epochs": 1, "learning_rate": 0.1, "layer_rates": (1.0, 0.0), "input_rate": 1.5, "beta": 0.0,
    "kl": "bernoulli", "clip": 0.05, "adam": "kept", "adam_beta1": 0.0, "adam_beta2": 0.5,
    "adam_eps": 1e-3, "loss_runs": 7, "utility": (3.0, 1.0, 1.0, -2.0), "ties": "average",
    "restart_agreement": None, "restart_patience": 2,
}  # fmt: skip

# a few bad ones; TypeError where the type is wrong
BAD = {
    "population": [1, 0, -5, 2.0, True, "10", None],
    "network": ["shared", "", None, 1],
    "hidden": [(0,), (20, -1), (2.5,), 20, "20", None, (True,)],
    "masked_input": [-1.5, 2, math.nan, "0", None, False],
    "unchosen_input": [-1.01, 2, math.nan, "0", None],
    "integer_encoding": ["binary", None],
    "generation_order": ["generation", "none", None],
    "training_order": ["same", None],
    "order_per": ["run", None],
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
}


def fields_of(config: Config) -> dict:
    return {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}


@pytest.mark.parametrize(
    ("name", "fields"), [("text", TEXT), ("authors", AUTHORS), ("default", DEFAULT)]
)
def test_presets(name, fields):
    assert fields_of(PRESETS[name]) == fields
    assert resolve(name) is PRESETS[name]


def test_the_default_is_the_default():
    assert Config() == PRESETS["default"]
    assert set(PRESETS) == {"default", "text", "authors"}
    assert resolve(PRESETS["text"]) is PRESETS["text"]


def test_resolve_refuses():
    with pytest.raises(ValueError, match=r"unknown preset 'paper'.*default, text, authors"):
        resolve("paper")
    with pytest.raises(TypeError, match=r"config must be.*got 3"):
        resolve(3)


def test_tables_above_are_whole():
    names = {f.name for f in dataclasses.fields(Config)}
    assert set(OTHER) == set(BAD) == set(TEXT) == names
    assert all(OTHER[name] != getattr(Config(), name) for name in names)


def test_every_field_is_documented():
    for name in TEXT:
        assert re.search(rf"^    (\w+, )*{name}(, \w+)*$", Config.__doc__, re.MULTILINE), name


@pytest.mark.parametrize("name", OTHER)
def test_round_trip(name):
    config = Config(**{name: OTHER[name]})
    written = config.to_dict()
    assert list(written) == [f.name for f in dataclasses.fields(Config)]
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
        ({"population": 1}, ValueError, "population must be at least 2, got 1"),
        ({"epochs": 2.5}, TypeError, "epochs must be an integer, got 2.5"),
        ({"clip": 0}, ValueError, "clip must be above 0 and at most 0.49, got 0"),
        ({"beta": "1"}, TypeError, "beta must be a number, got '1'"),
        ({"hidden": (3, 0)}, ValueError, "hidden[1] must be at least 1, got 0"),
        ({"kl": "x"}, ValueError, "kl must be one of categorical, bernoulli; got 'x'"),
        (
            {"utility": (0, 1)},
            ValueError,
            "utility must not increase from the best rank to the worst, got (0, 1)",
        ),
        (
            {"layer_rates": (1.0,)},
            ValueError,
            "layer_rates has 1 entries (1.0,), but hidden=(20,) makes 2 layers "
            "(the output layer counts)",
        ),
    ],
)
def test_messages(settings, kind, message):
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        Config(**settings)


def test_layer_rates_of_a_univariate_policy():
    assert Config(network="univariate", layer_rates=(0.5,)).layer_rates == (0.5,)
    with pytest.raises(ValueError, match="layer_rates has 2 entries"):
        Config(network="univariate", layer_rates=(0.5, 1.0))


@pytest.mark.parametrize("call", [Config().replace, lambda **fields: Config.from_dict(fields)])
def test_unknown_fields(call):
    with pytest.raises(ValueError, match=r"unknown setting 'popultion' .did you mean 'population'"):
        call(popultion=3)
    with pytest.raises(ValueError, match="did you mean 'learning_rate'"):
        call(learningrate=0.1)
    with pytest.raises(
        ValueError, match=r"unknown setting 'zzz'; there are population, network"
    ) as e:
        call(zzz=1)
    assert "did you mean" not in str(e.value)


def test_replace():
    config = Config().replace(epochs=7, hidden=(4,))
    assert (config.epochs, config.hidden) == (7, (4,))
    assert config.replace(epochs=50, hidden=(20,)) == Config()
