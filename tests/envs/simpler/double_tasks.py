"""The families of tasks of the SimplerEnv double, each with what the real one remembers wrongly."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from double_base import SMALL, WEIGHT_N, FakeSim
from double_world import Body, Pose, touch

from envs.pose import inverse, multiply
from envs.simpler.drawer import HANDLE

DRAWERS = ("top_drawer", "middle_drawer", "bottom_drawer")


class FakePick(FakeSim):  # type: ignore[misc]
    """Pick one object; its success is remembered."""

    def _lay(self, placed: dict[str, Any]) -> None:
        self.obj = self._body(self._wanted or self.scene["object"])
        if "init_xy" in placed:
            assert ("init_rot_quat" in placed) != (
                placed.get("orientation") in ("lr_switch", "laid_vertically", "upright")
            )
            self.obj.pose = Pose([*placed["init_xy"], self.obj.pose.p[2]], self.obj.pose.q)
        self.obj_height_after_settle = float(self.obj.pose.p[2])
        self._know(self.obj)
        self._lifted_steps = 0

    def _things(self) -> list[Body]:
        return [self.obj]

    def _verdict(self) -> dict[str, Any]:
        held = self.robot.held is self.obj
        lifted = held and float(self.obj.pose.p[2]) - self.obj_height_after_settle > 0.02
        self._lifted_steps += lifted
        stats = {"consec_grasp": held, "grasped": held, "n_lift_significant": self._lifted_steps}
        return {
            "is_grasped": held,
            "consecutive_grasp": held,
            "lifted_object": lifted,
            "lifted_object_significantly": lifted,
            "success": lifted or self._lifted_steps >= 5,
            "episode_stats": stats,
        }


class MoveNearInSceneEnv(FakeSim):  # type: ignore[misc]
    """Bring one object to another; it takes any objects, under the real one's name."""

    lies_on = True

    def _lay(self, placed: dict[str, Any]) -> None:
        self.episode_objs = [self._body(name) for name in self._wanted or self.scene["poses"]]
        by_name = {body.name: body for body in self.episode_objs}
        pair = (self.scene["object"], self.scene["target"])
        if "init_xys" in placed:
            for body, xy, quaternion in zip(
                self.episode_objs, placed["init_xys"], placed["init_rot_quats"], strict=True
            ):
                body.pose = Pose([*xy, body.pose.p[2]], quaternion)
            names = self._wanted
            pair = (names[placed["source_obj_id"]], names[placed["target_obj_id"]])
        self.episode_source_obj, self.episode_target_obj = (by_name[name] for name in pair)
        self.episode_model_ids = [body.name for body in self.episode_objs]
        self.episode_model_scales = [1.0] * len(self.episode_objs)
        boxes = self.facts["boxes"]
        self.model_db = {name: {"bbox": boxes.get(name, SMALL)} for name in by_name}
        self.episode_source_obj_bbox_world = self._box(self.episode_source_obj)
        self.episode_target_obj_bbox_world = self._box(self.episode_target_obj)
        self._start = self.episode_source_obj.pose.p.copy()

    def _box(self, body: Body) -> Any:
        box = self.model_db[body.name]["bbox"]
        return np.array(box["max"]) - np.array(box["min"])

    @property
    def target_obj_pose(self) -> Pose:
        return self.episode_target_obj.pose

    def _things(self) -> list[Body]:
        return self.episode_objs

    def _graspable(self) -> list[Body]:
        return [b for b in super()._graspable() if b is not self.episode_target_obj]

    def _gap(self) -> Any:
        return self.episode_source_obj.pose.p - self.episode_target_obj.pose.p

    def _top(self) -> float:
        """Height of the source's middle over the target's when it lies on it."""
        boxes = (self.episode_source_obj_bbox_world, self.episode_target_obj_bbox_world)
        return float(boxes[0][2] + boxes[1][2]) / 2 + 1e-3

    def _over(self) -> bool:
        half = float(np.linalg.norm(self.episode_target_obj_bbox_world[:2])) / 2
        return bool(np.hypot(*self._gap()[:2]) < half + 0.003)

    def _support(self, body: Body) -> float:
        if body is self.episode_source_obj and self.lies_on and self._over():
            return float(self.episode_target_obj.pose.p[2] + self._top())
        return float(self._heights[body.name])

    def _verdict(self) -> dict[str, Any]:
        held = self.robot.held is self.episode_source_obj
        moved = float(np.linalg.norm(self.episode_source_obj.pose.p - self._start)) > 0.03
        gap, types = self._gap(), self.facts["evaluate"]
        on = self._over() and 0.0 < gap[2] < self._top() + 0.02
        near = float(np.hypot(*gap[:2])) < 0.2
        solved = on if "src_on_target" in types else near and moved
        values = {
            "all_obj_keep_height": True,
            "moved_correct_obj": moved,
            "moved_wrong_obj": False,
            "near_tgt_obj": near,
            "is_closest_to_tgt": near,
            "is_src_obj_grasped": held,
            "consecutive_grasp": held,
            "src_on_target": on,
            "success": solved,
        }
        stats = {key: values[key] for key in types["episode_stats"]}
        reported = {key: values[key] for key in types if key != "episode_stats"}
        return {**reported, "episode_stats": stats}


class FakePair(MoveNearInSceneEnv):
    """Bring one object onto another; its own reset overrules the objects that it is given."""

    def reset(self, seed: int, options: dict[str, Any]) -> Any:
        options.pop("model_ids", None)
        options.setdefault("obj_init_options", {}).pop("init_xys", None)
        return super().reset(seed, options)


class FakeMoveNear(FakePair):
    """Bring one object near another."""

    lies_on = False


class FakeDrawer(FakeSim):  # type: ignore[misc]
    """A drawer that a held handle pulls along x of its cabinet."""

    packaged_shader = "rt"
    closes = False

    def _lay(self, placed: dict[str, Any]) -> None:
        self.drawer_id = self.scene["object"].removesuffix("_drawer")
        handle = multiply(self.scene["base_pose"], self.scene["poses"][self.scene["object"]])
        self._shut = multiply(handle, inverse(HANDLE))
        placed["cabinet_init_qpos"] = self._way = 0.2 if self.closes else 0.0
        if self.closes:
            self._shut = multiply(self._shut, [-self._way, 0, 0, 1, 0, 0, 0])
        self._shut[0] += self._remembered
        others = {name: pose for name, pose in self.scene["poses"].items() if name in DRAWERS}
        if len(others) < len(DRAWERS):  # the part in which the drawer is only a place
            others = {name: self.scene["poses"][self.scene["object"]] for name in DRAWERS}
        self.joint_names = [f"{name}_joint" for name in DRAWERS]
        self.joint_idx = DRAWERS.index(self.scene["object"])
        ways = np.zeros(len(DRAWERS), np.float32)
        self._grip = Body(self.scene["object"], Pose.of(handle))
        still = [
            Body(name, Pose.of(multiply(multiply(self.scene["base_pose"], p), inverse(HANDLE))))
            for name, p in others.items()
            if name != self._grip.name
        ]

        def get_qpos() -> Any:
            ways[self.joint_idx] = self._way
            return ways

        self.art_obj = SimpleNamespace(
            get_qpos=get_qpos, get_links=lambda: [*still, self.drawer_obj]
        )
        self._touches = 0

    @property
    def drawer_obj(self) -> Body:
        self._grip.pose = Pose.of(multiply(self._shut, [self._way, 0, 0, 1, 0, 0, 0]))
        return self._grip

    def _handle(self) -> Body:
        return Body("handle", Pose.of(multiply(self.drawer_obj.pose.seven, HANDLE)))

    def _drawn(self) -> list[Body]:
        return [self._handle(), *super()._drawn()]

    def _graspable(self) -> list[Body]:
        near = float(np.linalg.norm(self._handle().pose.p - self.robot.world[:3])) < 0.03
        if near and self.robot.wanted > self.robot.closedness:
            self.robot.held = self._grip
        return self._things()

    def _drag(self, body: Body, way: Any) -> None:
        if body is not self._grip:
            super()._drag(body, way)
            return
        axis = multiply(self._shut, [1, 0, 0, 1, 0, 0, 0])[:3] - self._shut[:3]
        self._way = float(np.clip(self._way + way @ axis, 0.0, 0.4))

    def _things(self) -> list[Body]:
        return []

    def _verdict(self) -> dict[str, Any]:
        done = self._way <= 0.05 if self.closes else self._way >= 0.15
        return {
            "qpos": self._way,
            "success": done,
            "episode_stats": {"qpos": f"{self._way:.3f}"},
        }


class FakeCloseDrawer(FakeDrawer):
    """The same, from open to closed."""

    closes = True


class FakePutInDrawer(FakeDrawer):
    """First open, then put in; a touch is remembered, and the second part comes by itself."""

    def _lay(self, placed: dict[str, Any]) -> None:
        name = next(iter(self.scene["bodies"]))
        self.obj = self._body(name)
        self._know(self.obj)
        super()._lay(placed)
        self._final = False

    def _things(self) -> list[Body]:
        return [self.obj]

    def is_final_subtask(self) -> bool:
        return self._final

    def advance_to_next_subtask(self) -> None:
        self._final = True

    def step(self, action: Any) -> Any:
        if self._elapsed >= 100:
            self.advance_to_next_subtask()
        return super().step(action)

    def get_language_instruction(self) -> str:
        first = super().get_language_instruction()
        return first if not self._final else f"place apple into {self.drawer_id} drawer"

    def _inside(self) -> bool:
        x, y, z = self.obj.pose.p - self.drawer_obj.pose.p
        return bool(max(abs(x), abs(y)) < 0.25 and abs(z) < 0.1)

    def _contacts(self) -> list[Any]:
        found: list[Any] = super()._contacts()
        if self.robot.held is not self.obj:
            under = self._grip if self._inside() else "body"
            found.append(touch(self.obj, under, WEIGHT_N, self.sim_freq))
        return found

    def _verdict(self) -> dict[str, Any]:
        self._touches += self._inside() and self.robot.held is not self.obj
        stats = {"qpos": self._way, "is_drawer_open": self._way >= 0.15}
        return {
            "success": self._final and self._way >= 0.05 and self._touches >= 1,
            "episode_stats": {**stats, "has_contact": self._touches},
        }
