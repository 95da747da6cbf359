"""Feature selection: which columns of a data set let a scikit-learn model predict best."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anyorder._internal.checks import integer, require
from anyorder.problems.base import Problem
from anyorder.space import Space

_MOST_REMEMBERED = 1 << 16
_DATA = ("breast_cancer", "diabetes", "digits", "iris", "wine")
_REGRESSION = ("diabetes",)
# Module and class of a model for classes, and of one for numbers.
_MODELS = {
    "ridge": ("linear_model.RidgeClassifier", "linear_model.Ridge"),
    "logistic": ("linear_model.LogisticRegression", None),
    "knn": ("neighbors.KNeighborsClassifier", "neighbors.KNeighborsRegressor"),
    "tree": ("tree.DecisionTreeClassifier", "tree.DecisionTreeRegressor"),
}


class FeatureSelection(Problem):
    """f(x) = mean cross-validated score of the columns with x = 1, minus their price.

    The empty selection is scored by the constant prediction of scikit-learn (the frequencies of the
    classes, or the mean) under the same cross-validation. A point has the same value at each call:
    the folds are drawn once, and a random state that the estimator leaves open is set to `seed`.
    The values of up to 65,536 subsets are cached.

    Parameters
    ----------
    X : matrix (rows, features), or a data frame, whose column names are kept.
    y : the target, one value per row.
    estimator : any classifier or regressor of scikit-learn, or a pipeline of one.
    scoring : as in scikit-learn's `cross_val_score`; None for the estimator's own score, which is
        accuracy or R².
    folds : the number of folds (stratified and shuffled by `seed`), or a splitter of scikit-learn.
    price : the cost of a column: one number for all columns, or one for each.
    names : the names of the columns.

    Examples
    --------
    >>> problem = FeatureSelection(X, y, LogisticRegression(), scoring="roc_auc", price=0.001)
    >>> result = ao.maximize(problem.evaluate, problem.space, budget=500, vectorized=True)
    >>> problem.chosen(result.best)
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        estimator: Any,
        *,
        scoring: Any = None,
        folds: Any = 5,
        price: ArrayLike = 0.0,
        seed: int = 0,
        names: Any = None,
        name: str = "features(data)",
    ) -> None:
        base, model_selection = _sklearn("base"), _sklearn("model_selection")
        columns = getattr(X, "columns", None) if names is None else names
        self.X, self.y = np.asarray(X), np.asarray(y)
        if self.X.ndim != 2 or not self.X.size:
            raise ValueError(f"X of shape {self.X.shape}, expected a matrix (rows, features)")
        rows, n = self.X.shape
        if self.y.shape != (rows,):
            raise ValueError(f"y of shape {self.y.shape}, expected ({rows},)")
        self.names = [f"x{j}" for j in range(n)] if columns is None else [str(c) for c in columns]
        if len(self.names) != n:
            raise ValueError(f"{len(self.names)} names, expected {n}: one a column")
        prices = np.asarray(price, dtype=np.float64)
        if prices.shape not in ((), (n,)) or not np.isfinite(prices).all():
            raise ValueError(f"price is {price!r}, expected a finite number, or {n} of them")
        self.price = np.broadcast_to(prices, (n,))
        seed = integer("seed", seed, 0, 2**32 - 1)  # scikit-learn's largest seed
        try:
            classifies = base.is_classifier(estimator)
            usable = classifies or base.is_regressor(estimator)
        except (AttributeError, TypeError):  # not from scikit-learn, or a class of it
            usable = False
        if not usable or isinstance(estimator, type):  # before 1.8 a class passes for its object
            raise TypeError(f"estimator is {estimator!r}, expected a classifier or a regressor")
        self.estimator = base.clone(estimator)
        open_states = [
            key
            for key, value in self.estimator.get_params().items()
            if value is None and key.rpartition("__")[2] == "random_state"
        ]
        self.estimator.set_params(**dict.fromkeys(open_states, seed))
        dummy = _sklearn("dummy")
        self._constant = (
            dummy.DummyClassifier(strategy="prior") if classifies else dummy.DummyRegressor()
        )
        self.scoring = scoring
        if isinstance(folds, str) or not hasattr(folds, "split"):
            kind = model_selection.StratifiedKFold if classifies else model_selection.KFold
            count = integer("folds", folds, 2, rows)
            folds = kind(count, shuffle=True, random_state=seed)
        self._splits = list(folds.split(self.X, self.y))
        self._known: dict[bytes, float] = {}
        super().__init__(name, Space.binary(n), seed=seed)

    def chosen(self, point: ArrayLike) -> list[str]:
        """Return the names of the columns that a point selects."""
        taken = self._check(np.asarray(point)).astype(bool)
        return [name for name, take in zip(self.names, taken, strict=True) if take]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_known": {}}

    def _values(self, points: NDArray[Any]) -> NDArray[np.float64]:
        return np.array([self._value(row) for row in points.astype(bool)], dtype=np.float64)

    def _value(self, taken: NDArray[np.bool_]) -> float:
        key = taken.tobytes()
        value = self._known.get(key)
        if value is None:
            value = self._score(taken) - math.fsum(self.price[taken])
            if len(self._known) >= _MOST_REMEMBERED:
                del self._known[next(iter(self._known))]  # the oldest entry
            self._known[key] = value
        return value

    def _score(self, taken: NDArray[np.bool_]) -> float:
        some = bool(taken.any())
        scores = _sklearn("model_selection").cross_val_score(
            self.estimator if some else self._constant,
            self.X[:, taken] if some else np.zeros((len(self.y), 1)),
            self.y,
            scoring=self.scoring,
            cv=self._splits,
            error_score="raise",
        )
        return float(scores.mean())


def features(
    data: str = "breast_cancer", model: str = "ridge", folds: int = 5, seed: int = 0
) -> FeatureSelection:
    """Make feature selection on a data set of scikit-learn; `seed` draws the folds.

    Data sets are breast_cancer (30 features), digits (64), iris (4), wine (13), scored by accuracy,
    and diabetes (10), by R². Models are ridge, logistic (not for diabetes), knn and tree, each on
    columns scaled to mean 0 and variance 1. Requires ``pip install 'anyorder[sklearn]'``.
    """
    if data not in _DATA:
        raise ValueError(f"data is {data!r}, expected one of {', '.join(_DATA)}")
    kind = 1 if data in _REGRESSION else 0
    models = [name for name, classes in _MODELS.items() if classes[kind]]
    if model not in models:
        raise ValueError(f"model is {model!r}, expected one of {', '.join(models)} for {data}")
    loaded = getattr(_sklearn("datasets"), f"load_{data}")()
    module, _, label = str(_MODELS[model][kind]).rpartition(".")
    estimator = getattr(_sklearn(module), label)()
    scaler = _sklearn("preprocessing").StandardScaler()
    return FeatureSelection(
        loaded.data,
        loaded.target,
        _sklearn("pipeline").make_pipeline(scaler, estimator),
        folds=integer("folds", folds, 2),
        seed=seed,
        names=loaded.feature_names,
        name=f"features:data={data},model={model},folds={folds},seed={seed}",
    )


def _sklearn(module: str) -> Any:
    """Import a module of scikit-learn when it is first used: this takes a second."""
    return require(f"sklearn.{module}", "sklearn", "feature selection requires scikit-learn")
