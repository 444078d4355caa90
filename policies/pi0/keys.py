"""From the key names of published π0 checkpoints to those of transformers' model.

LeRobot, openpi and transformers nest the same tensors differently, and each has changed its mind;
what is not known keeps its name, so that the strict check can name it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from policies.checkpoint import CheckpointError

__all__ = ["HEAD", "is_statistic", "native_names"]

HEAD: Final = "model.dit.embed_tokens.weight"
"""Where transformers keeps the action expert's language head, which the flow itself never uses."""

_STATISTICS: Final = ("normalize_inputs.", "normalize_targets.", "unnormalize_outputs.")
_VLM: Final = r"^paligemma_with_expert\.paligemma\.(?:model\.)?"
_RENAMES: Final = tuple(
    (re.compile(pattern), target)
    for pattern, target in (
        (r"^(state_proj|action_in_proj|action_time_mlp_(?:in|out))\.", r"embed_action_time.\1."),
        (r"^paligemma_with_expert\.gemma_expert\.lm_head\.", "model.dit.embed_tokens."),
        (r"^paligemma_with_expert\.gemma_expert\.model\.", "model.dit."),
        (_VLM + r"language_model\.(?:model\.)?(?!lm_head\.)", "model.vlm.language_model."),
        (_VLM + r"vision_tower\.(?:vision_model\.)?", "model.vlm.vision_tower."),
        (_VLM + r"multi_modal_projector\.", "model.vlm.multi_modal_projector."),
    )
)
_TIED: Final = re.compile(_VLM + r"(?:language_model\.)?lm_head\.weight$")
_EMBEDDING: Final = "model.vlm.language_model.embed_tokens.weight"


def is_statistic(key: str) -> bool:
    """Return whether a tensor is one of the statistics of LeRobot's first port."""
    return key.startswith(_STATISTICS)


def native_names(keys: Iterable[str]) -> dict[str, str]:
    """Keys of a checkpoint by transformers' name for the same tensor.

    PaliGemma's language head shares the embedding's values; checkpoints hold either or both, and
    the flow needs only the embedding.

    Raises:
        CheckpointError: if two keys mean the same tensor.
    """
    out: dict[str, str] = {}
    tied: list[str] = []
    for key in keys:
        bare = key.removeprefix("model.") if _wrapped(key) else key
        if _TIED.match(bare):
            tied.append(key)
            continue
        name = _renamed(bare)
        if name in out:
            msg = f"{out[name]} and {key} are the same tensor; the checkpoint holds it twice"
            raise CheckpointError(msg)
        out[name] = key
    for key in tied:
        out.setdefault(_EMBEDDING, key)
    return out


def _wrapped(key: str) -> bool:
    """Whether LeRobot's policy put its own ``model.`` before the name."""
    return not key.startswith(("model.dit.", "model.vlm."))


def _renamed(key: str) -> str:
    for pattern, target in _RENAMES:
        renamed, count = pattern.subn(target, key)
        if count:
            return renamed
    return key
