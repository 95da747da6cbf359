"""Spaces: construction, encoding and decoding, JSON."""

import copy
import enum
import json
import pickle
import sys
from collections import namedtuple
from fractions import Fraction

import numpy as np
import pytest
from conftest import refused
from hypothesis import given
from hypothesis import strategies as st

from anyorder import Binary, Categorical, Integer, Space

MIXED = {"cache": Binary(), "algo": Categorical(["a", "b", None]), "depth": Integer(1, 8)}
GOOD = {"cache": True, "algo": "b", "depth": 3}


# Construction of spaces


def test_named_space():
    space = Space(MIXED)
    assert len(space) == 3
    assert space.named is True
    assert space.names == ("cache", "algo", "depth")
    assert space.variables == tuple(MIXED.values())
    assert space.size == 2 * 3 * 8
    assert type(space.size) is int
    assert space.cardinalities.tolist() == [2, 3, 8]
    assert space.cardinalities.dtype == np.int32
    assert space.ordered.tolist() == [False, False, True]
    assert space.ordered.dtype == np.bool_


def test_nameless_space():
    space = Space(iter([Binary(), Integer(1, 8)]))
    assert space.named is False
    assert space.names is None
    assert space.cardinalities.tolist() == [2, 8]
    assert Space.binary(3) == Space([Binary()] * 3)
    assert Space.categorical(2, 4) == Space([Categorical(range(4))] * 2)


def test_constants_make_a_space_of_one_point():
    space = Space([Integer(4, 4), Categorical([-3])])
    assert space.size == 1
    assert space.encode([[4, -3]]).tolist() == [[0, 0]]


@pytest.mark.parametrize("empty", [{}, [], ()])
def test_space_refuses_no_variables(empty):
    with refused(ValueError, "empty", "at least one"):
        Space(empty)


@pytest.mark.parametrize("bad", [5, None, Binary()])
def test_space_refuses_what_is_no_collection(bad):
    with refused(TypeError, repr(bad), "dict or a list"):
        Space(bad)


@pytest.mark.parametrize("name", ["", 3, None, ("a",)])
def test_space_refuses_bad_names(name):
    with refused(ValueError, "name", repr(name), "non-empty str"):
        Space({"fine": Binary(), name: Binary()})


@pytest.mark.parametrize("bad", [[0, 1], "binary", 2, None, Binary])
def test_space_names_what_is_no_variable(bad):
    kinds = "Binary, Categorical, Integer, Float, Ordinal, Permutation, Sequence or Subset"
    with refused(TypeError, "'odd'", repr(bad), kinds):
        Space({"fine": Binary(), "odd": bad})
    with refused(TypeError, "variable 1", repr(bad)):
        Space([Binary(), bad])


def test_space_refuses_pairs():
    with refused(TypeError, "variable 0", "('a', Binary())"):
        Space([("a", Binary())])


@pytest.mark.parametrize("value", ["a", None, 1.0, True, (1,), 2**63, -(2**63) - 1])
def test_nameless_space_needs_integers(value):
    with refused(ValueError, "variable 1", repr(value), "names"):
        Space([Binary(), Categorical([5, value])])


def test_nameless_space_needs_64_bits():
    with refused(ValueError, "variable 0", str(2**63), "names"):
        Space([Integer(2**63 - 1, 2**63)])
    assert Space({"x": Integer(2**70, 2**70 + 1)}).one([1]) == {"x": 2**70 + 1}


@pytest.mark.parametrize(("bad", "kind"), [(0, ValueError), (-1, ValueError), (2.0, TypeError)])
def test_counts(bad, kind):
    with refused(kind, "n is", repr(bad)):
        Space.binary(bad)
    with refused(kind, "n is", repr(bad)):
        Space.categorical(bad, 3)
    with refused(kind, "d is", repr(bad)):
        Space.categorical(3, bad)


def test_equality_and_hash():
    same = Space(dict(MIXED))
    assert same == Space(MIXED)
    assert hash(same) == hash(Space(MIXED))
    assert Space(dict(reversed(MIXED.items()))) != same
    assert Space({"x": Binary()}) != Space([Binary()])
    assert Space({"x": Binary()}) != Space({"y": Binary()})
    assert Space([Binary()]) != Space([Integer(0, 1)])
    assert Space([Binary()]) != Space([Categorical([0, 1])])
    assert Space.binary(3) != Space.binary(4)
    assert Space({"x": Categorical([1])}) != Space({"x": Categorical([True])})
    assert Space.binary(3) != "Space"


def test_repr():
    for space in (Space(MIXED), Space([Binary(), Binary(), Integer(1, 8)]), Space.binary(10_000)):
        assert eval(repr(space)) == space
    assert repr(Space.binary(10_000)) == "Space([Binary()] * 10000)"


def test_repr_is_short():
    named = Space({f"variable {i}": Categorical(range(50)) for i in range(10_000)})
    nameless = Space([Integer(0, i % 7) for i in range(10_000)])
    for space in (named, nameless):
        assert len(repr(space)) < 800
        assert "10000" in repr(space)


def test_space_is_immutable():
    space = Space(MIXED)
    with pytest.raises(ValueError, match="read-only"):
        space.cardinalities[0] = 9
    with pytest.raises(ValueError, match="read-only"):
        space.ordered[0] = True
    for name in ("variables", "names", "cardinalities", "ordered", "size", "named"):
        with pytest.raises(AttributeError):
            setattr(space, name, None)


def test_space_does_not_follow_its_arguments():
    variables, values = [Binary()], ["a", "b"]
    space, variable = Space(variables), Categorical(values)
    variables.append(Binary())
    values.append("c")
    assert len(space) == 1
    assert len(variable) == 2


@pytest.mark.parametrize("space", [Space(MIXED), Space([Categorical([4, 2, 9]), Binary()])])
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
)
def test_copies(space, duplicate):
    again = duplicate(space)
    assert again == space
    assert not again.cardinalities.flags.writeable
    codes = np.ones((1, len(space)), dtype=int)
    assert again.encode(again.decode(codes)).tolist() == codes.tolist()


# Named points


def test_encode_and_decode_dicts():
    space = Space(MIXED)
    points = [GOOD, {"depth": 8, "cache": 0, "algo": None}]
    codes = space.encode(points)
    assert codes.dtype == np.int32
    assert codes.tolist() == [[1, 1, 2], [0, 2, 7]]
    back = space.decode(codes)
    assert back == [GOOD, {"cache": False, "algo": None, "depth": 8}]
    assert [type(v) for v in back[0].values()] == [bool, str, int]
    assert list(back[1]) == ["cache", "algo", "depth"]
    assert space.one(codes[1]) == back[1]


@pytest.mark.parametrize("one", [True, 1, np.True_, np.int64(1)])
def test_named_binary_decodes_to_bool(one):
    space = Space({"x": Binary()})
    assert space.one(space.encode([{"x": one}])[0])["x"] is True


@pytest.mark.parametrize("space", [Space(MIXED), Space.binary(3)])
def test_no_points(space):
    assert space.encode([]).shape == (0, 3)
    assert space.encode([]).dtype == np.int32
    for empty in ([], np.empty((0, 3), dtype=np.int32)):
        assert len(space.decode(empty)) == 0
    assert Space.binary(3).decode([]).shape == (0, 3)


@pytest.mark.parametrize(
    ("point", "kind", "words"),
    [
        (
            {"cache": True, "algo": "z", "depth": 1},
            ValueError,
            ["'algo'", "'z'", "['a', 'b', None]"],
        ),
        ({"cache": 2, "algo": "a", "depth": 1}, ValueError, ["'cache'", "2", "Binary()"]),
        ({"cache": True, "algo": "a", "depth": 9}, ValueError, ["'depth'", "9", "Integer(1, 8)"]),
        ({"cache": True, "algo": "a", "depth": 2.0}, ValueError, ["'depth'", "2.0"]),
        ({"cache": True, "algo": ["a"], "depth": 2}, ValueError, ["'algo'", "['a']"]),
        ({"cache": True}, ValueError, ["lacks", "['algo', 'depth']"]),
        ({}, ValueError, ["lacks", "['cache', 'algo', 'depth']"]),
        ({**GOOD, "dpeth": 3, 4: 5}, ValueError, ["unexpected", "['dpeth', 4]", "'depth'"]),
        ({"cache": True, "algo": "a", "dpeth": 3}, ValueError, ["lacks", "['depth']"]),
        ([1, 1, 2], TypeError, ["[1, 1, 2]", "dict"]),
        ("cache", TypeError, ["'cache'", "dict"]),
        (None, TypeError, ["None", "dict"]),
    ],
)
def test_named_errors_name_point_variable_value(point, kind, words):
    with refused(kind, "point 2", *words):
        Space(MIXED).encode([GOOD, GOOD, point])


def test_named_space_takes_only_dicts():
    with refused(TypeError, "point 0", "dict"):
        Space(MIXED).encode(np.array([[0, 0, 0]]))


@pytest.mark.parametrize("space", [Space(MIXED), Space.binary(3)])
@pytest.mark.parametrize("batch", [{"cache": True}, 5, None])
def test_batch_must_be_a_sequence(space, batch):
    with refused(TypeError, repr(batch), "sequence of points"):
        space.encode(batch)


# Nameless points

VECTORS = Space([Binary(), Integer(-1, 3), Categorical([8, 2, 4]), Categorical([5, 6])])


@pytest.mark.parametrize(
    "points",
    [
        [[1, -1, 2, 6], [0, 3, 8, 5]],
        ((True, -1, 2, 6), (False, 3, 8, 5)),
        np.array([[1, -1, 2, 6], [0, 3, 8, 5]]),
        np.array([[1, -1, 2, 6], [0, 3, 8, 5]], dtype=np.int8),
        np.array([[1, -1, 2, 6], [0, 3, 8, 5]], order="F")[:, :],
        [np.array([1, -1, 2, 6]), np.array([0, 3, 8, 5], dtype=np.uint64)],
        [[np.int64(1), -1, np.uint8(2), 6], (np.False_, 3, 8, 5)],
    ],
)
def test_encode_and_decode_vectors(points):
    before = copy.deepcopy(points)
    codes = VECTORS.encode(points)
    assert codes.dtype == np.int32
    assert codes.tolist() == [[1, 0, 1, 1], [0, 4, 0, 0]]
    assert np.array_equal(before, points)
    back = VECTORS.decode(codes)
    assert back.dtype == np.int64
    assert back.tolist() == [[1, -1, 2, 6], [0, 3, 8, 5]]
    assert VECTORS.one(codes[1]).tolist() == [0, 3, 8, 5]
    assert VECTORS.one(codes[1]).dtype == np.int64


def test_bool_matrix():
    points = np.array([[True, False, True]])
    assert Space.binary(3).encode(points).tolist() == [[1, 0, 1]]
    assert points.dtype == np.bool_


def test_results_do_not_share_memory():
    points = np.zeros((2, 3), dtype=np.int32)
    codes = Space.binary(3).encode(points)
    codes[:] = 1
    back = Space.binary(3).decode(codes)
    back[:] = 0
    assert points.sum() == 0
    assert codes.sum() == 6


@pytest.mark.parametrize("as_given", [list, np.array])
@pytest.mark.parametrize(
    ("column", "value", "variable"),
    [
        (0, 2, "Binary()"),
        (0, -1, "Binary()"),
        (1, 4, "Integer(-1, 3)"),
        (1, -2, "Integer(-1, 3)"),
        (1, -(2**63), "Integer(-1, 3)"),
        (2, 3, "Categorical([8, 2, 4])"),
        (2, 9, "Categorical([8, 2, 4])"),
        (2, 1, "Categorical([8, 2, 4])"),
        (3, 7, "Categorical([5, 6])"),
        (3, 4, "Categorical([5, 6])"),
    ],
)
def test_out_of_range(as_given, column, value, variable):
    points = [[1, -1, 2, 6], [0, 3, 8, 5], [0, 3, 8, 5]]
    points[1][column] = value
    with refused(ValueError, "point 1", f"variable {column}", str(value), variable):
        VECTORS.encode(as_given(points))


@pytest.mark.parametrize("value", [2**63, 2**64, -(2**63) - 1, 2**80])
def test_beyond_64_bits(value):
    with refused(ValueError, "point 0", "variable 1", str(value)):
        VECTORS.encode([[0, value, 8, 5]])


def test_extreme_integers_are_exact():
    top = 2**63 - 1
    space = Space([Integer(top - 2, top), Categorical([top, -(2**63)])])
    codes = [[2, 0], [0, 1]]
    assert space.decode(codes).tolist() == [[top, top], [top - 2, -(2**63)]]
    assert space.encode(space.decode(codes)).tolist() == codes
    with refused(ValueError, "point 0", "variable 0", str(2**63)):
        space.encode(np.array([[2**63, top]], dtype=np.uint64))
    with refused(ValueError, "point 0", "variable 0", str(-(2**63))):
        space.encode(np.array([[-(2**63), top]]))


@pytest.mark.parametrize("value", [1.0, 0.5, "1", None, [1], np.float64(1), float("nan")])
def test_vectors_hold_integers(value):
    shown = repr(value.item() if isinstance(value, np.generic) else value)
    with refused(ValueError, "point 1", "variable 2", shown, "integer"):
        Space.categorical(3, 4).encode([[0, 1, 2], [0, 1, value]])


@pytest.mark.parametrize("dtype", [float, np.float32, complex, object, str])
def test_integer_matrices_only(dtype):
    matrix = np.ones((2, 3)).astype(dtype)
    with refused(ValueError, "points", str(matrix.dtype), "integers"):
        Space.binary(3).encode(matrix)


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 2), (1, 2, 3), (), (0, 4), (0,)])
def test_matrix_shape(shape):
    with refused(ValueError, "points", str(shape), "(m, 3)"):
        Space.binary(3).encode(np.zeros(shape, dtype=int))
    if shape != (0,):
        with refused(ValueError, "codes", str(shape), "(m, 3)"):
            Space.binary(3).decode(np.zeros(shape, dtype=int))


@pytest.mark.parametrize("point", [[0, 1], [0, 1, 1, 0], (), np.zeros(2, dtype=int)])
def test_vector_length(point):
    with refused(ValueError, "point 1", f"length {len(point)}", "3 integers"):
        Space.binary(3).encode([[0, 1, 0], point])


@pytest.mark.parametrize("point", [1, None, {0: 0, 1: 1, 2: 0}, {0, 1}, np.int64(1)])
def test_vector_type(point):
    shown = repr(point.item() if isinstance(point, np.generic) else point)
    with refused(TypeError, "point 1", shown, "vector of 3 integers"):
        Space.binary(3).encode([[0, 1, 0], point])


# Codes


@pytest.mark.parametrize("space", [Space(MIXED), Space([Binary(), Binary(), Integer(1, 8)])])
@pytest.mark.parametrize("code", [8, -1, 2**40])
def test_decode_refuses_codes_out_of_range(space, code):
    label = repr(space.names[2]) if space.names else "2"
    with refused(ValueError, "point 1", f"variable {label}", str(code), "0 to 7"):
        space.decode([[0, 0, 7], [0, 0, code]])
    with refused(ValueError, "point 0", f"variable {label}", str(code), "0 to 7"):
        space.one([0, 0, code])


def test_decode_refuses_unsigned_overflow():
    with refused(ValueError, str(2**63), "0 to 1"):
        Space.binary(2).decode(np.array([[0, 2**63]], dtype=np.uint64))


def test_decode_takes_any_integer_dtype():
    for dtype in (bool, np.uint8, np.int32, np.uint64):
        back = Space([Integer(5, 6), Categorical([9, 3])]).decode(np.array([[1, 1]], dtype=dtype))
        assert back.dtype == np.int64
        assert back.tolist() == [[6, 3]]


def test_decode_refuses_floats():
    with refused(ValueError, "codes", "float64"):
        Space.binary(2).decode([[0.0, 1.0]])


@pytest.mark.parametrize("codes", [0, [0], [0, 1, 1, 0], [[0, 1, 0]], []])
def test_one_wants_a_vector(codes):
    with refused(ValueError, "codes", "(m, 3)"):
        Space.binary(3).one(codes)


# JSON


def test_json_format():
    document = json.loads(Space(MIXED).to_json())
    assert document == {
        "format": "anyorder-space",
        "version": 1,
        "variables": [
            {"name": "cache", "type": "binary"},
            {"name": "algo", "type": "categorical", "values": ["a", "b", None]},
            {"name": "depth", "type": "integer", "low": 1, "high": 8},
        ],
    }
    assert Space(MIXED).to_dict() == document
    nameless = Space([Binary(), Binary(), Categorical([3, 1]), Binary()])
    assert nameless.to_dict()["variables"] == [
        {"type": "binary", "repeat": 2},
        {"type": "categorical", "values": [3, 1]},
        {"type": "binary"},
    ]
    assert Space.from_dict(nameless.to_dict()) == nameless


def test_equal_named_variables_are_not_merged():
    space = Space({"a": Binary(), "b": Binary()})
    assert Space.from_json(space.to_json()) == space
    assert len(space.to_dict()["variables"]) == 2


def test_json_of_many_variables_is_small():
    text = Space.binary(10_000).to_json()
    assert len(text) < 150
    assert Space.from_json(text) == Space.binary(10_000)


def test_json_keeps_values_exactly():
    values = [1, 1.0, True, 0, False, None, "1", "", "\ud800é", 0.1, 1e300, float("-inf")]
    values += [2**80, (), (1, 1.0), (1, True), ((None,), "x")]
    space = Space({f"x{k}": Categorical([value, "other"]) for k, value in enumerate(values)})
    back = Space.from_json(space.to_json())
    assert back == space
    for old, new in zip(values, back.variables, strict=True):
        assert repr(old) == repr(new.values[0])


class Colour(enum.IntEnum):
    RED = 1


Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    "value", [frozenset([1]), Fraction(1, 3), b"x", Colour.RED, Pair(1, 2), 1j]
)
def test_other_hashables_work_but_not_in_json(value):
    for wrapped in (value, ("t", value)):
        space = Space({"x": Categorical(["a", wrapped])})
        assert space.encode([{"x": wrapped}]).tolist() == [[1]]
        assert space.one([1])["x"] is wrapped or space.one([1])["x"] == wrapped
        with refused(TypeError, repr(value), "JSON"):
            space.to_json()


@pytest.mark.parametrize(
    "text", ["", "{", "not json", "[" * 100_000, '{"format": "anyorder-space", "version": 1']
)
def test_from_json_refuses_other_text(text):
    with refused(ValueError, "is not JSON"):
        Space.from_json(text)


@pytest.mark.parametrize("document", [None, 3, [], "x", {}, {"format": "other", "version": 1}])
def test_from_json_refuses_other_formats(document):
    with refused(ValueError, "anyorder-space"):
        Space.from_json(json.dumps(document))


@pytest.mark.parametrize("version", [4, 99, 0, "1", 1.0, True, None, [1]])
def test_from_json_refuses_other_versions(version):
    document = {**Space.binary(1).to_dict(), "version": version}
    with refused(ValueError, "version is", repr(version), "newer"):
        Space.from_dict(document)


@pytest.mark.parametrize("entries", [None, [], {}, "binary", 3])
def test_from_json_refuses_no_variables(entries):
    document = {**Space.binary(1).to_dict(), "variables": entries}
    with refused(ValueError, "variables is", repr(entries), "non-empty list"):
        Space.from_dict(document)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (None, ["None", "object"]),
        ("binary", ["'binary'", "object"]),
        ([["type", "binary"]], ["object"]),
        ({}, ["type is None", "binary, categorical, integer"]),
        ({"type": "real"}, ["type is 'real'", "binary"]),
        ({"type": ["binary"]}, ["type is", "binary"]),
        ({"type": "binary", "values": [0, 1]}, ["values"]),
        ({"type": "binary", "repeats": 3}, ["repeats"]),
        ({"type": "binary", "repeat": 0}, ["repeat is 0", "at least 1"]),
        ({"type": "binary", "repeat": -1}, ["repeat is -1"]),
        ({"type": "binary", "repeat": 1.5}, ["repeat is 1.5"]),
        ({"type": "binary", "repeat": True}, ["repeat is True"]),
        ({"type": "integer", "low": 1}, ["high"]),
        ({"type": "integer", "low": 1, "high": "8"}, ["high is '8'"]),
        ({"type": "integer", "low": 1.0, "high": 8}, ["low is 1.0"]),
        ({"type": "integer", "low": 9, "high": 8}, ["low is 9"]),
        ({"type": "categorical"}, ["values"]),
        ({"type": "categorical", "values": []}, ["empty"]),
        ({"type": "categorical", "values": "abc"}, ["'abc'"]),
        ({"type": "categorical", "values": {"a": 1}}, ["{'a': 1}"]),
        ({"type": "categorical", "values": [{"a": 1}]}, ["{'a': 1}"]),
        ({"type": "categorical", "values": [1, 1]}, ["1", "repeated"]),
        ({"type": "categorical", "values": [float("nan")]}, ["nan"]),
        ({"type": "binary", "name": 3}, ["name is 3"]),
        ({"type": "binary", "name": {"a": 1}}, ["name is {'a': 1}"]),
    ],
)
def test_from_json_refuses_malformed_variables(entry, words):
    document = {**Space.binary(1).to_dict(), "variables": [{"type": "binary"}, entry]}
    with refused(ValueError, "entry 1", *words):
        Space.from_dict(document)
    with refused(ValueError, "entry 1", *words):
        Space.from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([{"name": "a"}, {"name": "b"}, {"name": "a"}], ["'a'", "repeated"]),
        ([{"name": "a", "repeat": 2}], ["'a'", "repeated"]),
        ([{"name": "a"}, {}], ["variable 1", "no name"]),
        ([{}, {"name": "a"}], ["variable 0", "no name"]),
        ([{"name": "a"}, {"name": ""}], ["''", "non-empty"]),
    ],
)
def test_from_json_refuses_bad_names(entries, words):
    document = {**Space.binary(1).to_dict()}
    document["variables"] = [{"type": "binary", **entry} for entry in entries]
    with refused(ValueError, *words):
        Space.from_dict(document)


def test_from_json_refuses_values_that_need_names():
    document = Space({"x": Categorical(["a"])}).to_dict()
    del document["variables"][0]["name"]
    with refused(ValueError, "'a'", "names"):
        Space.from_dict(document)


# Any space

ints = st.integers(-(2**63), 2**63 - 1)
widths = st.integers(0, 20)
integers = st.builds(
    lambda low, width: Integer(low, low + width), st.integers(-(2**62), 2**62), widths
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.sampled_from([0, 1, 0.0, 1.0, False, True])
)
anything = scalars | st.tuples(scalars) | st.tuples(scalars, st.tuples(scalars))


def unique_categoricals(values):
    return st.lists(values, min_size=1, max_size=6, unique=True).map(Categorical)


named_variables = st.just(Binary()) | integers | unique_categoricals(anything)
nameless_variables = st.just(Binary()) | integers | unique_categoricals(ints | st.integers(0, 9))
named_spaces = st.dictionaries(st.text(min_size=1), named_variables, min_size=1, max_size=6).map(
    Space
)
nameless_spaces = st.lists(
    st.tuples(nameless_variables, st.integers(1, 3)), min_size=1, max_size=5
).map(lambda runs: Space([variable for variable, count in runs for _ in range(count)]))
spaces = named_spaces | nameless_spaces


@st.composite
def spaces_and_codes(draw, kind=spaces):
    space = draw(kind)
    rows = st.tuples(*(st.integers(0, len(variable) - 1) for variable in space.variables))
    codes = draw(st.lists(rows, max_size=5))
    return space, np.array(codes, dtype=np.int32).reshape(len(codes), len(space))


@given(spaces_and_codes())
def test_round_trip_of_points(drawn):
    space, codes = drawn
    points = space.decode(codes)
    assert np.array_equal(space.encode(points), codes)
    for i, row in enumerate(codes):
        one = space.one(row)
        assert np.array_equal(space.encode([one]), codes[i : i + 1])
        for j, variable in enumerate(space.variables):
            value = variable.values[row[j]]
            got = one[space.names[j]] if space.names else one[j]
            assert got == value
            assert type(got) is (type(value) if space.named else np.int64)


@given(spaces_and_codes(nameless_spaces))
def test_lists_and_matrices_encode_alike(drawn):
    space, codes = drawn
    matrix = space.decode(codes)
    assert np.array_equal(space.encode(matrix.tolist()), codes)
    assert np.array_equal(space.encode(list(matrix)), codes)


@given(nameless_spaces, st.data())
def test_any_integer_is_either_encoded_exactly_or_refused(space, data):
    near = st.sampled_from([v for x in space.variables for v in (x.values[0], x.values[-1])])
    guess = st.builds(lambda v, step: int(v) + step, near, st.integers(-2, 2)) | ints
    guess = guess.filter(lambda v: -(2**63) <= v < 2**63)
    row = data.draw(st.lists(guess, min_size=len(space), max_size=len(space)))
    valid = all(v in x.values for v, x in zip(row, space.variables, strict=True))
    for points in ([row], np.array([row], dtype=np.int64)):
        if valid:
            assert space.decode(space.encode(points)).tolist() == [row]
        else:
            with pytest.raises(ValueError, match="point 0, variable"):
                space.encode(points)


@given(spaces)
def test_round_trip_of_json(space):
    text = space.to_json()
    back = Space.from_json(text)
    assert back == space
    assert hash(back) == hash(space)
    assert back.to_json() == text
    assert Space.from_dict(space.to_dict()) == space
    for old, new in zip(space.variables, back.variables, strict=True):
        assert repr(tuple(old.values)) == repr(tuple(new.values))


@given(spaces)
def test_sizes(space):
    size = 1
    for variable in space.variables:
        size *= len(variable.values)
    assert space.size == size
    assert space.cardinalities.tolist() == [len(v.values) for v in space.variables]
    assert space.ordered.tolist() == [isinstance(v, Integer) for v in space.variables]


# Size


def test_ten_thousand_variables():
    space = Space.binary(10_000)
    assert space.size == 2**10_000
    assert Space.categorical(10_000, 7).size == 7**10_000
    assert Space([Binary(), Integer(1, 3)] * 5_000).size == 6**5_000


@pytest.mark.parametrize(
    "make",
    [
        lambda: Space.binary(10_000),
        lambda: Space.categorical(10_000, 1_000),
        lambda: Space([Categorical([1, 2, 4, 8]) for _ in range(10_000)]),
        lambda: Space([Integer(i, i + 3) for i in range(10_000)]),
    ],
)
def test_ten_thousand_variables_are_quick(make):
    """Not a call of Python for each value; calls are counted, as time depends on the machine."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    def counted(function, *arguments):
        nonlocal calls
        calls = 0
        sys.setprofile(count)
        try:
            return function(*arguments), calls
        finally:
            sys.setprofile(None)

    space, building = counted(make)
    codes = np.arange(100_000).reshape(10, 10_000) % space.cardinalities
    points, decoding = counted(space.decode, codes)
    back, encoding = counted(space.encode, points)
    assert np.array_equal(back, codes)
    assert building < 100 * 10_000  # some for each variable
    assert decoding + encoding < 1_000
