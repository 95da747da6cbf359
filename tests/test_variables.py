"""Binary, Categorical, Integer: their values, their codes and what they refuse."""

import dataclasses

import numpy as np
import pytest
from conftest import refused

from anyorder import Binary, Categorical, Integer


def test_binary():
    variable = Binary()
    assert variable.values == (False, True)
    assert len(variable) == 2
    assert variable.ordered is False
    assert repr(variable) == "Binary()"
    assert variable == Binary()
    assert hash(variable) == hash(Binary())


@pytest.mark.parametrize("one", [True, 1, np.True_, np.int8(1), np.uint64(1)])
def test_binary_index_accepts_bools_and_ints(one):
    assert Binary().index(one) == 1
    assert type(Binary().index(one)) is int
    assert Binary().index(one - one if not isinstance(one, np.bool_) else np.False_) == 0


@pytest.mark.parametrize("value", [2, -1, "yes", None, 1.0, 0.5, [1]])
def test_binary_index_refuses(value):
    with refused(ValueError, repr(value), "Binary()"):
        Binary().index(value)


def test_integer():
    variable = Integer(-2, 5)
    assert variable.values == range(-2, 6)
    assert len(variable) == 8
    assert variable.ordered is True
    assert repr(variable) == "Integer(-2, 5)"
    assert variable == Integer(np.int16(-2), np.uint8(5))
    assert variable != Integer(-2, 6)
    assert hash(variable) == hash(Integer(np.int16(-2), 5))
    assert type(Integer(np.int64(1), 2).low) is int
    assert [variable.index(v) for v in variable.values] == list(range(8))
    assert variable.index(np.int8(-2)) == 0
    assert variable.index(np.uint64(5)) == 7
    assert type(variable.index(np.int64(5))) is int


def test_integer_constant():
    assert len(Integer(3, 3)) == 1
    assert Integer(3, 3).index(3) == 0


@pytest.mark.parametrize("value", [0, 9, -1, 2**80, 3.0, "3", None])
def test_integer_index_refuses(value):
    with refused(ValueError, repr(value), "Integer(1, 8)"):
        Integer(1, 8).index(value)


@pytest.mark.parametrize("bad", [True, 1.0, "1", None, np.float64(2)])
def test_integer_bounds_must_be_ints(bad):
    with refused(TypeError, "low", repr(bad), "int"):
        Integer(bad, 8)
    with refused(TypeError, "high", repr(bad), "int"):
        Integer(1, bad)


def test_integer_bounds_in_order():
    with refused(ValueError, "low is 4", "high is 3", "low <= high"):
        Integer(4, 3)


def test_integer_must_fit_int32_codes():
    assert len(Integer(1, 2**31 - 1)) == 2**31 - 1
    with refused(ValueError, "low is 0", f"high is {2**31 - 1}", "at most"):
        Integer(0, 2**31 - 1)


def test_categorical():
    variable = Categorical(["b", "a", None, (1, "x")])
    assert variable.values == ("b", "a", None, (1, "x"))
    assert len(variable) == 4
    assert variable.ordered is False
    assert [variable.index(v) for v in variable.values] == [0, 1, 2, 3]
    assert eval(repr(variable)) == variable
    assert hash(variable) == hash(Categorical(iter(variable.values)))
    assert variable != Categorical(["a", "b", None, (1, "x")])
    assert variable != "b"
    assert len(Categorical(["only"])) == 1


def test_categorical_repr_is_short():
    assert len(repr(Categorical(range(100_000)))) < 100
    assert len(repr(Categorical(["x" * 10_000]))) < 100


@pytest.mark.parametrize("values", [[1, True, 1.0], [0, "a", False], [(1,), (1.0,)]])
def test_categorical_refuses_values_that_are_equal(values):
    with refused(ValueError, repr(values[-1]), "which are equal in Python"):
        Categorical([values[0], values[-1]])


def test_categorical_tells_types_apart():
    assert Categorical([1]) != Categorical([1.0])
    assert Categorical([1]) != Categorical([True])
    assert Categorical([(1,)]) != Categorical([(True,)])


@pytest.mark.parametrize(
    ("values", "value", "code"),
    [([0, 1], 1.0, 1), ([0, 1], True, 1), ([0.0, 1.0], np.int64(1), 1), ([(1, 2)], (1.0, 2), 0)],
)
def test_categorical_accepts_the_only_equal_value(values, value, code):
    assert Categorical(values).index(value) == code


@pytest.mark.parametrize("value", ["z", 3, (), ["a"], {"a": 1}, None, float("nan")])
def test_categorical_index_refuses(value):
    with refused(ValueError, repr(value)):
        Categorical(["a", "b"]).index(value)


def test_categorical_turns_numpy_scalars_into_python():
    values = [np.int64(3), np.float32(0.5), np.str_("x"), np.bool_(True), (np.int8(7),)]
    plain = Categorical(values).values
    assert [type(v) for v in plain] == [int, float, str, bool, tuple]
    assert plain == (3, 0.5, "x", True, (7,))
    assert type(plain[4][0]) is int


@pytest.mark.parametrize("values", ["abc", b"abc", 3, None, {"a": 1}])
def test_categorical_wants_a_list(values):
    with refused(TypeError, repr(values), "list"):
        Categorical(values)


def test_categorical_refuses_no_values():
    with refused(ValueError, "empty", "at least one"):
        Categorical([])


@pytest.mark.parametrize("value", [[1, 2], {"k": 1}, (1, [2])])
def test_categorical_refuses_unhashable(value):
    with refused(TypeError, repr(value), "hashable"):
        Categorical(["a", value])


@pytest.mark.parametrize("value", ["twice", 7, None, (1, 2)])
def test_categorical_refuses_repeats(value):
    with refused(ValueError, repr(value), "repeated"):
        Categorical([value, "other", value])


def test_categorical_refuses_repeats_after_conversion():
    with refused(ValueError, "5", "repeated"):
        Categorical([5, np.int64(5)])


@pytest.mark.parametrize("value", [float("nan"), np.float32("nan"), (1, float("nan"))])
def test_categorical_refuses_nan(value):
    with refused(ValueError, "nan", "NaN"):
        Categorical([1.0, value])


@pytest.mark.parametrize("variable", [Binary(), Integer(1, 2), Categorical(["a", "b"])])
def test_variables_are_immutable(variable):
    for name in ("values", "low", "ordered", "new"):
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
            setattr(variable, name, 5)
