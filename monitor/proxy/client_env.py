"""The client as an environment and the server as a policy, for the project's one loop."""

from __future__ import annotations

from dataclasses import fields
from types import SimpleNamespace
from typing import Any, final

import numpy as np

from monitor.proxy.connection import Frame, ProxyConnection
from monitor.proxy.request import ClientEnvInfo, Request, Split, read_request
from monitor.records import FloatArray
from policies import Observation, PolicyOutput
from policies.wire.client import RemoteError, raised_there, read_reply
from policies.wire.codec import decode, encode
from policies.wire.keys import KeyMap, find, ours, put
from policies.wire.messages import output_of

__all__ = ["ClientEnv", "UpstreamPolicy", "rewrite"]


@final
class ClientEnv:
    """An episode of a client: its requests are the observations, its answers the actions.

    Args:
        connection: connection to client and server.
        first: request that begins the episode.
        info: the client's environment.
        keys: key map of the messages.
        split: where the episode ends within the connection.
        acts: whether the monitor's action goes to the client; otherwise the server's frame has
            gone there before the monitor saw it.
        gripper_index: gripper dimension of an action, kept where the monitor's action replaces a
            chunk.
    """

    def __init__(
        self,
        connection: ProxyConnection,
        first: Request,
        info: ClientEnvInfo,
        *,
        keys: KeyMap,
        split: Split,
        acts: bool,
        gripper_index: int,
    ) -> None:
        self.connection = connection
        self.request = first
        self.info = info
        self.keys = keys
        self.acts = acts
        self.forwarded = False
        """Whether the current request has gone to the server."""
        self.answered = False
        """Whether the current request has been answered."""
        self.next: Request | None = None
        """Request that ended the episode; None while it runs, or if the client has gone."""
        self.over = False
        """Whether the client or an episode boundary ended the episode, not the loop."""
        self.unwrapped = self
        self.control_dt_s = info.control_dt_s
        self.action_space = SimpleNamespace(low=info.action_low, high=info.action_high)
        self._split = split
        self._gripper_index = gripper_index
        self._frame: Frame = b""
        self._policy_action: FloatArray | None = None
        self._unrequested = connection.unrequested

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Return the first observation, which has arrived already."""
        return self._observe()

    def step(self, action: FloatArray) -> Any:
        """Answer the client and wait for its next request."""
        if not self.answered:
            frame = self._frame
            if self._policy_action is None or not np.array_equal(action, self._policy_action):
                frame = rewrite(frame, action, self.keys, self._gripper_index)
            self.answer(frame)
        frame_or_none = self.connection.next_request()
        following = None if frame_or_none is None else read_request(frame_or_none, self.keys)
        quiet_since = self.connection.quiet_since
        if following is None or self._split.before(
            following, self.request.instruction, quiet_since
        ):
            self.next, self.over = following, True
        else:
            self.request, self.forwarded, self.answered = following, False, False
        observation, info = self._observe()
        return observation, 0.0, False, self.over, info

    def forward(self) -> PolicyOutput:
        """Forward the current request to the server and read its answer.

        Raises:
            RemoteError: if there is no answer, or if it is an error, which the client then has.
            WireFormatError: if the answer does not hold an action.
        """
        self.forwarded = True
        self._frame, self._policy_action = self.connection.exchange(self.request.frame), None
        if not self.acts:
            self.answer(self._frame)
        if self.connection.unrequested > self._unrequested:
            self._unrequested = self.connection.unrequested
            msg = f"STALE_ACTION: {self.connection.url} sent a frame before the request"
            raise RemoteError(msg)
        try:
            reply = read_reply(self._frame, self.connection.url, self.request.number)
        except RemoteError:
            if isinstance(self._frame, str):  # an error moves nothing: the client may have it
                self.answer(self._frame)
            raise
        if ours("error") in reply:
            self.answer(self._frame)
            raise RemoteError(raised_there(reply, self.connection.url))
        output = output_of(reply, self.keys)
        self._policy_action = output.action
        return output

    def answer(self, frame: Frame) -> None:
        """Send the client its answer, at most once per request.

        Raises:
            RemoteError: if the client has gone.
        """
        if not self.answered:
            self.answered = True
            if not self.connection.reply(frame):
                raise RemoteError(self.connection.who_left())

    def _observe(self) -> tuple[dict[str, Any], dict[str, Any]]:
        request = self.request
        policy_input = request.observation
        values = {name: getattr(policy_input, name, None) for name in _FIELDS}
        observation = {name: value for name, value in values.items() if value is not None}
        info: dict[str, Any] = {"instruction": request.instruction or ""}
        for name in ("success", "goal_distance"):
            if getattr(request, name) is not None:
                info[name] = getattr(request, name)
        if request.problem:
            info["unreadable"] = request.problem
        return observation, info


_FIELDS = tuple(field.name for field in fields(Observation) if field.name != "instruction")


@final
class UpstreamPolicy:
    """The policy behind the server; it forwards the client's own frames."""

    signals: frozenset[str] = frozenset()

    def __init__(self, env: ClientEnv, name: str) -> None:
        self._env = env
        self.name = name

    def reset(self, instruction: str) -> None:
        """Do nothing: the client resets its policy itself, and that message has passed already."""

    def act(self, observation: Observation) -> PolicyOutput:
        """Forward the client's request; the loop's observation is not used.

        Raises:
            RemoteError: see :meth:`ClientEnv.forward`.
        """
        return self._env.forward()


def rewrite(frame: Frame, action: FloatArray, keys: KeyMap, gripper_index: int) -> bytes:
    """Return an answer with the monitor's action in place of the policy's.

    The client may execute every row of a chunk before its next request, so that the rows after the
    first hold the position and keep the gripper command.

    Args:
        frame: the server's answer.
        action: the monitor's action, ``(D,)``.
        keys: key map of the answer.
        gripper_index: gripper dimension of an action.
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
