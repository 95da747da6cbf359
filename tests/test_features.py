"""Feature selection: scores, prices, data of one's own; the suite of all is test_problems.py."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import refused

from anyorder import problems
from anyorder.problems import FeatureSelection


@pytest.fixture(scope="module")
def sk() -> Any:
    """What is used of scikit-learn: to import it takes a second in every process that collects."""
    pytest.importorskip("sklearn")
    from sklearn import datasets, ensemble, linear_model, model_selection, naive_bayes

    return SimpleNamespace(
        iris=datasets.load_iris(), load_diabetes=datasets.load_diabetes,
        RandomForestClassifier=ensemble.RandomForestClassifier, Ridge=linear_model.Ridge,
        GaussianNB=naive_bayes.GaussianNB, **vars(model_selection),
    )  # fmt: skip


def test_value_is_the_mean_score_of_the_columns(sk: Any) -> None:
    problem = FeatureSelection(sk.iris.data, sk.iris.target, sk.GaussianNB(), folds=4, seed=3)
    folds = sk.StratifiedKFold(4, shuffle=True, random_state=3)
    for columns in ([0], [2, 3], [0, 1, 2, 3]):
        point = np.isin(np.arange(4), columns).astype(int)
        scores = sk.cross_val_score(
            sk.GaussianNB(), sk.iris.data[:, columns], sk.iris.target, cv=folds
        )
        assert problem(point) == scores.mean()
    # five folds have the classes in equal parts, of which any constant prediction is right once
    assert problems.features("iris")([0, 0, 0, 0]) == pytest.approx(1 / 3)


def test_numbers_are_predicted_too(sk: Any) -> None:
    X, y = sk.load_diabetes(return_X_y=True)
    problem = FeatureSelection(
        X, y, sk.Ridge(), scoring="neg_mean_squared_error", folds=sk.KFold(3)
    )
    folds = list(sk.KFold(3).split(X))
    constant = np.mean([-np.mean((y[test] - y[train].mean()) ** 2) for train, test in folds])
    assert problem([0] * 10) == pytest.approx(constant)
    assert problem([1] * 10) > constant
    assert problems.features("diabetes", "knn")([1] * 10) > 0.3


def test_price(sk: Any) -> None:
    free = FeatureSelection(sk.iris.data, sk.iris.target, sk.GaussianNB())
    same = FeatureSelection(sk.iris.data, sk.iris.target, sk.GaussianNB(), price=0.25)
    each = FeatureSelection(sk.iris.data, sk.iris.target, sk.GaussianNB(), price=[1, 2, 3, 4])
    for point in ([1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]):
        assert same(point) == free(point) - 0.25 * sum(point)
        assert each(point) == free(point) - np.dot(point, [1, 2, 3, 4])


def test_random_models_and_folds_give_fixed_values(sk: Any) -> None:
    forest = sk.RandomForestClassifier(n_estimators=3)
    folds = sk.ShuffleSplit(2)  # draws other folds at every call
    problem = FeatureSelection(sk.iris.data, sk.iris.target, forest, folds=folds, seed=5)
    copy = pickle.loads(pickle.dumps(problem))
    first = problem([1, 1, 0, 1])
    assert copy._known == {}
    assert copy([1, 1, 0, 1]) == first
    problem._known.clear()
    assert problem([1, 1, 0, 1]) == first
    assert forest.random_state is None


def test_names(sk: Any) -> None:
    problem = problems.features("iris")
    assert problem.chosen([0, 0, 1, 1]) == ["petal length (cm)", "petal width (cm)"]
    own = FeatureSelection(sk.iris.data, sk.iris.target, sk.GaussianNB())
    assert own.chosen([0, 1, 0, 0]) == ["x1"]


def test_every_subset_is_scored_once(sk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = FeatureSelection(sk.iris.data, sk.iris.target, sk.GaussianNB())
    asked: list[bytes] = []

    def score(taken: Any) -> float:
        asked.append(taken.tobytes())
        return float(taken.sum())

    monkeypatch.setattr(problem, "_score", score)
    x = np.random.default_rng(0).integers(0, 2, (500, 4))
    assert np.array_equal(problem.evaluate(x), x.sum(axis=1))
    assert len(asked) == len(set(asked)) == 16
    module = sys.modules["anyorder.problems.features"]  # by its name one finds the function
    monkeypatch.setattr(module, "_MOST_REMEMBERED", 16)
    problem._known.clear()
    problem._known.update({bytes([k]): 0.0 for k in range(16)})
    assert problem([1, 1, 1, 0]) == 3.0
    assert len(problem._known) == 16


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"data": "irises"}, ["data is 'irises', expected one of breast_cancer"]),
        ({"model": "lda"}, ["model is 'lda', expected one of ridge", "for breast_cancer"]),
        (
            {"data": "diabetes", "model": "logistic"},
            ["'logistic'", "ridge, knn, tree for diabetes"],
        ),
        ({"folds": 1}, ["folds is 1, expected an integer of at least 2"]),
        ({"data": "iris", "folds": 151}, ["folds is 151, expected an integer from 2 to 150"]),
        ({"seed": -1}, ["seed is -1"]),
    ],
)
def test_bad_names(sk: Any, arguments: dict[str, Any], words: list[str]) -> None:
    with refused(ValueError, *words):
        problems.features(**arguments)


def test_bad_data(sk: Any) -> None:
    X, y = sk.iris.data, sk.iris.target
    with refused(ValueError, "X of shape (600,), expected a matrix"):
        FeatureSelection(X.ravel(), y, sk.GaussianNB())
    with refused(ValueError, "y of shape (149,), expected (150,)"):
        FeatureSelection(X, y[1:], sk.GaussianNB())
    with refused(ValueError, "price is [1, 2], expected a finite number, or 4 of them"):
        FeatureSelection(X, y, sk.GaussianNB(), price=[1, 2])
    with refused(ValueError, "3 names, expected 4"):
        FeatureSelection(X, y, sk.GaussianNB(), names=["a", "b", "c"])
    with refused(TypeError, "folds is 'five', expected an integer"):
        FeatureSelection(X, y, sk.GaussianNB(), folds="five")
    for wrong in ("GaussianNB", sk.GaussianNB, None):
        with refused(TypeError, "estimator is", "expected a classifier or a regressor"):
            FeatureSelection(X, y, wrong)


def test_without_the_package(sk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    with refused(ImportError, "pip install 'anyorder[sklearn]'"):
        problems.features()
    with refused(ImportError, "pip install 'anyorder[sklearn]'"):
        FeatureSelection(sk.iris.data, sk.iris.target, None)
