"""Memory limits and pressure, as folders made by hand say them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stoker.machine.memory import MemoryState, memory_state

MB = 1 << 20
NO_LIMIT_V1 = "9223372036854771712"
MEMINFO = "MemTotal: 16384 kB\nMemFree: 100 kB\nMemAvailable: 8192 kB\nHugePages_Total: 0"
STALLED = "some avg10={} avg60=0.10 avg300=0.01 total=99\nfull avg10=0.02 total=5\n"


def state_of(folder: Path, files: dict[str, object]) -> MemoryState:
    """What is read below `folder` when it has these files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    return memory_state(folder)


def figures(state: MemoryState) -> list[tuple[str, str, int, int]]:
    return [
        (Path(each.source).name, each.effect, each.limit_bytes // MB, each.used_bytes // MB)
        for each in state.limits
    ]


HOST = ("meminfo", "kills", 16, 8)


def test_where_nothing_is_told_nothing_is_known(tmp_path: Path) -> None:
    state = state_of(tmp_path, {})
    assert state == MemoryState(limits=(), stalled_share=None, swapped_in_bytes=None)
    assert state.tightest is None


def test_without_a_cgroup_the_host_is_the_limit(tmp_path: Path) -> None:
    state = state_of(tmp_path, {"proc/meminfo": MEMINFO})
    assert figures(state) == [HOST]
    assert state.tightest is not None
    assert state.tightest.free_bytes == 8 * MB


def test_nested_groups_of_version_2_are_limits_each(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/pods"
    state = state_of(
        tmp_path,
        {
            "proc/self/cgroup": "0::/pods/mine",
            "proc/meminfo": MEMINFO,
            "sys/fs/cgroup/memory.stat": "inactive_file 0",
            f"{group}/memory.max": 12 * MB,
            f"{group}/memory.high": "max",
            f"{group}/memory.current": 11 * MB,
            f"{group}/memory.stat": f"anon 5\ninactive_file {MB}",
            f"{group}/mine/memory.max": 9 * MB,
            f"{group}/mine/memory.high": 7 * MB,
            f"{group}/mine/memory.current": 4 * MB,
        },
    )
    assert figures(state) == [
        ("memory.high", "slows", 7, 4),
        ("memory.max", "kills", 9, 4),
        ("memory.max", "kills", 12, 10),
        HOST,
    ]
    # The outer group has less left than the inner: others are in it.
    assert state.tightest == state.limits[2]


def test_version_1_has_its_own_names(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/memory/job"
    state = state_of(
        tmp_path,
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/job\n4:memory:/job/step\n0::/",
            "sys/fs/cgroup/cpu,cpuacct/job/memory.limit_in_bytes": 1,
            "sys/fs/cgroup/memory/memory.limit_in_bytes": NO_LIMIT_V1,
            "sys/fs/cgroup/memory/memory.usage_in_bytes": 99 * MB,
            f"{group}/memory.limit_in_bytes": 8 * MB,
            f"{group}/memory.usage_in_bytes": 7 * MB,
            f"{group}/memory.stat": f"inactive_file 0\ntotal_inactive_file {2 * MB}",
            f"{group}/step/memory.limit_in_bytes": NO_LIMIT_V1,
            f"{group}/step/memory.usage_in_bytes": MB,
        },
    )
    assert figures(state) == [("memory.limit_in_bytes", "kills", 8, 5)]


@pytest.mark.parametrize("membership", ["0::/", "0::/not/shown/in/here"])
def test_a_container_sees_its_group_as_the_root(tmp_path: Path, membership: str) -> None:
    state = state_of(
        tmp_path,
        {
            "proc/self/cgroup": membership,
            "sys/fs/cgroup/memory.max": 4 * MB,
            "sys/fs/cgroup/memory.current": 5 * MB,
        },
    )
    assert figures(state) == [("memory.max", "kills", 4, 5)]
    assert state.limits[0].free_bytes == 0


@pytest.mark.parametrize(
    ("files", "share"),
    [
        ({"proc/pressure/memory": STALLED.format("3.50")}, 0.035),
        (
            {
                "proc/pressure/memory": STALLED.format("3.50"),
                "sys/fs/cgroup/a/memory.pressure": STALLED.format("20.00"),
            },
            0.2,
        ),
        ({"proc/pressure/memory": "not supported"}, None),
    ],
)
def test_pressure_is_the_groups_own_where_it_is_told(
    tmp_path: Path, files: dict[str, object], share: float | None
) -> None:
    group: dict[str, object] = {
        "proc/self/cgroup": "0::/a",
        "sys/fs/cgroup/a/memory.current": 1,
    }
    assert state_of(tmp_path, group | files).stalled_share == share


def test_swapping_is_counted_in_bytes(tmp_path: Path) -> None:
    state = state_of(tmp_path, {"proc/vmstat": "pgpgin 5\npswpin 3\npswpout 9"})
    assert state.swapped_in_bytes == 3 * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="needs /proc")
def test_this_host_has_a_limit() -> None:
    tightest = memory_state().tightest
    assert tightest is not None
    assert 0 < tightest.free_bytes < tightest.limit_bytes
