"""Searches by cross-validation for scikit-learn: for hyperparameters, and for features."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder._internal.checks import integer, require, short
from anyorder.integrations.sklearn_space import Candidates, SameSplits
from anyorder.optimizer import Optimizer
from anyorder.space import Space, Subset

require("sklearn", "sklearn", "AnyOrderSearchCV and AnyOrderSelector require scikit-learn")

from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier  # noqa: E402
from sklearn.exceptions import FitFailedWarning  # noqa: E402
from sklearn.feature_selection import SelectorMixin  # noqa: E402
from sklearn.model_selection import check_cv, cross_val_score  # noqa: E402
from sklearn.model_selection._search import BaseSearchCV  # noqa: E402
from sklearn.utils import check_random_state, get_tags  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402

Mask = npt.NDArray[np.bool_]
_RANKING = 3  # from so many evaluations for each feature on, features are ranked first
_ALL_FAILED = re.compile(r"\s*All the \d+ fits failed")  # about one batch: the search continues


class AnyOrderSearchCV(BaseSearchCV):  # type: ignore[misc]
    """A search for good hyperparameters by cross-validation.

    All other methods and attributes are those of `GridSearchCV`: `predict`, `cv_results_`,
    `best_params_` and so on.

    Parameters
    ----------
    estimator
        The estimator to fit.
    space
        A dict of variables of anyorder, or of lists of values, by the names of parameters; or a
        `Space` with names. The values of a list are ordered if they are increasing or decreasing
        numbers. Parameters that a point does not have keep the values of the estimator.
    budget
        The number of points to evaluate, each by a fit for every split.
    algorithm
        The algorithm, as in `anyorder.maximize`.
    batch
        The number of points to evaluate at a time. More than one is of use if `n_jobs` is larger
        than the number of splits. Runs with the same `batch` are equal, whatever `n_jobs` is.
    random_state
        An integer makes the search repeatable.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As in `GridSearchCV`. All points are evaluated on the same splits. With several scores the
        search maximises the one that `refit` names, or else the first.
    """

    def __init__(
        self,
        estimator: Any,
        space: Any,
        budget: int = 50,
        *,
        algorithm: Any = None,
        batch: int = 1,
        random_state: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        super().__init__(
            estimator=estimator, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv,
            verbose=verbose, pre_dispatch=pre_dispatch, error_score=error_score,
            return_train_score=return_train_score,
        )  # fmt: skip
        self.space = space
        self.budget = budget
        self.algorithm = algorithm
        self.batch = batch
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **params: Any) -> AnyOrderSearchCV:
        """Search with the data X and the target values y; `params` are those of `GridSearchCV`."""
        self._checked_cv_orig = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        super().fit(X, y=y, **params)
        return self

    def _run_search(self, evaluate_candidates: Callable[..., dict[str, Any]]) -> None:
        """Spend the budget; `evaluate_candidates` records the results."""
        budget, batch = integer("budget", self.budget, 1), integer("batch", self.batch, 1)
        candidates = Candidates(self.space)
        optimizer = Optimizer(candidates.space, _seed(self.random_state), algorithm=self.algorithm)
        splits = SameSplits(self._checked_cv_orig)
        params: list[dict[str, Any]] = []
        rows: list[Any] = []  # one for each fit; None if all fits of a batch failed
        results: dict[str, Any] = {}
        error: Exception | None = None
        while len(params) < budget:
            points = optimizer.ask(min(batch, budget - len(params)))
            if not points:  # all points are known
                break
            new = [candidates.params(point) for point in points]
            try:
                results = evaluate_candidates(new, cv=splits)
                outcomes = results["out"][-splits.count * len(new) :]
            except ValueError as raised:
                if not _ALL_FAILED.match(str(raised)):
                    raise
                error, outcomes = raised, [None] * splits.count * len(new)
                warnings.warn(str(raised), FitFailedWarning, stacklevel=2)
            params, rows = params + new, rows + outcomes
            scores = np.array(list(map(self._score, outcomes))).reshape(len(new), -1)
            optimizer.tell(points, scores.mean(axis=1), on_failure="worst")
        done = [row for row in rows if row is not None]
        if not done and error is not None:
            raise error
        filled = [self._failed_row(done[0]) if row is None else row for row in rows]
        results.clear()
        results.update(super()._format_results(params, splits.count, filled))

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None
    ) -> dict[str, Any]:
        """Record the fits so far; return `cv_results_`, made of them, once the search has ended."""
        return {"out": out}

    def _score(self, row: Mapping[str, Any] | None) -> float:
        """Return the score, of a fit, that the search maximises."""
        scores = self.error_score if row is None else row["test_scores"]
        if isinstance(scores, dict):
            named = isinstance(self.refit, str) and self.refit in scores
            scores = scores[self.refit if named else next(iter(scores))]
        return float(scores)

    def _failed_row(self, like: Mapping[str, Any]) -> dict[str, Any]:
        """Return the results of a failed fit, with the same entries as another one's."""
        row = dict(like, fit_time=np.nan, score_time=np.nan)
        for key in {"test_scores", "train_scores"} & set(row):
            several = isinstance(row[key], dict)
            row[key] = dict.fromkeys(row[key], self.error_score) if several else self.error_score
        return row


class AnyOrderSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A selection of features by cross-validation.

    Parameters
    ----------
    estimator
        The estimator to fit to the selected features.
    budget
        The number of selections to evaluate, each by a fit for every split. From three for each
        feature on, the search begins with every feature alone, and with the best of them together.
    n_features_to_select
        None for as many as give the best score; an integer for exactly so many; two integers for
        the least and the largest number.
    algorithm
        The algorithm, as in `anyorder.maximize`.
    random_state
        An integer makes the search repeatable.
    scoring, cv, n_jobs
        As in `SequentialFeatureSelector`. All selections are evaluated on the same splits.

    Attributes
    ----------
    support_
        A mask of the selected features.
    n_features_to_select_
        The number of selected features.
    best_score_
        The mean score of the selection.
    n_evaluations_
        The number of selections that were evaluated: less than `budget` if there are no more.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        budget: int = 100,
        n_features_to_select: int | tuple[int, int] | None = None,
        algorithm: Any = None,
        random_state: Any = None,
        scoring: Any = None,
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.budget = budget
        self.n_features_to_select = n_features_to_select
        self.algorithm = algorithm
        self.random_state = random_state
        self.scoring = scoring
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> AnyOrderSelector:
        """Find the features to select, from the data X and the target values y."""
        budget = integer("budget", self.budget, 1)
        X = validate_data(
            self, X, accept_sparse="csc", ensure_min_features=2,
            ensure_all_finite=not self.__sklearn_tags__().input_tags.allow_nan,
        )  # fmt: skip
        splits = list(check_cv(self.cv, y, classifier=is_classifier(self.estimator)).split(X, y))

        def score(mask: Mask) -> float:
            values = cross_val_score(
                clone(self.estimator), X[:, mask], y, scoring=self.scoring, cv=splits,
                n_jobs=self.n_jobs,
            )  # fmt: skip
            return float(values.mean())

        self.support_, self.best_score_, self.n_evaluations_ = self._select(
            X.shape[1], score, budget
        )
        self.n_features_to_select_ = int(self.support_.sum())
        return self

    def _select(
        self, count: int, score: Callable[[Mask], float], budget: int
    ) -> tuple[Mask, float, int]:
        """Return the best selection, its score, and the number of selections evaluated."""
        low, high = self._sizes(count)
        space = Space({"features": Subset(range(count), (low, high))})
        if (low, high) == (1, count):
            space = Space.binary(count)
        optimizer = Optimizer(space, _seed(self.random_state), algorithm=self.algorithm)
        evaluated, error = 0, None

        def evaluate(mask: Mask) -> float:
            nonlocal evaluated, error
            value = np.nan
            try:
                value = score(mask)
            except ValueError as raised:
                if not _ALL_FAILED.match(str(raised)):
                    raise
                error = raised
            evaluated += 1
            if low <= mask.sum() <= high:
                point = {"features": np.flatnonzero(mask).tolist()} if space.named else mask * 1
                optimizer.tell([point], [value], on_failure="worst")
            return value

        if budget >= _RANKING * count:  # each feature alone, and the best of them together
            alone = [evaluate(mask) for mask in np.eye(count, dtype=np.bool_)]
            ranks = np.argsort(np.argsort(-np.nan_to_num(alone, nan=-np.inf), kind="stable"))
            for size in range(max(low, 2), high + 1, 2):
                evaluate(ranks < size)
        while evaluated < budget:
            points = optimizer.ask(1)
            if not len(points):  # all selections are known
                break
            point = points[0]["features"] if space.named else np.flatnonzero(points[0])
            if len(point):
                evaluate(np.isin(np.arange(count), point))
            else:  # there is nothing to fit, and this costs nothing
                optimizer.tell(points, [np.nan], violations=[1.0])
        if optimizer.best is None:
            raise error or ValueError("no selection has a score: every score was NaN")
        best = optimizer.best["features"] if space.named else np.flatnonzero(optimizer.best)
        return np.isin(np.arange(count), best), optimizer.best_value, evaluated

    def _sizes(self, count: int) -> tuple[int, int]:
        """Return the least and the largest number of features to select."""
        size = self.n_features_to_select
        if size is None:
            return 1, count
        if isinstance(size, tuple | list):
            if len(size) != 2:
                raise ValueError(
                    f"n_features_to_select is {short(size)}, expected an integer, or two"
                )
            low, high = (
                integer(f"n_features_to_select[{k}]", v, 1, count) for k, v in enumerate(size)
            )
            if low > high:
                raise ValueError(f"n_features_to_select is {short(size)}, expected low <= high")
            return low, high
        number = integer("n_features_to_select", size, 1, count)
        return number, number

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        support: Mask = self.support_
        return support

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator).input_tags
        tags.input_tags.allow_nan, tags.input_tags.sparse = own.allow_nan, own.sparse
        return tags


def _seed(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
