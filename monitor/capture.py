"""Logits captured from an unmodified model: from its stock ``generate()``, or from its head.

Nothing is forked or subclassed, and no heavy package is imported: a model is any object with
``generate`` (transformers 4.38 or later) or with a head that takes ``register_forward_hook``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import Any, Final, final

from monitor.errors import DimensionError, MonitorError
from monitor.pipeline import Monitor
from monitor.records import Decision, Step
from monitor.signals import OBSERVED_SIGNALS, POLICY_SIGNALS

__all__ = ["Captured", "MonitoredModel", "NothingToCaptureError", "capture", "monitored"]

ALL: Final = slice(None)


class NothingToCaptureError(MonitorError, TypeError):
    """An object has neither ``generate`` nor a head with ``register_forward_hook``."""


@final
class Captured:
    """Last output of a model; it stays on the model's device and is not copied.

    Args:
        tokens: slice of the generated tokens that encode the action.
        action_token_range: half-open range of the action ids within V, if V holds more.
    """

    def __init__(
        self, *, tokens: slice = ALL, action_token_range: tuple[int, int] | None = None
    ) -> None:
        self._tokens = tokens
        self._range = action_token_range
        self._rows: list[Any] = []
        self._ids: Any = None

    def clear(self) -> None:
        """Forget the last output."""
        self._rows, self._ids = [], None

    def take_generated(self, rows: tuple[Any, ...], sequences: Any) -> None:
        """Keep a whole output: logits ``(1, V)`` per token, and ids ``(1, n)`` with the prompt."""
        self._rows = [_single(row) for row in rows]
        self._ids = sequences[0, len(sequences[0]) - len(rows) :]

    def take_forward(self, logits: Any) -> None:
        """Keep the last row of a pass of the head, ``(1, n, V)`` or ``(1, V)``: the next token."""
        row = _single(logits)
        self._rows.append(row[-1] if row.ndim == 2 else row)

    @property
    def token_logits(self) -> Any:
        """Logits of the action tokens, ``(N, V)``; None before the first output."""
        rows = self._rows[self._tokens]
        if not rows:
            return None
        # torch.stack or numpy.stack: the library that made the rows is already imported.
        library = sys.modules[type(rows[0]).__module__.partition(".")[0]]
        return library.stack([row.detach() if hasattr(row, "detach") else row for row in rows])

    @property
    def token_ids(self) -> Any:
        """Ids of the action tokens, ``(N,)``; None if only the head was hooked."""
        return None if self._ids is None else self._ids[self._tokens]

    def step(self, **fields: Any) -> Step:
        """Return the monitor's input for this output and forget the output.

        Args:
            **fields: fields that the model does not know: ``action``, ``tcp_position``, ``image``
                and so on.
        """
        said = {
            "token_logits": self.token_logits,
            "token_ids": self.token_ids,
            "action_token_range": self._range,
        }
        self.clear()
        return Step(**{**said, **fields})


@contextmanager
def capture(
    model: Any,
    *,
    head: Any = None,
    tokens: slice = ALL,
    action_token_range: tuple[int, int] | None = None,
) -> Iterator[Captured]:
    """Capture the raw logits of every ``model.generate(...)`` within the block.

    ``generate`` still returns what its caller asked for. A model with its own decoding loop is
    hooked at its head instead; token ids are then unknown.

    Args:
        model: model with ``generate`` or with ``get_output_embeddings``.
        head: module to hook in any case, for example ``model.lm_head``.
        tokens: slice of the generated tokens that encode the action, for example ``slice(0, 12)``
            to leave an end token out.
        action_token_range: half-open range of the action ids within V, if V holds more.

    Raises:
        NothingToCaptureError: if the model has neither ``generate`` nor a head.

    Example::

        with capture(model, action_token_range=(31744, 32000)) as captured:
            ids = model.generate(**inputs, max_new_tokens=7, do_sample=False)
            decision = monitor.update(captured.step(action=decode(ids), tcp_position=tool))
    """
    captured = Captured(tokens=tokens, action_token_range=action_token_range)
    if head is None and callable(getattr(model, "generate", None)):
        given = vars(model).get("generate")
        model.generate = _capturing(model, model.generate, captured)
        try:
            yield captured
        finally:
            if given is None:
                del model.generate
            else:
                model.generate = given
        return
    hook = _hookable(model, head).register_forward_hook(
        lambda module, inputs, output: captured.take_forward(output)
    )
    try:
        yield captured
    finally:
        hook.remove()


@final
class MonitoredModel:
    """A model or policy with a monitor; see :func:`monitored`.

    Attributes that are not listed here are those of the model or policy.

    Attributes:
        monitor: monitor, reset by :meth:`reset` and updated once per step.
        decision: decision of the last step; send its ``action``. None before the first step.
    """

    def __init__(self, target: Any, monitor: Monitor, captured: Captured, stack: ExitStack) -> None:
        self.monitor = monitor
        self.decision: Decision | None = None
        self._target, self._captured, self._stack = target, captured, stack

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not yet built, or being unpickled
            raise AttributeError(name)
        return getattr(self._target, name)

    def __enter__(self) -> MonitoredModel:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Restore the model as it was."""
        self._stack.close()

    def reset(self, instruction: str = "", **options: Any) -> None:
        """Begin an episode of the monitor, and of the policy if it has ``reset``."""
        self.monitor.reset(instruction=instruction)
        self.decision = None
        self._captured.clear()
        if callable(begin := getattr(self._target, "reset", None)):
            begin(instruction, **options)

    def act(self, observation: Any, **sensed: Any) -> Any:
        """Query the policy, check its output and return it unchanged.

        Args:
            observation: input of the policy, a mapping or an object; the monitor reads the robot's
                signals in it too (:data:`monitor.signals.OBSERVED_SIGNALS`).
            **sensed: further fields of :class:`monitor.records.Step`.
        """
        began = perf_counter()
        seen = {**_fields(observation, OBSERVED_SIGNALS), **sensed}
        try:
            output = self._target.act(observation)
        except Exception as error:
            self._captured.clear()
            text = f"{type(error).__name__}: {error}"
            self.decision = self.monitor.update(Step(policy_error=text, **seen))
            raise
        seen.setdefault("latency_s", perf_counter() - began)
        self.decide(getattr(output, "action", None), **seen, **_fields(output, POLICY_SIGNALS))
        return output

    def decide(self, action: Any, **fields: Any) -> Decision:
        """Check an action that was decoded from the last ``generate()``.

        Args:
            action: ``(D,)`` environment units.
            **fields: further fields of :class:`monitor.records.Step`; they override the captured
                ones.
        """
        self.decision = self.monitor.update(self._captured.step(action=action, **fields))
        return self.decision


def monitored(
    target: Any,
    monitor: Monitor,
    *,
    model: Any = None,
    head: Any = None,
    tokens: slice = ALL,
    action_token_range: tuple[int, int] | None = None,
) -> MonitoredModel:
    """Attach a monitor to a model or a policy.

    Args:
        target: model with ``generate``, or policy with ``act(observation)``.
        monitor: monitor for the environment's action space.
        model: model of the policy, if the policy's output carries no logits; by default
            ``target.model`` if that has ``generate``.
        head: see :func:`capture`.
        tokens: see :func:`capture`.
        action_token_range: see :func:`capture`.

    Example::

        watched = monitored(vla, monitor, action_token_range=(31744, 32000))
        watched.reset("put the can on the plate")
        action = watched.predict_action(**inputs)     # the model's own; it calls generate()
        robot.send(watched.decide(action, tcp_position=tool).action)
    """
    stack = ExitStack()
    source = next(
        (one for one in (model, target, getattr(target, "model", None)) if _generates(one)), model
    )
    options: dict[str, Any] = {"tokens": tokens, "action_token_range": action_token_range}
    if source is None and head is None:
        if not callable(getattr(target, "act", None)):
            raise _nothing(target)
        captured = Captured(**options)
    else:
        captured = stack.enter_context(capture(source, head=head, **options))
    return MonitoredModel(target, monitor, captured, stack)


def _capturing(model: Any, generate: Callable[..., Any], captured: Captured) -> Callable[..., Any]:
    def watched(*args: Any, **kwargs: Any) -> Any:
        captured.clear()
        config = kwargs.get("generation_config") or getattr(model, "generation_config", None)
        by_default = getattr(config, "return_dict_in_generate", False)
        whole = kwargs.get("return_dict_in_generate", by_default)
        output = generate(
            *args, **{**kwargs, "output_logits": True, "return_dict_in_generate": True}
        )
        captured.take_generated(output.logits, output.sequences)
        return output if whole else output.sequences

    return watched


def _hookable(model: Any, head: Any) -> Any:
    if head is None and callable(find := getattr(model, "get_output_embeddings", None)):
        head = find()
    if not callable(getattr(head, "register_forward_hook", None)):
        raise _nothing(model if head is None else head)
    return head


def _nothing(given: Any) -> NothingToCaptureError:
    msg = (
        f"nothing to capture from {type(given).__name__}: expected generate(), act() or a head "
        "with register_forward_hook(); pass head=model.lm_head"
    )
    return NothingToCaptureError(msg)


def _generates(one: Any) -> bool:
    return callable(getattr(one, "generate", None))


def _single(batch: Any) -> Any:
    if len(batch) != 1:
        msg = f"got a batch of {len(batch)}, expected 1: a monitor is for one robot"
        raise DimensionError(msg)
    return batch[0]


def _fields(source: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the named values of an object or mapping, without those that are None."""
    given = source if isinstance(source, Mapping) else None
    found = {
        name: getattr(source, name, None) if given is None else given.get(name) for name in names
    }
    return {name: value for name, value in found.items() if value is not None}
