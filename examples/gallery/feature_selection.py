"""
Feature selection
=================

Which columns should a classifier use? The data are measurements of wine and the same number of
columns of noise. A nearest-neighbour classifier cannot tell the two apart, and each superfluous
column makes it worse. Requires scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import anyorder as ao

wine = load_wine()
noise = np.random.default_rng(0).normal(size=wine.data.shape)
columns = np.hstack([wine.data, noise])
names = [*wine.feature_names, *(f"noise {k}" for k in range(noise.shape[1]))]
train, test, answers, truth = train_test_split(columns, wine.target, test_size=0.4, random_state=0)
classifier = make_pipeline(StandardScaler(), KNeighborsClassifier(5))

# %%
# The decision is a non-empty subset of the columns. Its value is the accuracy in cross-validation,
# less a small penalty for each column, so that the smaller of two equally good subsets is better.
space = ao.Space({"columns": ao.Subset(names, size=(1, len(names)))})


def chosen(point):
    return [names.index(name) for name in point["columns"]]


def accuracy(point):
    scores = cross_val_score(classifier, train[:, chosen(point)], answers, cv=5)
    return scores.mean() - 0.001 * len(point["columns"])


result = ao.maximize(accuracy, space, budget=300, seed=0)

# %%
# The accuracy that was used to choose among many subsets is optimistic. The test set, which the
# search has not seen, gives a fair comparison.
for label, point in {"all columns": {"columns": names}, "found": result.best}.items():
    classifier.fit(train[:, chosen(point)], answers)
    score = classifier.score(test[:, chosen(point)], truth)
    print(f"{label}: {len(point['columns'])} columns, {accuracy(point):.3f}, test set {score:.3f}")
print(*result.best["columns"], sep=", ")

# %%
# The figure shows how often each column was in the best tenth of the subsets that were tried.
order = np.argsort(-result.history.values)[: len(result.history) // 10]
best = [result.history.points[k]["columns"] for k in order]
share = [sum(name in subset for subset in best) / len(best) for name in names]

figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
axes.barh(names, share, color=["C0"] * wine.data.shape[1] + ["0.7"] * noise.shape[1])
axes.invert_yaxis()
axes.set(xlabel="share of the best subsets that have the column")
axes.tick_params(axis="y", labelsize=7)
plt.show()
