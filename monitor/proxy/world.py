"""The client as an environment and the server as a policy, for the one loop of the project."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace
from typing import Any, final

import numpy as np

from monitor.proxy.line import Frame, Line
from monitor.proxy.request import EnvTold, Request, Split, read_request
from monitor.records import FloatArray
from policies import Observation, PolicyOutput
from policies.wire.client import RemoteError, raised_there, read_reply
from policies.wire.codec import decode, encode
from policies.wire.keys import KeyMap, find, ours, put
from policies.wire.messages import output_of

__all__ = ["ClientWorld", "UpstreamPolicy", "rewrite"]


@final
class ClientWorld:
    """An episode of a client: its requests are the observations, its answers the actions.

    Args:
        line: to client and server.
        first: the request that begins the episode.
        told: of the client's environment.
        keys: of the messages.
        split: where the episode ends within the connection.
        acts: whether the monitor's action goes to the client; else the server's frame has gone
            there before the monitor saw it.
        gripper_index: of an action, kept where the monitor's action takes the place of a chunk.
    """

    def __init__(
        self,
        line: Line,
        first: Request,
        told: EnvTold,
        *,
        keys: KeyMap,
        split: Split,
        acts: bool,
        gripper_index: int,
    ) -> None:
        self.line = line
        self.request = first
        self.told = told
        self.keys = keys
        self.acts = acts
        self.asked = False
        """Whether the present request has gone to the server."""
        self.answered = False
        """Whether the present request has got its answer."""
        self.next: Request | None = None
        """The request that ended the episode; None while it runs, and when the client has gone."""
        self.over = False
        """Whether the client or a boundary ended the episode, not the loop."""
        self.unwrapped = self
        self.control_dt_s = told.control_dt_s
        self.action_space = SimpleNamespace(low=told.action_low, high=told.action_high)
        self._split = split
        self._gripper_index = gripper_index
        self._frame: Frame = b""
        self._wanted: FloatArray | None = None
        self._unasked = line.unasked

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """The first observation; it has come already."""
        return self._seen()

    def step(self, action: FloatArray) -> Any:
        """Answer the client and wait for what it asks next."""
        if not self.answered:
            frame = self._frame
            if self._wanted is None or not np.array_equal(action, self._wanted):
                frame = rewrite(frame, action, self.keys, self._gripper_index)
            self.answer(frame)
        frame_or_none = self.line.next_request()
        coming = None if frame_or_none is None else read_request(frame_or_none, self.keys)
        quiet_since = self.line.quiet_since
        if coming is None or self._split.before(coming, self.request.instruction, quiet_since):
            self.next, self.over = coming, True
        else:
            self.request, self.asked, self.answered = coming, False, False
        observation, info = self._seen()
        return observation, 0.0, False, self.over, info

    def ask(self) -> PolicyOutput:
        """Pass the present request to the server and read its answer.

        Raises:
            RemoteError: if there is no answer, or it is an error; the client has it then.
            WireFormatError: if the answer is no action.
        """
        self.asked = True
        self._frame, self._wanted = self.line.exchange(self.request.frame), None
        if not self.acts:
            self.answer(self._frame)
        if self.line.unasked > self._unasked:
            self._unasked = self.line.unasked
            msg = f"STALE_ACTION: {self.line.url} sent a frame before it was asked"
            raise RemoteError(msg)
        try:
            reply = read_reply(self._frame, self.line.url, self.request.number)
        except RemoteError:
            if isinstance(self._frame, str):  # an error moves nothing: the client may have it
                self.answer(self._frame)
            raise
        if ours("error") in reply:
            self.answer(self._frame)
            raise RemoteError(raised_there(reply, self.line.url))
        output = output_of(reply, self.keys)
        self._wanted = output.action
        return output

    def answer(self, frame: Frame) -> None:
        """Send the client its answer, once.

        Raises:
            RemoteError: if the client has gone.
        """
        if not self.answered:
            self.answered = True
            if not self.line.reply(frame):
                raise RemoteError(self.line.who_left())

    def _seen(self) -> tuple[dict[str, Any], dict[str, Any]]:
        request = self.request
        seen = request.observation
        values = {} if seen is None else {one.name: getattr(seen, one.name) for one in _FIELDS}
        observation = {name: value for name, value in values.items() if value is not None}
        info: dict[str, Any] = {"instruction": request.instruction or ""}
        for name in ("success", "goal_distance"):
            if getattr(request, name) is not None:
                info[name] = getattr(request, name)
        if request.problem:
            info["unreadable"] = request.problem
        return observation, info


_FIELDS = tuple(one for one in fields(Observation) if one.name != "instruction")


@final
class UpstreamPolicy:
    """The policy behind the server; asks with the client's own frames."""

    signals: frozenset[str] = frozenset()

    def __init__(self, world: ClientWorld, name: str) -> None:
        self._world = world
        self.name = name

    def reset(self, instruction: str) -> None:
        """The client resets its policy itself; that message has passed already."""

    def act(self, observation: Observation) -> PolicyOutput:
        """Pass the request on; what the loop made of it is not needed.

        Raises:
            RemoteError: see :meth:`ClientWorld.ask`.
        """
        return self._world.ask()


def rewrite(frame: Frame, action: FloatArray, keys: KeyMap, gripper_index: int) -> bytes:
    """An answer with the monitor's action in the policy's place.

    Of a chunk, the client may execute every row before it asks again: the rows after the first
    then stand still and keep the gripper.

    Args:
        frame: the server's answer.
        action: ``(D,)``.
        keys: of the answer.
        gripper_index: of the number of an action that is no motion.
    """
    message = decode(frame)
    given = np.asarray(find(message, keys.actions))
    rows = np.zeros((max(len(np.atleast_2d(given)), 1), action.size))
    rows[:, gripper_index] = action[gripper_index]
    rows[0] = action
    dtype = given.dtype if given.dtype.kind == "f" else np.dtype(np.float64)
    put(message, keys.actions, rows.astype(dtype).reshape(given.shape))
    if ours("action") in message:
        message[ours("action")] = np.array(action)
    if ours("chunk") in message:
        message[ours("chunk")] = rows
    return encode(message)
