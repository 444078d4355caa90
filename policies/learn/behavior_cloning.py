"""Behaviour cloning of the small policies: one process, one thread, a budget in minutes.

    python -m policies.learn.behavior_cloning --demos data/demos --out data/models/a --minutes 20

``--policy`` chooses what is taught; those with chunks need ``--features`` as well.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from policies.learn.dataset import Batch, Demonstrations, shards
from policies.learn.feature_cache import FeatureCache
from policies.learn.losses import Losses
from policies.learn.registry import TRAINABLES, new_trainable
from policies.learn.trainable import Trainable

__all__ = ["Trainer", "TrainingConfig", "main"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How to train.

    Attributes:
        minutes: wall-clock budget; the schedule follows it.
        batch: samples a step.
        learning_rate: at its peak.
        warmup_steps: steps of linear rise.
        ema: decay of the averaged weights, which are the ones that are saved.
        clip: largest gradient norm.
        report_every: steps between lines of the log.
        save_every: steps between checkpoints.
        max_steps: stop here at the latest.
        seed: random seed.
        bf16: multiply in bfloat16.
    """

    minutes: float = 20.0
    batch: int = 32
    learning_rate: float = 1e-3
    warmup_steps: int = 100
    ema: float = 0.998
    clip: float = 1.0
    report_every: int = 500
    save_every: int = 5000
    max_steps: int = 10**9
    seed: int = 0
    bf16: bool = False


class Trainer:
    """Trainable, averaged weights, optimiser and data; ``run`` spends the budget."""

    def __init__(
        self, trainable: Trainable, data: Demonstrations, out: Path, config: TrainingConfig
    ) -> None:
        self.trainable, self.data, self.out, self.config = trainable, data, out, config
        self.rng = np.random.default_rng(config.seed)
        self.model = trainable.model
        self.model.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
        self.average = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.optimizer = torch.optim.AdamW(trainable.groups(), config.learning_rate)
        self.step = 0
        self.spent_s = 0.0

    @property
    def progress(self) -> float:
        """Share of the budget that is spent, by time or by steps."""
        done = max(self.spent_s / (60.0 * self.config.minutes), self.step / self.config.max_steps)
        return min(1.0, done)

    def run(self) -> None:
        """Train until the budget is spent; checkpoints appear on the way and at the end."""
        order = np.array([], dtype=np.int64)
        sums: Counter[str] = Counter()
        started, cpu, since = time.monotonic(), time.process_time(), 0
        while self.progress < 1.0:
            if len(order) < self.config.batch:
                order = self.rng.permutation(self.data.train)
            rows, order = order[: self.config.batch], order[self.config.batch :]
            losses = self._update(self.data.batch(rows, self.rng, augment=True))
            now = time.monotonic()
            self.spent_s, started = self.spent_s + now - started, now
            sums.update({"loss": losses.total.item(), **losses.parts})
            since += 1
            if self.step % self.config.report_every == 0 or self.progress >= 1.0:
                used = time.process_time() - cpu
                means = {name: one / since for name, one in sums.items()}
                self._report(means, since * self.config.batch / max(used, 1e-9))
                sums, since = Counter(), 0
                cpu = time.process_time()
            if self.step % self.config.save_every == 0:
                self.save()
        self.save()

    def _update(self, batch: Batch) -> Losses:
        progress = self.progress
        warm = min(1.0, (self.step + 1) / self.config.warmup_steps)
        rate = self.config.learning_rate * warm * (0.5 * (1.0 + np.cos(np.pi * progress)) + 1e-3)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast("cpu", torch.bfloat16, enabled=self.config.bf16):
            losses = self.trainable.losses(batch, self.rng, progress=progress, augment=True)
        self.optimizer.zero_grad(set_to_none=True)
        losses.total.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        if torch.isfinite(norm):
            self.optimizer.step()
        self.step += 1
        decay = min(self.config.ema, (1 + self.step) / (10 + self.step))
        state = self.model.state_dict()
        torch._foreach_lerp_(list(self.average.values()), list(state.values()), 1.0 - decay)
        return losses

    @torch.no_grad()
    def validate(self, frames: int = 256) -> dict[str, float]:
        """Error of the averaged weights on held-out episodes."""
        rng = np.random.default_rng(1)
        rows = rng.choice(self.data.validation, min(frames, len(self.data.validation)), False)
        live = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.model.load_state_dict(self.average)
        batch = self.data.batch(rows, rng, augment=False)
        action = self.trainable.predict(batch)
        self.model.load_state_dict(live)
        error = np.abs(action - batch.action)
        return {
            "mm": float(error[:, :3].mean() * 1e3),
            "gripper": float((np.sign(action[:, 6]) == np.sign(batch.action[:, 6])).mean()),
        }

    def _report(self, means: Mapping[str, float], rate: float) -> None:
        held_out = self.validate()
        log.info(
            "step %d %4.1f min %s | held out: xyz %.2f mm gripper %.3f | %.0f samples/cpu-s",
            self.step,
            self.spent_s / 60.0,
            " ".join(f"{name} {one:.3f}" for name, one in means.items()),
            held_out["mm"],
            held_out["gripper"],
            rate,
        )

    def save(self) -> None:
        """Write the averaged weights as a checkpoint, and what a resumed run needs in addition."""
        self.trainable.save(self.out, self.average)
        # Copies, as two names may stand for one tensor.
        tensors = {
            f"live.{k}": v.clone(memory_format=torch.contiguous_format)
            for k, v in self.model.state_dict().items()
        }
        for index, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{k}": v.contiguous() for k, v in state.items()}
        folder = self.out / "training"
        folder.mkdir(exist_ok=True)
        save_file(tensors, folder / "state.partial")
        (folder / "state.partial").replace(folder / "state.safetensors")
        (folder / "state.json").write_text(
            json.dumps({"step": self.step, "spent_s": self.spent_s}), encoding="utf-8"
        )
        log.info("saved %s at step %d", self.out, self.step)

    def resume(self) -> None:
        """Continue from what :meth:`save` left in the output folder."""
        folder = self.out / "training"
        clock = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        tensors = load_file(folder / "state.safetensors")
        self.model.load_state_dict({k[5:]: v for k, v in tensors.items() if k.startswith("live.")})
        saved = self.optimizer.state_dict()
        for key, value in tensors.items():
            if key.startswith("optimizer."):
                _, index, name = key.split(".", 2)
                saved["state"].setdefault(int(index), {})[name] = value
        self.optimizer.load_state_dict(saved)
        self.step, self.spent_s = clock["step"], clock["spent_s"]
        self.rng = np.random.default_rng([self.config.seed, self.step])


def main() -> None:
    """Command line of the trainer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", default="openvla-mini", choices=sorted(TRAINABLES))
    parser.add_argument("--demos", required=True, type=Path, nargs="+", help="shards or folders")
    parser.add_argument("--out", required=True, type=Path, help="checkpoint folder to write")
    parser.add_argument("--minutes", required=True, type=float, help="wall-clock budget")
    parser.add_argument("--features", type=Path, help="folder of policies.learn.feature_cache")
    parser.add_argument("--init", type=Path, help="checkpoint to start from")
    parser.add_argument("--resume", action="store_true", help="continue the run in --out")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--ema", type=float, default=0.998, help="decay of the averaged weights")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-steps", type=int, default=10**9)
    parser.add_argument("--bf16", action="store_true", help="bfloat16 products (faster on some)")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    torch.set_num_threads(args.threads)
    data = Demonstrations.load(shards(args.demos), horizon=TRAINABLES[args.policy].horizon)
    log.info("%d frames, %d instructions", len(data), len(data.instructions))
    config = TrainingConfig(
        minutes=args.minutes,
        batch=args.batch,
        learning_rate=args.lr,
        ema=args.ema,
        seed=args.seed,
        max_steps=args.max_steps,
        bf16=args.bf16,
    )
    init = args.out if args.resume else args.init
    features = None if args.features is None else FeatureCache.load(args.features)
    trainable = new_trainable(args.policy, data, init, seed=args.seed, features=features)
    trainer = Trainer(trainable, data, args.out, config)
    if args.resume:
        trainer.resume()
    trainer.run()


if __name__ == "__main__":
    main()
