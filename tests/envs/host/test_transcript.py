from __future__ import annotations

import io

from envs.host.transcript import KEPT_LINES, Transcript, excerpt


def read(content: bytes) -> tuple[str, ...]:
    transcript = Transcript(io.BytesIO(content))
    transcript.join(5.0)
    return transcript.lines


def test_the_last_lines_are_kept_and_no_more() -> None:
    lines = read(b"".join(b"frame %d\n\n" % number for number in range(1000)))
    assert lines[-1] == "frame 999"
    assert len(lines) == KEPT_LINES


def test_a_progress_bar_is_its_last_state() -> None:
    assert read(b"loading  10%\rloading  90%\rloading 100%") == ("loading 100%",)


def test_a_line_without_end_is_read_in_pieces() -> None:
    assert {len(line) for line in read(b"x" * 200_000)} == {65536, 200_000 - 3 * 65536}


def test_bytes_that_are_no_text_are_read_too() -> None:
    assert read(b"\xff\xfe broken\n") == ("\ufffd\ufffd broken",)


def test_a_crash_is_told_by_its_innermost_frames_and_what_came_before() -> None:
    said = (
        "loading robot",
        "vk::Device::waitForFences: ErrorDeviceLost",
        "Fatal Python error: Segmentation fault",
        "Current thread 0x00007f01 (most recent call first):",
        '  File "/sim/render.py", line 350 in get_obs',
        '  File "/sim/env.py", line 551 in step',
        '  File "/sim/env.py", line 99 in <lambda>',
        '  File "/host/server.py", line 58 in step',
        "Extension modules: numpy.core (total: 1)",
    )
    assert excerpt(said) == (
        "loading robot",
        "vk::Device::waitForFences: ErrorDeviceLost",
        "render.py:350 in get_obs",
        "env.py:551 in step",
        "env.py:99 in <lambda>",
    )


def test_without_a_crash_dump_the_last_lines_tell() -> None:
    assert excerpt(("one", "two", "licence expired " + "." * 500))[1].startswith("licence expired")
    assert max(map(len, excerpt(("x" * 500,)))) == 160
    assert excerpt(()) == ()
