"""Ask and tell: any subset, any order, exact state, and errors that change nothing."""

from __future__ import annotations

import copy
import io
import json
import pickle
import warnings

import numpy as np
import pytest
from conftest import refused
from hypothesis import given, settings
from hypothesis import strategies as st

import anyorder as ao
from anyorder.strategies.policy.orders import order_keys
from anyorder.strategies.policy.rng import ORDER_G
from anyorder.strategies.state import CHECKSUM

FAST = ao.policy.Config(epochs=3, hidden=(4,), population=5)
NAMED = {"cache": ao.Binary(), "algo": ao.Categorical(["a", "b", "c"]), "depth": ao.Integer(1, 8)}


def make(
    space: ao.Space | None = None,
    config: ao.policy.Config = FAST,
    engine: str = "cpu",
    graph: np.ndarray | None = None,
    **options: object,
) -> ao.Optimizer:
    algorithm = ao.policy.Policy(config, engine, graph)
    return ao.Optimizer(space or ao.Space.binary(6), algorithm=algorithm, **{"seed": 3, **options})


def weights(points: np.ndarray) -> np.ndarray:
    return np.asarray(points) @ np.arange(1, np.shape(points)[1] + 1.0)


def unlike(points: np.ndarray) -> np.ndarray:
    """A value that no two points share: of equals, the incumbent is the first that was told."""
    return np.asarray(points) @ 10.0 ** np.arange(np.shape(points)[1])


def same_arrays(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> None:
    assert left.keys() == right.keys()
    for name in left:
        assert np.array_equal(left[name], right[name], equal_nan=left[name].dtype.kind == "f"), name


def same_state(one: ao.Optimizer, other: ao.Optimizer) -> None:
    same_arrays(one.state_dict(), other.state_dict())


def search(optimizer: ao.Optimizer) -> dict[str, np.ndarray]:
    """The state of the policy, its candidates in the order of their tickets."""
    state = policy(optimizer)
    order = np.argsort(state["stamps"][:, 0])
    header = json.loads(str(state["header"]))
    del header[CHECKSUM]  # of the candidates in the order in which they were told
    state["header"] = np.array(json.dumps(header))
    return state | {name: state[name][order] for name in ("codes", "probs", "stamps", "values")}


def policy(optimizer: ao.Optimizer) -> dict[str, np.ndarray]:
    return optimizer.strategy.state()


# --- asking ---------------------------------------------------------------------------------------


def test_ask_gives_a_generation_in_the_users_values() -> None:
    candidates = make(ao.Space(NAMED)).ask(known="give")
    assert len(candidates) == FAST.population
    for candidate in candidates:
        assert candidate.keys() == NAMED.keys()
        assert type(candidate["cache"]) is bool
        assert candidate["algo"] in "abc"
        assert candidate["depth"] in range(1, 9)
    matrix = make().ask(3, known="give")
    assert matrix.shape == (3, 6)
    assert matrix.dtype == np.int64


def test_asking_in_parts_gives_the_same_candidates() -> None:
    whole, parts = make(), make()
    np.testing.assert_array_equal(whole.ask(9), np.concatenate([parts.ask(4), parts.ask(5)]))


def test_the_same_seed_gives_the_same_run_on_both_engines() -> None:
    runs = []
    for engine in ("cpu", "reference"):
        optimizer = make(engine=engine)
        asked = []
        for _ in range(6):
            candidates = optimizer.ask()
            optimizer.tell(candidates, weights(candidates))
            asked.append(candidates)
        runs.append(np.concatenate(asked))
    np.testing.assert_array_equal(*runs)
    assert not np.array_equal(runs[0], make(seed=4).ask(30))


# --- telling --------------------------------------------------------------------------------------


def test_the_order_of_telling_does_not_matter() -> None:
    forward, shuffled, one_by_one = make(), make(), make()
    for _ in range(4):
        candidates = forward.ask(known="give")
        values = unlike(candidates)
        forward.tell(candidates, values)
        order = np.array([3, 0, 4, 1, 2])
        assert np.array_equal(shuffled.ask(known="give"), candidates)
        shuffled.tell(candidates[order], values[order])
        assert np.array_equal(one_by_one.ask(known="give"), candidates)
        for k in order:
            one_by_one.tell(candidates[k], values[k])
    for other in (shuffled, one_by_one):
        same_arrays(search(forward), search(other))
        np.testing.assert_array_equal(forward.best, other.best)
        told = forward.archive.values, other.archive.values
        np.testing.assert_array_equal(*map(np.sort, told))
        assert not np.array_equal(*told)  # rows are in the order in which they were told


def test_a_generation_trains_when_enough_answers_are_in() -> None:
    optimizer = make()
    first, second = optimizer.ask(known="give"), optimizer.ask(known="give")
    optimizer.tell(first[:4], weights(first[:4]))
    assert optimizer.generation == 0
    optimizer.tell(second[:1], weights(second[:1]))
    assert optimizer.generation == 1  # four of one ask and one of another make a generation
    optimizer.tell(second[1:], weights(second[1:]))
    assert optimizer.generation == 1
    optimizer.tell(first[4:], weights(first[4:]))  # an answer that comes late
    assert optimizer.generation == 2


def test_candidates_keep_the_distribution_they_were_drawn_from() -> None:
    optimizer = make(config=FAST.replace(learning_rate=0.05))
    optimizer.ask(50)
    early = policy(optimizer)["probs"][:50].copy()
    for _ in range(5):
        candidates = optimizer.ask()
        optimizer.tell(candidates, weights(candidates))
    state = policy(optimizer)
    # telling matches the oldest of equal candidates, so some of the 50 have been answered
    kept = state["stamps"][:, 1] == 0
    numbers = state["stamps"][kept, 0]
    assert kept.sum() > 10
    np.testing.assert_array_equal(state["probs"][kept][numbers < 50], early[numbers[numbers < 50]])


def test_points_never_asked_count_for_the_incumbent_only() -> None:
    optimizer = make(ao.Space.binary(40))
    before = policy(optimizer)["theta"].copy()
    for _ in range(10):
        optimizer.tell(np.ones((1, 40), int), [820.0])
    assert optimizer.best_value == 820.0
    np.testing.assert_array_equal(optimizer.best, np.ones(40))
    assert optimizer.generation == 0
    np.testing.assert_array_equal(policy(optimizer)["theta"], before)


def test_suggestions_come_first_with_the_policys_own_probabilities() -> None:
    optimizer = make()
    optimizer.suggest(np.ones(6, int))
    optimizer.suggest([0, 0, 0, 0, 0, 1])
    candidates = optimizer.ask()
    np.testing.assert_array_equal(candidates[:2], [[1] * 6, [0] * 5 + [1]])
    strategy = optimizer.strategy
    layout, engine = strategy._model, strategy._engine
    keys = np.stack([order_keys(layout, 3, ORDER_G, 0, k) for k in range(5)])
    expected = engine.conditionals(strategy._policy, candidates[None].astype(np.int32), keys[None])[
        0
    ]
    np.testing.assert_allclose(policy(optimizer)["probs"], expected, rtol=2e-6)
    optimizer.tell(candidates, weights(candidates))
    assert optimizer.generation == 1
    assert optimizer.best_value == 21.0


def test_of_equal_candidates_the_latest_generations_is_answered_first() -> None:
    optimizer = make(ao.Space.binary(1), seed=0)  # two points only: every generation has equal ones
    lost = optimizer.ask(8, known="give")
    assert len(np.unique(lost)) == 2
    for generation in range(1, 4):
        candidates = optimizer.ask(known="give")
        optimizer.tell(candidates, candidates[:, 0])
        assert optimizer.generation == generation
    left = policy(optimizer)["stamps"]  # ticket, generation, index, known
    later = left[left[:, 1] > 0]
    assert len(later) == 0  # all that was drawn after the first generation is answered
    # of the first generation's thirteen the five oldest at their points are
    assert len(left) == 8
    assert 0 not in left[:, 0]


def test_lost_answers_do_not_eat_later_ones_after_a_restart() -> None:
    config = ao.policy.Config(
        restart_agreement=0.01, restart_patience=1, population=2, epochs=1, hidden=(2,)
    )
    optimizer = make(ao.Space.binary(2), config)
    candidates = optimizer.ask(4, known="give")
    optimizer.tell(candidates[:2], [1, 2])  # two are never told
    for _ in range(30):
        candidates = optimizer.ask(2, known="give")
        optimizer.tell(candidates, [1, 2])
    assert optimizer.generation == 31


def test_copies_go_on_the_same() -> None:
    optimizer = make()
    candidates = optimizer.ask()
    optimizer.tell(candidates[:2], weights(candidates[:2]))
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        same_state(optimizer, other)


def test_minimising_negates() -> None:
    up, down = make(), make(direction="minimize")
    for _ in range(4):
        candidates = up.ask()
        np.testing.assert_array_equal(down.ask(), candidates)
        up.tell(candidates, weights(candidates))
        down.tell(candidates, -weights(candidates))
    assert down.best_value == -up.best_value
    assert make(direction="minimize").best_value == np.inf


def test_special_values() -> None:
    optimizer = make()
    assert optimizer.best is None
    assert optimizer.best_value == -np.inf
    candidates = optimizer.ask(known="give")
    optimizer.tell(candidates, [-np.inf] * 5)  # all equal, and the worst there is
    assert optimizer.generation == 1
    assert optimizer.best is not None
    assert np.isfinite(policy(optimizer)["theta"]).all()
    candidates = optimizer.ask(known="give")
    with pytest.raises(ValueError, match="value 2 is NaN"):
        optimizer.tell(candidates, [1, 2, np.nan, 3, 4])
    optimizer.tell(candidates, [1, 2, None, 3, np.inf], on_failure="worst")
    assert optimizer.generation == 2
    assert optimizer.best_value == np.inf
    candidates = optimizer.ask(known="give")
    optimizer.tell(candidates, [1, 2, np.nan, 3, 4], on_failure="skip")
    assert optimizer.generation == 2  # four answers do not make a generation of five
    optimizer.tell(optimizer.ask(1, known="give"), [0])
    assert optimizer.generation == 3


def test_constants_only() -> None:
    optimizer = make(ao.Space([ao.Integer(4, 4), ao.Integer(-1, -1)]))
    candidates = optimizer.ask(known="give")
    np.testing.assert_array_equal(candidates, [[4, -1]] * 5)
    optimizer.tell(candidates, range(5))
    assert optimizer.generation == 1


# --- restarts -------------------------------------------------------------------------------------


def test_restarts_when_the_population_has_collapsed() -> None:
    config = FAST.replace(learning_rate=0.05, restart_patience=2, restart_agreement=0.9)
    optimizer = make(config=config)
    fresh = [optimizer.strategy._engine.fresh([3], [k]).theta for k in range(2)]
    assert not np.array_equal(*fresh)
    while not optimizer.restarts:
        candidates = optimizer.ask(known="give")
        optimizer.tell(candidates, weights(candidates))
        assert optimizer.told < 5_000
    assert optimizer.restarts == (optimizer.told,)
    np.testing.assert_array_equal(policy(optimizer)["theta"], fresh[1])
    assert optimizer.best_value == 21.0  # the incumbent stays
    late = policy(optimizer)["theta"].copy()
    optimizer.tell(candidates, weights(candidates))  # points of old, told again: no training
    np.testing.assert_array_equal(policy(optimizer)["theta"], late)


def test_answers_from_before_a_restart_do_not_train() -> None:
    config = FAST.replace(learning_rate=0.05, restart_patience=1, restart_agreement=0.5)
    optimizer = make(config=config)
    early = optimizer.ask()
    while not optimizer.restarts:
        candidates = optimizer.ask()
        optimizer.tell(candidates, weights(candidates))
    generation = optimizer.generation
    optimizer.tell(early, weights(early))
    assert optimizer.generation == generation


def test_no_restarts_unless_asked_for() -> None:
    optimizer = make(config=FAST.replace(learning_rate=0.05, restart_agreement=None))
    for _ in range(60):
        candidates = optimizer.ask(known="give")
        optimizer.tell(candidates, weights(candidates))
    assert optimizer.strategy.diversity < 0.05
    assert optimizer.restarts == ()


# --- state ----------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["ask", "tell", "suggest"]), st.integers(1, 7)), max_size=12
    ),
    kept=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
)
def test_state_round_trip_continues_bit_for_bit(
    steps: list[tuple[str, int]], kept: bool, seed: int
) -> None:
    """Any sequence of calls, then through a file: the two go on the same, told in any order."""
    config = FAST.replace(adam="kept" if kept else "anew", drop_generation=0.3, drop_decay=0.9)
    space = ao.Space([ao.Binary(), ao.Integer(0, 3), ao.Categorical(range(3)), ao.Integer(5, 5)])
    optimizer = make(space, config, seed=seed)
    open_points = np.zeros((0, 4), int)
    for action, count in steps:
        if action == "ask":
            open_points = np.concatenate([open_points, optimizer.ask(count)])
        elif action == "tell" and len(open_points):
            told, open_points = open_points[-count:], open_points[:-count]
            optimizer.tell(told, unlike(told))
        elif action == "suggest":
            optimizer.suggest([1, count % 4, 0, 5])
    file = io.BytesIO()
    np.savez(file, **optimizer.state_dict())
    file.seek(0)
    other = ao.Optimizer.from_state(np.load(file, allow_pickle=False))
    same_state(optimizer, other)
    for _ in range(3):
        candidates = optimizer.ask()
        np.testing.assert_array_equal(other.ask(), candidates)
        order = np.argsort(candidates @ [1, 5, 2, 0], kind="stable")
        optimizer.tell(candidates, unlike(candidates))
        other.tell(candidates[order], unlike(candidates[order]))
    same_arrays(search(optimizer), search(other))


def test_state_with_a_graph_and_another_engine() -> None:
    graph = np.eye(6, k=1, dtype=bool) | np.eye(6, k=-1, dtype=bool)
    optimizer = make(graph=graph)
    candidates = optimizer.ask()
    optimizer.tell(candidates[:3], weights(candidates[:3]))
    moved = ao.Optimizer.from_state(
        optimizer.state_dict(), algorithm=ao.policy.Policy(FAST, "reference", graph)
    )
    assert moved.strategy.engine == "reference"
    np.testing.assert_array_equal(moved.strategy.graph, graph)
    np.testing.assert_array_equal(moved.ask(), optimizer.ask())


def test_bad_states_are_refused() -> None:
    optimizer = make(config=FAST.replace(adam="kept"))
    optimizer.ask()
    state = optimizer.state_dict()
    header, theirs = (json.loads(str(state[name])) for name in ("header", "strategy.header"))
    del theirs["state.crc32"]  # so that what is behind it is checked, too
    state["strategy.header"] = np.array(json.dumps(theirs))

    def changed(**entries: object) -> dict[str, np.ndarray]:
        return state | {"header": np.array(json.dumps(header | entries))}

    def of_the_policy(**entries: object) -> dict[str, np.ndarray]:
        return state | {"strategy.header": np.array(json.dumps(theirs | entries))}

    def policys(**arrays: object) -> dict[str, np.ndarray]:
        return state | {f"strategy.{name}": np.asarray(array) for name, array in arrays.items()}

    moments = state["strategy.adam_v"]
    for bad, message in [
        ({}, "not the state"),
        ({"header": np.array("{")}, "not the state"),
        ({"header": np.array("[" * 100_000)}, "not the state"),
        (changed(format="pickle"), "'pickle', expected 'anyorder-optimizer'"),
        (changed(version=99), "version 99"),
        (changed(version=1), "version 1 .*this is anyorder .*, which reads version 3"),
        (changed(seed="x"), "header is damaged: seed is 'x'"),
        (changed(seed=None), "seed is None"),
        (changed(settings={"beta": -1}), "beta"),
        (changed(settings={**header["settings"], "engine": "gpu"}), "unknown engine 'gpu'"),
        (changed(algorithm="another"), "'another' is a strategy of your own"),
        (changed(algorithm=["policy"]), "header is damaged"),
        (changed(direction="up"), "direction is 'up'"),
        (changed(deterministic=None), "deterministic is None"),
        (changed(space={}), "header is damaged"),
        (of_the_policy(generation=-1), "generation is -1"),
        (of_the_policy(_drawn=2.5), "_drawn is 2.5"),
        (of_the_policy(_next_ticket=10**30), "_next_ticket"),
        ({k: v for k, v in state.items() if k != "strategy.adam_v"}, "adam_v"),
        ({k: v for k, v in state.items() if k != "open_tickets"}, "open_tickets"),
        ({k: v for k, v in state.items() if k != "archive.value"}, "archive of the state"),
        (policys(theta=state["strategy.theta"][:, :-1]), "'theta' holds"),
        (policys(codes=np.zeros((2, 6), np.int32)), "'codes' holds"),
        (policys(theta=state["strategy.theta"].astype(str)), "'theta' holds <U"),
        (policys(theta=state["strategy.theta"] * np.nan), "'theta' has impossible values"),
        (policys(adam_m=moments * np.nan), "'adam_m' has impossible values"),
        (policys(adam_v=moments * np.nan), "'adam_v' has impossible values"),
        (policys(adam_v=moments - 1), "'adam_v' has impossible values"),
        (policys(diversity=np.array(np.nan)), "'diversity' has impossible values"),
        (policys(stamps=np.array(3)), "state of the policy is damaged"),
        (state | {"archive.points": np.full((1, 1), 255, np.uint8)}, "archive of the state"),
        (state | {"archive.status": np.full(3, 77, np.uint8)}, "archive of the state"),
        (state | {"suggested": np.full((1, 6), -1, np.int32)}, "'suggested' has points outside"),
        (state | {"suggested": np.array(3)}, "'suggested' is damaged"),
        (state | {"open_points": np.array(3)}, "'open_points' is damaged"),
        (state | {"open_tickets": np.array(3)}, "open candidates are damaged"),
    ]:
        with pytest.raises(ValueError, match=message):
            ao.Optimizer.from_state(bad)


@pytest.mark.parametrize("name", ["annealing", "p3", "random"])
def test_states_of_strategies_have_a_checksum(name: str) -> None:
    optimizer = ao.Optimizer(ao.Space.binary(6), 0, algorithm=name)
    candidates = optimizer.ask(5)
    optimizer.tell(candidates, weights(candidates))
    state = optimizer.state_dict()
    for key in (key for key in state if key.startswith("strategy.array")):
        if state[key].size:
            changed = state[key].copy()
            changed.reshape(-1)[0] += 1
            with refused(ValueError, "it has been changed since it was made"):
                ao.Optimizer.from_state(state | {key: changed})
    header = json.loads(str(state["strategy.header"]))
    with refused(ValueError, "it has been changed since it was made"):
        other = np.array(json.dumps(header | {"generation": 7}))
        ao.Optimizer.from_state(state | {"strategy.header": other})
    del header["state.crc32"]  # as states had none at first
    plain = np.array(json.dumps(header))
    again = ao.Optimizer.from_state(state | {"strategy.header": plain})
    np.testing.assert_array_equal(again.ask(5), optimizer.ask(5))
    for entry in ({"generation": 1e308}, {"restarts": -1}, {"_next_ticket": 0.5}):
        with refused(ValueError, "damaged"):
            other = np.array(json.dumps(header | entry))
            ao.Optimizer.from_state(state | {"strategy.header": other})
    with refused(ValueError, "needs more memory than there is"):
        ours = json.loads(str(state["header"]))
        ours["space"]["variables"] = [{"type": "binary", "repeat": 10**17}]
        ao.Optimizer.from_state(state | {"header": np.array(json.dumps(ours))})


@settings(max_examples=150)
@given(data=st.data())
def test_any_changed_array_of_a_state_is_refused_or_harmless(data: st.DataObject) -> None:
    """Never another error than ValueError, and what is accepted can be used."""
    optimizer = make(config=FAST.replace(adam="kept"), deterministic=False)
    for _ in range(2):
        candidates = optimizer.ask(7)
        values = [None, *weights(candidates[1:5])]
        optimizer.tell(candidates[:5], values, on_failure="worst")
    optimizer.suggest([1] * 6)
    state = optimizer.state_dict()
    name = data.draw(st.sampled_from(sorted(state)))
    array = state[name]
    kind = data.draw(st.sampled_from(["shape", "type", "gone", "value"]))
    if kind == "gone":
        del state[name]
    elif kind == "shape":
        shape = data.draw(st.sampled_from([(), (0,), (1,), (3, 6), (2, 2, 2)]))
        state[name] = np.zeros(shape, array.dtype)
    elif kind == "type" and array.dtype.kind != "U":
        state[name] = array.astype(data.draw(st.sampled_from(["U9", "S5", "f8", "?", "c16"])))
    elif array.size and array.dtype.kind in "fiub":
        flat = array.reshape(-1).copy()
        place = data.draw(st.integers(0, array.size - 1))
        if array.dtype.kind in "iu":
            limits = np.iinfo(array.dtype)
            extreme = [0, 1, 7, limits.max, limits.min]
        else:
            extreme = [np.nan, np.inf, -1.0, 1e300] if array.dtype.kind == "f" else [True, False]
        with np.errstate(over="ignore"):
            flat[place] = data.draw(st.sampled_from(extreme))
        state[name] = flat.reshape(array.shape)
    elif array.dtype.kind == "U":
        text = str(array)
        place = data.draw(st.integers(0, len(text)))
        state[name] = np.array(text[:place] + data.draw(st.sampled_from('0"{}[-e')) + text[place:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            again = ao.Optimizer.from_state(state)
        except ValueError:
            return
        for _ in range(3):
            candidates = again.ask(5)
            again.tell(candidates, weights(candidates))


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": -1}, ValueError, "seed is -1"),
        ({"seed": 2**64}, ValueError, "seed is 18446744073709551616"),
        ({"seed": 1.5}, TypeError, "seed is 1.5"),
        ({"algorithm": "policy:papers"}, ValueError, "unknown preset 'papers'"),
        ({"algorithm": "policy+engine=gpu"}, ValueError, "unknown engine 'gpu'"),
        ({"direction": "up"}, ValueError, "direction is 'up'"),
        (
            {"algorithm": ao.policy.Policy(graph=np.ones((5, 5)))},
            ValueError,
            r"shape \(5, 5\), expected \(6, 6\)",
        ),
        ({"algorithm": ao.policy.Policy(graph=np.full((6, 6), 0.5))}, ValueError, "float64 values"),
    ],
)
def test_bad_arguments(options: dict[str, object], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        ao.Optimizer(ao.Space.binary(6), **options)
    with pytest.raises(TypeError, match="space is 6, expected a Space"):
        ao.Optimizer(6)


@pytest.mark.parametrize(
    ("candidates", "values", "error", "message"),
    [
        (np.zeros((2, 6), int), [1.0], ValueError, "1 values, expected 2"),
        (np.zeros((1, 5), int), [1.0], ValueError, "5"),
        (np.full((1, 6), 2), [1.0], ValueError, "2"),
        (np.zeros((1, 6)), [1.0], ValueError, "float64"),
        (np.zeros((1, 6), int), ["high"], TypeError, "value 0 is 'high'"),
        (np.zeros((1, 6), int), [[1.0]], TypeError, r"value 0 is \[1.0\]"),
        (np.zeros((1, 6), int), [np.nan], ValueError, "value 0 is NaN"),
        ([[1, 0, 0, 0, 0, 0], [1]], [1.0, 2.0], ValueError, "point 1 has length 1"),
        (np.zeros((1, 6), int), [10**400], ValueError, "value 0 is too large"),
        ("abc", [1.0], ValueError, "point 0 has length 3"),
    ],
)
def test_bad_tells_change_nothing(
    candidates: object, values: object, error: type, message: str
) -> None:
    optimizer, untouched = make(), make()
    optimizer.ask(), untouched.ask()
    with pytest.raises(error, match=message):
        optimizer.tell(candidates, values)
    with pytest.raises(ValueError, match="on_failure is 'ignore'"):
        optimizer.tell(np.zeros((1, 6), int), [1.0], on_failure="ignore")
    with pytest.raises(ValueError, match="n is 0"):
        optimizer.ask(0)
    with pytest.raises(TypeError, match=r"n is 2\.5"):
        optimizer.ask(2.5)
    with pytest.raises(ValueError, match="7"):
        optimizer.suggest([7] * 6)
    with pytest.raises(ValueError, match="suggest takes one candidate, got 2"):
        optimizer.suggest([[0] * 6, [1] * 6])
    with pytest.raises(ValueError, match="suggest takes one candidate, got 0"):
        optimizer.suggest([])
    same_state(optimizer, untouched)
