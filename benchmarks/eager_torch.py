"""The method in eager PyTorch, as a competent user would write it: the yardstick of `engines.py`.

Batched matrix products over the n networks, autograd, `torch.optim.Adam` (by default, or with its
fused kernel, the fastest of its CPU variants), nothing compiled. Orders are uniform keys compared
pairwise.
"""

from __future__ import annotations

import torch


class EagerPolicy:
    """n networks of one hidden layer over n variables of d values, trained by eq. (8)."""

    def __init__(
        self, n: int, d: int = 2, hidden: int = 20, seed: int = 0, fused: bool = False
    ) -> None:
        torch.manual_seed(seed)
        self.n, self.d, self.fused = n, d, fused
        inputs, outputs = (n, 1) if d == 2 else (n * d, d)

        def uniform(*shape: int, fan_in: int) -> torch.Tensor:
            return torch.nn.Parameter((torch.rand(*shape) * 2 - 1) / fan_in**0.5)

        self.w1 = uniform(n, inputs, hidden, fan_in=inputs)
        self.b1 = uniform(n, 1, hidden, fan_in=inputs)
        self.w2 = uniform(n, hidden, outputs, fan_in=hidden)
        self.b2 = uniform(n, 1, outputs, fan_in=hidden)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """Inputs (candidates, n) or (candidates, n, d) of values (candidates, n)."""
        if self.d == 2:
            return 2.0 * x - 1.0
        return 2.0 * torch.nn.functional.one_hot(x, self.d) - 1.0

    def distribution(self, inputs: torch.Tensor) -> torch.Tensor:
        """Probabilities (n, candidates, d) from masked inputs (n, candidates, inputs)."""
        y = torch.tanh(torch.baddbmm(self.b1, inputs, self.w1))
        logits = torch.baddbmm(self.b2, y, self.w2)
        if self.d == 2:
            one = torch.sigmoid(logits).clamp(1e-3, 1 - 1e-3)
            return torch.cat([1 - one, one], dim=2)
        clipped = torch.softmax(logits, dim=2).clamp(1e-3, 1 - 1e-3)
        return clipped / clipped.sum(dim=2, keepdim=True)

    @torch.no_grad()
    def sample(self, candidates: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Candidates (candidates, n) and their distributions (n, candidates, d)."""
        n, d = self.n, self.d
        order = torch.rand(candidates, n).argsort(dim=1)
        x = torch.zeros(candidates, n, dtype=torch.long)
        seen = torch.zeros(candidates, n) if d == 2 else torch.zeros(candidates, n, d)
        probs = torch.empty(n, candidates, d)
        row = torch.arange(candidates)
        for step in range(n):
            i = order[:, step]
            flat = seen.view(candidates, 1, -1)
            y = torch.tanh(torch.baddbmm(self.b1[i], flat, self.w1[i]))
            logits = torch.baddbmm(self.b2[i], y, self.w2[i])[:, 0]
            if d == 2:
                one = torch.sigmoid(logits[:, 0]).clamp(1e-3, 1 - 1e-3)
                p = torch.stack([1 - one, one], dim=1)
                value = (torch.rand(candidates) < one).long()
                seen[row, i] = 2.0 * value - 1.0
            else:
                p = torch.softmax(logits, dim=1).clamp(1e-3, 1 - 1e-3)
                p = p / p.sum(dim=1, keepdim=True)
                value = torch.multinomial(p, 1)[:, 0]
                seen[row, i] = 2.0 * torch.nn.functional.one_hot(value, d) - 1.0
            x[row, i] = value
            probs[i, row] = p
        return x, probs

    def train(self, x: torch.Tensor, old: torch.Tensor, advantage: torch.Tensor, epochs: int = 50,
              beta: float = 1.0) -> None:  # fmt: skip
        """`epochs` steps of a fresh Adam, each under fresh orders."""
        parameters = [self.w1, self.b1, self.w2, self.b2]
        adam = torch.optim.Adam(parameters, lr=1e-3, fused=self.fused)
        candidates = len(x)
        inputs = self.encode(x)
        chosen = x.T[:, :, None]
        old_chosen = old.gather(2, chosen)[:, :, 0]
        for _ in range(epochs):
            keys = torch.rand(candidates, self.n)
            mask = (keys[None, :, :] < keys.T[:, :, None]).float()  # (i, candidate, j)
            if self.d == 2:
                masked = mask * inputs
            else:
                masked = (mask[..., None] * inputs).view(self.n, candidates, -1)
            new = self.distribution(masked)
            ratio = new.gather(2, chosen)[:, :, 0] / old_chosen
            kl = (old * (old.log() - new.log())).sum(dim=2)
            loss = -(ratio * advantage - beta * kl).mean(dim=1).sum()
            adam.zero_grad()
            loss.backward()
            adam.step()
