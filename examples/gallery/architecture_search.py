"""
Architecture search
===================

How many layers should a neural network have, and how wide should they be? The width of the third
layer has no meaning in a network of two layers. The condition ``when`` expresses this, so that no
evaluation is wasted. Requires scikit-learn.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import anyorder as ao

warnings.simplefilter("ignore", ConvergenceWarning)  # training is cut short on purpose
digits = load_digits()
train, test, answers, truth = train_test_split(
    digits.data[:900] / 16, digits.target[:900], test_size=0.5, random_state=0
)

space = ao.Space(
    {
        "layers": ao.Integer(1, 3),
        "width 1": ao.Integer(8, 64, step=8),
        "width 2": ao.Integer(8, 64, step=8, when=lambda point: point["layers"] >= 2),
        "width 3": ao.Integer(8, 64, step=8, when=lambda point: point["layers"] >= 3),
        "activation": ao.Categorical(["relu", "tanh", "logistic"]),
        "rate": ao.Float(1e-4, 1e-1, levels=13, log=True),
    }
)


# %%
# A point has only the widths that exist. Large networks have a small penalty, because they will be
# slower in use.
def accuracy(point):
    widths = [point[f"width {k + 1}"] for k in range(point["layers"])]
    network = MLPClassifier(
        widths,
        activation=point["activation"],
        learning_rate_init=point["rate"],
        max_iter=10,
        random_state=0,
    )
    return network.fit(train, answers).score(test, truth) - 1e-4 * sum(widths)


result = ao.maximize(accuracy, space, budget=80, seed=0)
print(f"{result.best_value:.3f}: {result.best}")

# %%
# The figure shows every network that was tried, by its number of layers and its learning rate.
points, values = result.history.points, result.history.values
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.scatter(range(1, len(values) + 1), values, s=10, color="0.6")
left.step(range(1, len(values) + 1), result.history.best, where="post")
left.set(xlabel="networks trained", ylabel="accuracy less the cost of size")
for layers, marker in ((1, "o"), (2, "s"), (3, "^")):
    rows = [k for k, point in enumerate(points) if point["layers"] == layers]
    label = f"{layers} layer{'s' if layers > 1 else ''}"
    right.scatter([points[k]["rate"] for k in rows], values[rows], s=14, marker=marker, label=label)
right.set(xscale="log", xlabel="learning rate")
right.legend()
plt.show()
