"""Behaviour cloning of ``openvla-mini``: one process, one thread, a budget in minutes.

python -m policies.learn.behavior_cloning --demos data/demos --out data/models/a --minutes 20
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from policies.learn.dataset import Batch, Demonstrations, action_statistics, soft_targets
from policies.learn.losses import Losses, LossWeights, batch_losses, relit
from policies.learn.vocabulary import WORD_SLOTS, build_tokenizer
from policies.openvla.checkpoint import load_model, save_model
from policies.openvla.config import (
    GroundedConvConfig,
    LlamaSizes,
    OpenVLAConfig,
    grounded_conv_json,
)
from policies.openvla.grounded import VisualTokens
from policies.openvla.model import OpenVLA
from policies.openvla.prompt import load_tokenizer, prompt_ids
from policies.openvla.tokens import ActionStatistics, decode_ids, encode_actions

__all__ = ["Trainer", "TrainingConfig", "main"]

log = logging.getLogger(__name__)

PAD: Final = 16
DATA_NAME: Final = "vlawatch_widowx_put_on"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How to train.

    Attributes:
        minutes: wall-clock budget; the schedule follows it.
        batch: samples a step.
        learning_rate: at its peak.
        warmup_steps: steps of linear rise.
        sigma_bins: width of the soft labels; falls to ``final_sigma_bins`` in the last quarter.
        final_sigma_bins: width at the end.
        ema: decay of the averaged weights, which are the ones that are saved.
        clip: largest gradient norm.
        weights: of the parts of the loss.
        report_every: steps between lines of the log.
        save_every: steps between checkpoints.
        max_steps: stop here at the latest.
        seed: of everything random.
        bf16: multiply in bfloat16.
    """

    minutes: float = 20.0
    batch: int = 32
    learning_rate: float = 1e-3
    warmup_steps: int = 100
    sigma_bins: float = 3.0
    final_sigma_bins: float = 1.0
    ema: float = 0.998
    clip: float = 1.0
    weights: LossWeights = field(default_factory=LossWeights)
    report_every: int = 500
    save_every: int = 5000
    max_steps: int = 10**9
    seed: int = 0
    bf16: bool = False


class Trainer:
    """Model, averaged weights, optimiser and data; ``run`` spends the budget."""

    def __init__(
        self, data: Demonstrations, out: Path, config: TrainingConfig, init: Path | None = None
    ) -> None:
        self.data, self.out, self.config = data, out, config
        torch.manual_seed(config.seed)
        self.rng = np.random.default_rng(config.seed)
        if init is None:
            tokenizer = build_tokenizer(data.instructions)
            self.model_json = _new_model_json(data)
            self.model = OpenVLA(OpenVLAConfig.from_json(self.model_json))
            self.model.init_fan_in()
        else:
            tokenizer = load_tokenizer(init)
            self.model = load_model(init).requires_grad_(requires_grad=True)
            self.model_json = dict(self.model.config.source)
        self.model.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
        self.tokenizer_json: str = tokenizer.to_str(pretty=True)
        self.statistics = ActionStatistics.from_json(
            next(iter(self.model_json["norm_stats"].values()))["action"]
        )
        self.prompts, self.prompt_mask = _prompt_table(data.instructions, tokenizer)
        self.average = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.optimizer = torch.optim.AdamW(self.model.parameters(), config.learning_rate)
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
        sums, started, cpu, since = np.zeros(12), time.monotonic(), time.process_time(), 0
        while self.progress < 1.0:
            if len(order) < self.config.batch:
                order = self.rng.permutation(self.data.train)
            rows, order = order[: self.config.batch], order[self.config.batch :]
            losses = self._update(self.data.batch(rows, self.rng, augment=True))
            now = time.monotonic()
            self.spent_s, started = self.spent_s + now - started, now
            sums += np.array([losses.total.item(), *losses.token.tolist(), *losses.pixel.tolist()])
            since += 1
            if self.step % self.config.report_every == 0 or self.progress >= 1.0:
                used = time.process_time() - cpu
                self._report(sums / since, since * self.config.batch / max(used, 1e-9))
                sums, since = np.zeros(12), 0
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
            losses = self.losses(batch, sigma=self._sigma(progress), augment=True)
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

    def _sigma(self, progress: float) -> float:
        late = max(0.0, (progress - 0.75) / 0.25)
        c = self.config
        return c.sigma_bins + (c.final_sigma_bins - c.sigma_bins) * late

    def losses(self, batch: Batch, *, sigma: float, augment: bool) -> Losses:
        """Loss of one batch under the live weights."""
        logits, visual = self._forward(batch, augment=augment)
        target = soft_targets(
            self.statistics.normalize(batch.action), sigma, self.model.config.n_action_bins
        )
        return batch_losses(batch, logits, torch.from_numpy(target), visual, self.config.weights)

    def _forward(self, batch: Batch, *, augment: bool) -> tuple[Tensor, VisualTokens]:
        """Log-probabilities of the action ids ``(B, 7, bins)``, and what the tower saw."""
        pixels = torch.from_numpy(batch.image).permute(0, 3, 1, 2).float() / 127.5 - 1.0
        if augment:
            pixels = relit(pixels, self.rng)
        config = self.model.config
        normalized = self.statistics.normalize(batch.action)
        ids = torch.from_numpy(encode_actions(normalized, config.token_base, config.n_action_bins))
        mask = None if self.prompt_mask is None else self.prompt_mask[batch.prompt]
        logits, visual = self.model(self.prompts[batch.prompt], pixels, ids, mask)
        low, high = config.action_token_range
        return torch.log_softmax(logits.float(), dim=-1)[..., low:high], visual

    @torch.no_grad()
    def validate(self, frames: int = 256) -> dict[str, float]:
        """Error of the averaged weights on held-out episodes, greedy with the true prefix."""
        rng = np.random.default_rng(1)
        rows = rng.choice(self.data.validation, min(frames, len(self.data.validation)), False)
        live = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.model.load_state_dict(self.average)
        batch = self.data.batch(rows, rng, augment=False)
        log_p, visual = self._forward(batch, augment=False)
        pixel = batch_losses(batch, log_p, log_p.exp(), visual, self.config.weights).pixel
        self.model.load_state_dict(live)
        config = self.model.config
        ids = log_p.argmax(dim=-1).numpy() + config.action_token_range[0]
        action = self.statistics.unnormalize(
            decode_ids(ids, config.token_base, config.n_action_bins)
        )
        error = np.abs(action - batch.action)
        return {
            "mm": float(error[:, :3].mean() * 1e3),
            "gripper": float((np.sign(action[:, 6]) == np.sign(batch.action[:, 6])).mean()),
            "named_px": float(pixel[1]),
        }

    def _report(self, mean: np.ndarray[Any, Any], rate: float) -> None:
        held_out = self.validate()
        log.info(
            "step %d %4.1f min loss %.3f kl[%s] px[tcp named other target %s] "
            "held out: xyz %.2f mm gripper %.3f named %.2f px | %.0f samples/cpu-s",
            self.step,
            self.spent_s / 60.0,
            mean[0],
            " ".join(f"{x:.2f}" for x in mean[1:8]),
            " ".join(f"{x:.2f}" for x in mean[8:12]),
            held_out["mm"],
            held_out["gripper"],
            held_out["named_px"],
            rate,
        )

    def save(self) -> None:
        """Write the averaged weights as a checkpoint, and what a resumed run needs beside it."""
        save_model(self.out, self.model_json, self.average, self.tokenizer_json)
        tensors = {f"live.{k}": v.contiguous() for k, v in self.model.state_dict().items()}
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


def _new_model_json(data: Demonstrations) -> dict[str, Any]:
    llm = LlamaSizes(
        vocab_size=WORD_SLOTS + 256 + PAD,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=256,
        pad_token_id=WORD_SLOTS + 256,
    )
    tower = GroundedConvConfig(image_size=data.image.shape[1])
    out = grounded_conv_json(tower, llm, pad_to_multiple_of=PAD)
    out["norm_stats"] = {
        DATA_NAME: {
            "action": action_statistics(data.action[data.train]),
            "num_transitions": len(data),
        }
    }
    return out


def _prompt_table(instructions: list[str], tokenizer: Any) -> tuple[Tensor, Tensor | None]:
    rows = [prompt_ids(tokenizer, text) for text in instructions]
    length = max(map(len, rows))
    ids = torch.tensor([row + [0] * (length - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
    return ids, None if bool(mask.all()) else mask


def main() -> None:
    """Command line of the trainer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demos", required=True, type=Path, nargs="+", help="shards or folders")
    parser.add_argument("--out", required=True, type=Path, help="checkpoint folder to write")
    parser.add_argument("--minutes", required=True, type=float, help="wall-clock budget")
    parser.add_argument("--init", type=Path, help="checkpoint to start from")
    parser.add_argument("--resume", action="store_true", help="continue the run in --out")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-steps", type=int, default=10**9)
    parser.add_argument("--bf16", action="store_true", help="bfloat16 products (faster on some)")
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    torch.set_num_threads(args.threads)
    files = [f for p in args.demos for f in (sorted(p.glob("*.npz")) if p.is_dir() else [p])]
    data = Demonstrations.load(f for f in files if ".partial" not in f.name)
    log.info("%d frames, %d instructions", len(data), len(data.instructions))
    config = TrainingConfig(
        minutes=args.minutes,
        batch=args.batch,
        learning_rate=args.lr,
        seed=args.seed,
        max_steps=args.max_steps,
        bf16=args.bf16,
    )
    init = args.out if args.resume else args.init
    trainer = Trainer(data, args.out, config, init)
    if args.resume:
        trainer.resume()
    trainer.run()


if __name__ == "__main__":
    main()
