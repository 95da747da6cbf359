"""The policy in eager PyTorch, as a competent user would write it: the yardstick of the benchmarks.

It uses batched matrix products over the n networks of all runs, autograd, and `torch.optim.Adam`
(by default, or with its fused kernel, the fastest of its variants). Nothing is compiled. Orders are
uniform keys that are compared pairwise.
"""

from __future__ import annotations

import torch


class EagerPolicy:
    """n networks of one hidden layer over n variables of d values, trained by eq. (8)."""

    def __init__(
        self,
        n: int,
        d: int = 2,
        hidden: int = 20,
        seed: int = 0,
        fused: bool = False,
        runs: int = 1,
        device: str = "cpu",
    ) -> None:
        torch.manual_seed(seed)
        self.n, self.d, self.fused, self.runs, self.device = n, d, fused, runs, device
        inputs, outputs = (n, 1) if d == 2 else (n * d, d)
        networks = runs * n

        def uniform(*shape: int, fan_in: int) -> torch.Tensor:
            draw = torch.rand(*shape, device=device)
            return torch.nn.Parameter((draw * 2 - 1) / fan_in**0.5)

        self.w1 = uniform(networks, inputs, hidden, fan_in=inputs)
        self.b1 = uniform(networks, 1, hidden, fan_in=inputs)
        self.w2 = uniform(networks, hidden, outputs, fan_in=hidden)
        self.b2 = uniform(networks, 1, outputs, fan_in=hidden)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """Inputs (runs, candidates, n) or (runs, candidates, n, d) of values."""
        if self.d == 2:
            return 2.0 * x - 1.0
        return 2.0 * torch.nn.functional.one_hot(x, self.d) - 1.0

    def distribution(self, inputs: torch.Tensor) -> torch.Tensor:
        """Probabilities (runs * n, candidates, d) from masked inputs."""
        y = torch.tanh(torch.baddbmm(self.b1, inputs, self.w1))
        logits = torch.baddbmm(self.b2, y, self.w2)
        if self.d == 2:
            one = torch.sigmoid(logits).clamp(1e-3, 1 - 1e-3)
            return torch.cat([1 - one, one], dim=2)
        clipped = torch.softmax(logits, dim=2).clamp(1e-3, 1 - 1e-3)
        return clipped / clipped.sum(dim=2, keepdim=True)

    @torch.no_grad()
    def sample(self, candidates: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Candidates (runs, candidates, n) and their distributions (runs * n, candidates, d)."""
        n, d, rows, device = self.n, self.d, self.runs * candidates, self.device
        order = torch.rand(rows, n, device=device).argsort(dim=1)
        x = torch.zeros(rows, n, dtype=torch.long, device=device)
        seen = torch.zeros((rows, n) if d == 2 else (rows, n, d), device=device)
        probs = torch.empty(self.runs * n, candidates, d, device=device)
        row = torch.arange(rows, device=device)
        run, place = row // candidates, row % candidates
        for step in range(n):
            i = order[:, step]
            net = run * n + i
            y = torch.tanh(torch.baddbmm(self.b1[net], seen.view(rows, 1, -1), self.w1[net]))
            logits = torch.baddbmm(self.b2[net], y, self.w2[net])[:, 0]
            if d == 2:
                one = torch.sigmoid(logits[:, 0]).clamp(1e-3, 1 - 1e-3)
                p = torch.stack([1 - one, one], dim=1)
                value = (torch.rand(rows, device=device) < one).long()
                seen[row, i] = 2.0 * value - 1.0
            else:
                p = torch.softmax(logits, dim=1).clamp(1e-3, 1 - 1e-3)
                p = p / p.sum(dim=1, keepdim=True)
                value = torch.multinomial(p, 1)[:, 0]
                seen[row, i] = 2.0 * torch.nn.functional.one_hot(value, d) - 1.0
            x[row, i] = value
            probs[net, place] = p
        return x.view(self.runs, candidates, n), probs

    def train(self, x: torch.Tensor, old: torch.Tensor, advantage: torch.Tensor, epochs: int = 50,
              beta: float = 1.0) -> None:  # fmt: skip
        """`epochs` steps of a fresh Adam, each under fresh orders."""
        parameters = [self.w1, self.b1, self.w2, self.b2]
        adam = torch.optim.Adam(parameters, lr=1e-3, fused=self.fused)
        runs, candidates, n = x.shape
        inputs = self.encode(x)
        chosen = x.transpose(1, 2).reshape(runs * n, candidates, 1)
        old_chosen = old.gather(2, chosen)[:, :, 0]
        for _ in range(epochs):
            keys = torch.rand(runs, candidates, n, device=self.device)
            mask = (keys[:, None] < keys.transpose(1, 2)[..., None]).float()  # (r, i, candidate, j)
            masked = (mask if self.d == 2 else mask[..., None]) * inputs[:, None]
            new = self.distribution(masked.reshape(runs * n, candidates, -1))
            ratio = new.gather(2, chosen)[:, :, 0] / old_chosen
            kl = (old * (old.log() - new.log())).sum(dim=2)
            loss = -(ratio * advantage - beta * kl).mean(dim=1).sum()
            adam.zero_grad()
            loss.backward()
            adam.step()


class EagerShared:
    """One network for all variables of two values, n -> 100 -> 100 -> n, trained by eq. (8).

    A context is a masked copy of the inputs: (runs, candidates, n, n) of them.
    """

    def __init__(self, n: int, hidden: int = 100, runs: int = 1, device: str = "cpu") -> None:
        torch.manual_seed(0)
        self.n, self.runs, self.device = n, runs, device

        def uniform(*shape: int, fan_in: int) -> torch.Tensor:
            draw = torch.rand(runs, *shape, device=device)
            return torch.nn.Parameter((draw * 2 - 1) / fan_in**0.5)

        self.w1, self.b1 = uniform(n, hidden, fan_in=n), uniform(1, hidden, fan_in=n)
        self.w2 = uniform(hidden, hidden, fan_in=hidden)
        self.b2 = uniform(1, hidden, fan_in=hidden)
        self.w3, self.b3 = uniform(n, hidden, fan_in=hidden), uniform(n, fan_in=hidden)

    def units(self, inputs: torch.Tensor) -> torch.Tensor:
        """The last hidden layer (runs, rows, hidden) of inputs (runs, rows, n)."""
        y = torch.tanh(torch.baddbmm(self.b1, inputs, self.w1))
        return torch.tanh(torch.baddbmm(self.b2, y, self.w2))

    @torch.no_grad()
    def sample(self, candidates: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Candidates (runs, candidates, n), and the probabilities that each value is 1."""
        shape = (self.runs, candidates, self.n)
        order = torch.rand(shape, device=self.device).argsort(dim=2)
        seen, x = torch.zeros(shape, device=self.device), torch.zeros(shape, device=self.device)
        probs = torch.empty(shape, device=self.device)
        run = torch.arange(self.runs, device=self.device)[:, None]
        for step in range(self.n):
            i = order[:, :, step]
            logits = (self.units(seen) * self.w3[run, i]).sum(2) + self.b3[run, i]
            one = torch.sigmoid(logits).clamp(1e-3, 1 - 1e-3)
            value = (torch.rand(one.shape, device=self.device) < one).float()
            x.scatter_(2, i[..., None], value[..., None])
            probs.scatter_(2, i[..., None], one[..., None])
            seen.scatter_(2, i[..., None], (2 * value - 1)[..., None])
        return x, probs

    def train(self, x: torch.Tensor, old: torch.Tensor, advantage: torch.Tensor, epochs: int = 50,
              beta: float = 1.0) -> None:  # fmt: skip
        """`epochs` steps of a fresh Adam, each under fresh orders."""
        parameters = [self.w1, self.b1, self.w2, self.b2, self.w3, self.b3]
        adam = torch.optim.Adam(parameters, lr=1e-3)
        runs, candidates, n = x.shape
        inputs, both = 2 * x - 1, torch.stack([1 - old, old])
        for _ in range(epochs):
            keys = torch.rand(x.shape, device=self.device)
            mask = (keys[:, :, None, :] < keys[:, :, :, None]).float()  # (run, candidate, i, j)
            masked = (mask * inputs[:, :, None, :]).reshape(runs, candidates * n, n)
            top = self.units(masked).reshape(runs, candidates, n, -1)
            logits = (top * self.w3[:, None]).sum(3) + self.b3[:, None]
            one = torch.sigmoid(logits).clamp(1e-3, 1 - 1e-3)
            new = torch.stack([1 - one, one])
            ratio = torch.where(x > 0, one / old, (1 - one) / (1 - old))
            kl = (both * (both.log() - new.log())).sum(0)
            loss = -(ratio * advantage[:, None] - beta * kl).mean(dim=1).sum()
            adam.zero_grad()
            loss.backward()
            adam.step()
