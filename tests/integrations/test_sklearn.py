"""Searches of scikit-learn: what is evaluated, what fails, and what comes back."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils.estimator_checks import check_estimator

import anyorder as ao
from anyorder.integrations.sklearn import AnyOrderSearchCV, AnyOrderSelector

X, Y = make_classification(120, 8, n_informative=3, random_state=0)


def unmet(estimator: Any) -> tuple[set[str], set[str]]:
    """The checks of scikit-learn that fail, and those that are skipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    by_status = [
        {r["check_name"] for r in results if r["status"] == status}
        for status in ("failed", "skipped")
    ]
    return by_status[0], by_status[1]


ESTIMATORS = (GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}), (SVR(), {"C": [0.1, 1.0]})


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "grid"), ESTIMATORS)
def test_check_estimator_of_a_search(estimator: Any, grid: dict[str, Any]) -> None:
    _, skipped = unmet(GridSearchCV(estimator, grid, cv=2))
    found = AnyOrderSearchCV(estimator, grid, budget=5, cv=2, random_state=0)
    assert unmet(found) == (set(), skipped)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [estimator for estimator, _ in ESTIMATORS])
def test_check_estimator_of_a_selector(estimator: Any) -> None:
    _, skipped = unmet(SequentialFeatureSelector(estimator, cv=2))
    assert unmet(AnyOrderSelector(estimator, budget=5, cv=2, random_state=0)) == (set(), skipped)


def test_a_grid_is_searched_to_its_end() -> None:
    grid = {"alpha": [0.1, 1.0, 10.0], "fit_intercept": [True, False]}
    every = GridSearchCV(RidgeClassifier(), grid, cv=3).fit(X, Y)
    search = AnyOrderSearchCV(RidgeClassifier(), grid, cv=3, random_state=0).fit(X, Y)
    assert len(search.cv_results_["params"]) == 6  # of a budget of 50
    assert search.best_score_ == every.best_score_
    assert set(search.cv_results_) == set(every.cv_results_)
    assert (search.predict(X) == search.best_estimator_.predict(X)).all()


def test_conditions_in_a_pipeline_with_equal_runs() -> None:
    space = {
        "svc__kernel": ao.Categorical(["linear", "rbf"]),
        "svc__C": ao.Float(1e-2, 1e2, levels=9, log=True),
        "svc__gamma": ao.Float(1e-3, 1, levels=7, log=True, when={"svc__kernel": "rbf"}),
        "svc__class_weight": [None, {0: 1, 1: 2}],  # values that cannot be hashed
    }
    pipeline = make_pipeline(StandardScaler(), SVC())
    search = AnyOrderSearchCV(pipeline, space, budget=12, batch=2, cv=3, random_state=0)
    first, other = clone(search).fit(X, Y), clone(search).set_params(n_jobs=2).fit(X, Y)
    params = first.cv_results_["params"]
    assert params == other.cv_results_["params"]
    assert len(params) == 12
    for one in params:
        assert ("svc__gamma" in one) == (one["svc__kernel"] == "rbf")
        assert one["svc__class_weight"] in (None, {0: 1, 1: 2})
    outer = cross_val_score(make_pipeline(search.set_params(budget=3)), X, Y, cv=2)
    assert np.isfinite(outer).all()


@pytest.mark.parametrize(
    ("refit", "maximised"), [("b", "b"), (False, "a"), (lambda results: 1, "a")]
)
def test_several_scores(refit: Any, maximised: str) -> None:
    def scores(estimator: Any, X: Any, y: Any) -> dict[str, float]:
        return {"a": estimator.alpha, "b": -estimator.alpha}

    space = {"alpha": ao.Integer(1, 100)}
    search = AnyOrderSearchCV(
        RidgeClassifier(), space, 30, scoring=scores, refit=refit, cv=2, random_state=0
    ).fit(X, Y)
    best = int(np.argmax(search.cv_results_[f"mean_test_{maximised}"]))
    assert search.cv_results_["params"][best]["alpha"] == (100 if maximised == "a" else 1)
    if callable(refit):
        assert search.best_index_ == 1


class Fails(ClassifierMixin, BaseEstimator):
    """A classifier that is worse with larger k, and cannot be fitted with some."""

    def __init__(self, k: int = 0) -> None:
        self.k = k

    def fit(self, X: Any, y: Any) -> Fails:
        if self.k % 2 or self.k > 15:
            raise RuntimeError("on purpose")
        self.classes_ = np.unique(y)
        return self

    def score(self, X: Any, y: Any) -> float:
        return float(-self.k)


@pytest.mark.parametrize("error_score", [np.nan, -50.0])
def test_fits_that_fail_are_failures(error_score: float) -> None:
    search = AnyOrderSearchCV(
        Fails(), {"k": ao.Integer(0, 19)}, cv=2, error_score=error_score, random_state=1
    )
    with pytest.warns(FitFailedWarning, match="on purpose"):
        search.fit(X, Y)
    assert search.best_params_ == {"k": 0}
    results = search.cv_results_
    assert sorted(one["k"] for one in results["params"]) == list(range(20))
    for one, score in zip(results["params"], results["mean_test_score"], strict=True):
        expected = error_score if one["k"] % 2 or one["k"] > 15 else -one["k"]
        np.testing.assert_equal(score, expected)
    with pytest.raises(RuntimeError, match="on purpose"):
        search.set_params(error_score="raise").fit(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_if_every_fit_fails_the_error_is_that_of_scikit_learn() -> None:
    space = {"k": [1, 3, 5]}
    with pytest.raises(ValueError, match=r"All the 2 fits failed[\s\S]*on purpose"):
        AnyOrderSearchCV(Fails(), space, cv=2).fit(X, Y)
    with pytest.raises(ValueError, match=r"All the 2 fits failed[\s\S]*on purpose"):
        AnyOrderSelector(Fails(1), budget=3, cv=2).fit(X, Y)


def test_all_points_have_the_same_splits() -> None:
    class Counted(KFold):
        calls = 0

        def split(self, *args: Any, **params: Any) -> Any:
            Counted.calls += 1
            return super().split(*args, **params)

    AnyOrderSearchCV(
        GaussianNB(), {"var_smoothing": [1e-9, 1e-6, 1e-3]}, cv=Counted(2, shuffle=True)
    ).fit(X, Y)
    assert Counted.calls == 1


@pytest.mark.parametrize(
    ("space", "error", "said"),
    [
        ({"depth": [1, 2]}, ValueError, "Invalid parameter 'depth' for estimator GaussianNB"),
        ({"var_smoothing": 3}, TypeError, r"space\['var_smoothing'\] is 3, expected a variable"),
        ({"var_smoothing": []}, ValueError, r"space\['var_smoothing'\]: "),
        ({"var_smoothing": [1, 1]}, ValueError, "value 1 is repeated"),
        ([1, 2], TypeError, "space is .*expected a dict of variables or lists"),
        (ao.Space.binary(3), TypeError, "expected a dict .* or a Space with names"),
    ],
)
def test_spaces_that_are_none(space: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        AnyOrderSearchCV(GaussianNB(), space, cv=2).fit(X, Y)


@pytest.mark.parametrize("size", [None, 3, (2, 4)])
def test_a_selector_finds_features(size: Any) -> None:
    selector = AnyOrderSelector(
        GaussianNB(), budget=40, n_features_to_select=size, cv=3, random_state=0
    )
    pipeline = make_pipeline(StandardScaler(), clone(selector), GaussianNB()).fit(X, Y)
    found = pipeline[1]
    support = found.get_support()
    chosen = cross_val_score(GaussianNB(), StandardScaler().fit_transform(X)[:, support], Y, cv=3)
    assert found.best_score_ == pytest.approx(chosen.mean())
    assert found.n_features_to_select_ == support.sum()
    assert found.n_evaluations_ == 40
    low, high = {None: (1, 8), 3: (3, 3), (2, 4): (2, 4)}[size]
    assert low <= support.sum() <= high
    everything = cross_val_score(GaussianNB(), X, Y, cv=3).mean()
    assert found.best_score_ > everything


def test_a_selector_ends_with_its_space_and_says_what_is_wrong() -> None:
    selector = AnyOrderSelector(GaussianNB(), budget=50, cv=2, random_state=0).fit(X[:, :3], Y)
    assert selector.n_evaluations_ == 7  # all but the empty selection
    with pytest.raises(ValueError, match="n_features_to_select is 9, expected an integer from 1"):
        selector.set_params(n_features_to_select=9).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"n_features_to_select is \(1, 2, 3\), expected an integer"
    ):
        selector.set_params(n_features_to_select=(1, 2, 3)).fit(X, Y)
    with pytest.raises(ValueError, match="budget is 0"):
        selector.set_params(n_features_to_select=None, budget=0).fit(X, Y)


def test_a_data_frame_keeps_its_names() -> None:
    pytest.importorskip("pandas")
    data = load_breast_cancer(as_frame=True)
    selector = AnyOrderSelector(GaussianNB(), budget=10, cv=2, random_state=0)
    selector.fit(data.data, data.target)
    names = selector.get_feature_names_out()
    assert list(names) == list(data.data.columns[selector.get_support()])


def test_importing_the_library_does_not_import_scikit_learn() -> None:
    code = "import sys, anyorder; raise SystemExit('sklearn' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
