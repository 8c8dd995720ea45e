"""What was asked for, and what the loader got: told from the source and the frames alone."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from typing import Any

import pytest
import torch.utils.data

from stoker.run.origins import POSITIONS, Origin, origins_at
from stoker.run.origins_values import Site
from tests.scripts_with_origins import Scripts, told

CLAMP = "min(4, max(2, args.num_workers)) if args.num_workers > 0 else 0"

DOCUMENT_4 = f"""
    import argparse
    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--num-workers", "-j", type=int, default=8)
        parser.add_argument("--batch-size", type=int, default=4)
        parser.add_argument("--prefetch-factor", type=int, default=4)
        args = parser.parse_args()
        num_workers_for_hdd = {CLAMP}
        train_loader_kwargs = dict(
            batch_size=args.batch_size,
            shuffle=False,
            num_workers=num_workers_for_hdd,
            pin_memory=True,
        )
        if num_workers_for_hdd > 0:
            train_loader_kwargs["persistent_workers"] = True
            train_loader_kwargs["prefetch_factor"] = 2
        return DataLoader(dataset, **train_loader_kwargs)
    main()
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripts:
    return Scripts(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("arguments", "got", "asked", "given", "how", "kind"),
    [
        ((), 4, 8, False, "min(4, …)", "clamped"),
        (("--num-workers", "8"), 4, 8, True, "min(4, …)", "clamped"),
        (("--num-workers=8",), 4, 8, True, "min(4, …)", "clamped"),
        (("--num-w", "8"), 4, 8, True, "min(4, …)", "clamped"),
        (("-j8",), 4, 8, True, "min(4, …)", "clamped"),
        (("-j", "4"), 4, 4, True, None, "same"),
        (("-j", "1"), 2, 1, True, "max(2, …)", "clamped"),
        (("-j", "0"), 0, 0, True, None, "same"),
    ],
)
def test_a_clamp_is_named(
    run: Scripts,
    arguments: tuple[str, ...],
    got: int,
    asked: int,
    given: bool,
    how: str | None,
    kind: str,
) -> None:
    entry = run(DOCUMENT_4, *arguments)[0]["num_workers"]
    assert told(entry, "got", "asked", "given", "how", "kind") == (
        got,
        asked,
        given,
        how,
        kind,
    )
    assert told(entry, "expression", "line") == (CLAMP, 9)
    assert Path(entry["file"]).name == "train.py"
    option = "--num-w" if "--num-w" in arguments else "--num-workers"
    assert entry["source"] == (option if arguments else "args.num_workers")


@pytest.mark.parametrize(
    ("arguments", "given"), [((), False), (("--prefetch-factor", "8"), True)]
)
def test_an_option_that_never_reaches_the_loader_is_named(
    run: Scripts, arguments: tuple[str, ...], given: bool
) -> None:
    entry = run(DOCUMENT_4, *arguments)[0]["prefetch_factor"]
    asked = (8, "--prefetch-factor") if given else (4, "args.prefetch_factor")
    assert told(entry, "got", "kind", "given") == (2, "hard-coded", given)
    assert told(entry, "expression", "line") == ("2", 18)
    assert told(entry, "asked", "source") == asked


def test_settings_not_in_force_have_no_entry(run: Scripts) -> None:
    assert "prefetch_factor" not in run(DOCUMENT_4, "--num-workers", "0")[0]


def test_what_nobody_asked_about_is_hard_coded_or_torchs_default(run: Scripts) -> None:
    entries = run(DOCUMENT_4)[0]
    assert told(entries["pin_memory"], "kind", "asked", "line") == ("hard-coded", None, 14)
    assert told(entries["drop_last"], "kind", "asked", "expression") == ("default", None, None)


ARGS = "args = namespace(num_workers=8, batch_size=64, prefetch=8, pin_memory=True)\n"

SCRIPTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "the argument itself": (
        "DataLoader(dataset, num_workers=args.num_workers)",
        "num_workers",
        {"kind": "same", "asked": 8, "source": "args.num_workers", "given": False},
    ),
    "by position": (
        "DataLoader(dataset, args.batch_size // 2, True)",
        "batch_size",
        {"kind": "clamped", "asked": 64, "how": "… // 2"},
    ),
    "a call of several lines": (
        "DataLoader(\n    dataset,\n    num_workers=min(\n        4,\n  args.num_workers),\n)",
        "num_workers",
        {"kind": "clamped", "expression": "min( 4, args.num_workers)", "line": 4},
    ),
    "a literal that is spread": (
        "common = {'num_workers': args.num_workers}\n"
        'DataLoader(dataset, **{**common, "num_workers": 2})',
        "num_workers",
        {"kind": "hard-coded", "asked": 8, "expression": "2", "line": 3},
    ),
    "spread over a literal": (
        "common = {'num_workers': min(args.num_workers, 3)}\n"
        'DataLoader(dataset, **{"num_workers": 2, **common})',
        "num_workers",
        {"kind": "clamped", "asked": 8, "how": "min(…, 3)", "line": 2},
    ),
    "update": (
        "kw = dict(num_workers=args.num_workers)\nkw.update(num_workers=2)\n"
        "DataLoader(dataset, **kw)",
        "num_workers",
        {"kind": "hard-coded", "asked": 8, "line": 3},
    ),
    "a dictionary put into a dictionary": (
        "kw = dict(num_workers=2)\nkw |= {'num_workers': args.num_workers}\n"
        "DataLoader(dataset, **kw)",
        "num_workers",
        {"kind": "same", "asked": 8},
    ),
    "setdefault where there is a value": (
        "kw = dict(num_workers=args.num_workers)\nkw.setdefault('num_workers', 2)\n"
        "DataLoader(dataset, **kw)",
        "num_workers",
        {"kind": "same", "asked": 8},
    ),
    "taken out again": (
        "kw = dict(num_workers=2, pin_memory=True)\nkw.pop('pin_memory')\n"
        "DataLoader(dataset, **kw)",
        "pin_memory",
        {"kind": "hard-coded", "asked": True, "source": "args.pin_memory"},
    ),
    "never passed": (
        "DataLoader(dataset)",
        "num_workers",
        {"kind": "hard-coded", "asked": 8, "how": "num_workers is not passed", "line": 2},
    ),
    "a sampler of batches": (
        "from torch.utils.data import BatchSampler\n"
        "batches = BatchSampler(dataset, batch_size=args.batch_size // 2, drop_last=False)\n"
        "DataLoader(dataset, batch_sampler=batches)",
        "drop_last",
        {"kind": "hard-coded", "expression": "False", "line": 3},
    ),
    "two at once": (
        "n, m = args.num_workers // 4, 3\nDataLoader(dataset, num_workers=n)",
        "num_workers",
        {"kind": "clamped", "asked": 8, "how": "… // 4", "line": 2},
    ),
    "step by step": (
        "n = args.num_workers\nn = min(n, 6)\nn -= 2\nDataLoader(dataset, num_workers=n)",
        "num_workers",
        {"kind": "clamped", "asked": 8, "how": "min(…, 6)", "line": 3},
    ),
    "divided by the ranks": (
        "world = 4\nworld_size = world\n"
        "DataLoader(dataset, batch_size=int(args.batch_size / world_size))",
        "batch_size",
        {"kind": "divided-by-ranks", "asked": 64, "got": 16},
    ),
    "as in the ImageNet example": (
        "ngpus_per_node = 4\n"
        "args.num_workers = int((args.num_workers + ngpus_per_node - 1) / ngpus_per_node)\n"
        "DataLoader(dataset, num_workers=args.num_workers)",
        "num_workers",
        {"kind": "divided-by-ranks", "asked": 8, "got": 2, "given": True, "line": 3},
    ),
    "one of two branches": (
        "small = True\nif small:\n    n = min(2, args.num_workers)\nelse:\n"
        "    n = args.num_workers\nDataLoader(dataset, num_workers=n)",
        "num_workers",
        {"kind": "clamped", "how": "min(2, …)", "line": 4},
    ),
    "a branch that no reader can follow": (
        "if len(str(dataset)) > 1:\n    n = 3\nelse:\n    n = args.num_workers\n"
        "DataLoader(dataset, num_workers=n)",
        "num_workers",
        {"kind": "hard-coded", "asked": 8, "line": 3},
    ),
    "a lambda": (
        "make = lambda n: DataLoader(dataset, num_workers=min(n, 4))\nmake(args.num_workers)",
        "num_workers",
        {"kind": "clamped", "asked": 8, "how": "min(…, 4)", "line": 2},
    ),
    "a partial of the loader": (
        "import functools\nmake = functools.partial(DataLoader, num_workers=2)\nmake(dataset)",
        "num_workers",
        {"kind": "hard-coded", "asked": 8, "line": 3},
    ),
    "a partial of a function": (
        "import functools\ndef build(data, workers):\n"
        "    return DataLoader(data, num_workers=workers)\n"
        "make = functools.partial(build, workers=args.num_workers // 2)\nmake(dataset)",
        "num_workers",
        {"kind": "clamped", "asked": 8, "how": "… // 2", "line": 5},
    ),
    "a function's default": (
        "def build(data, num_workers=2):\n"
        "    return DataLoader(data, num_workers=num_workers)\n"
        "build(dataset)",
        "num_workers",
        {"kind": "hard-coded", "asked": 8, "expression": "2", "line": 2},
    ),
    "keywords handed on": (
        "def build(data, **kwargs):\n    return DataLoader(data, **kwargs)\n"
        "def outer(*a, **kw):\n    return build(*a, **kw)\n"
        "outer(dataset, num_workers=min(args.num_workers, 4))",
        "num_workers",
        {"kind": "clamped", "asked": 8, "how": "min(…, 4)", "line": 6},
    ),
    "positions handed on": (
        "def build(data, n):\n    return DataLoader(data, num_workers=n)\n"
        "def outer(*a, **kw):\n    return build(*a, **kw)\n"
        "outer(dataset, min(args.num_workers, 4))",
        "num_workers",
        {"kind": "clamped", "asked": 8, "how": "min(…, 4)", "line": 6},
    ),
    "a function that tells": (
        "def workers(options):\n    return min(options.num_workers, 4)\n"
        "DataLoader(dataset, num_workers=workers(args))",
        "num_workers",
        {"kind": "clamped", "asked": 8, "how": "min(…, 4)", "line": 3},
    ),
    "a function that makes the dictionary": (
        "def settings(options):\n    return dict(num_workers=min(options.num_workers, 4))\n"
        "DataLoader(dataset, **settings(args))",
        "num_workers",
        {"kind": "clamped", "asked": 8, "how": "min(…, 4)", "line": 3},
    ),
    "a function around": (
        "def outer():\n    n = min(4, args.num_workers)\n    def inner():\n"
        "        return DataLoader(dataset, num_workers=n)\n    return inner()\nouter()",
        "num_workers",
        {"kind": "clamped", "asked": 8, "how": "min(4, …)", "line": 3},
    ),
    "a function around that has returned": (
        "def outer(options):\n    n = min(4, options.num_workers)\n    def inner():\n"
        "        return DataLoader(dataset, num_workers=n)\n    return inner\nouter(args)()",
        "num_workers",
        {"kind": "clamped", "asked": 8, "how": "min(4, …)", "line": 3},
    ),
    "a constant of the module": (
        "WORKERS = 2\n"
        "def build():\n    return DataLoader(dataset, num_workers=WORKERS)\nbuild()",
        "num_workers",
        {"kind": "hard-coded", "asked": 8, "expression": "2", "line": 2},
    ),
    "something that no option says": (
        "import os\nDataLoader(dataset, batch_size=len(os.listdir('/')) + 1)",
        "batch_size",
        {"kind": "computed", "expression": "len(os.listdir('/')) + 1", "asked": 64},
    ),
    "another option decides": (
        "del args.pin_memory\nDataLoader(dataset, pin_memory=args.num_workers > 0)",
        "pin_memory",
        {"kind": "computed", "expression": "args.num_workers > 0", "asked": None},
    ),
    "the opposite of an option": (
        "args = namespace(no_pin_memory=True)\n"
        "DataLoader(dataset, pin_memory=not args.no_pin_memory)",
        "pin_memory",
        {"kind": "same", "asked": False, "source": "args.no_pin_memory"},
    ),
    "all arguments spread": (
        "DataLoader(dataset, **{k: v for k, v in vars(args).items() if k == 'num_workers'})",
        "num_workers",
        {"kind": "same", "source": "args.num_workers"},
    ),
    "a method of a class of the user's": (
        "class Data:\n"
        "    def __init__(self, workers):\n        self.workers = min(workers, 4)\n"
        "    def train_dataloader(self):\n"
        "        return DataLoader(dataset, num_workers=self.workers)\n"
        "Data(args.num_workers).train_dataloader()",
        "num_workers",
        {"kind": "clamped", "asked": 8, "how": "min(…, 4)", "line": 4},
    ),
    "a subclass": (
        "class Mine(DataLoader):\n    def __init__(self, data, workers):\n"
        "        super().__init__(data, num_workers=workers + 1)\n"
        "Mine(dataset, args.num_workers)",
        "num_workers",
        {"kind": "clamped", "asked": 8, "got": 9, "how": "… + 1", "line": 4},
    ),
    "no loader of ours": (
        "class Trainer:\n    def fit(self):\n        exec('DataLoader(dataset)', globals())\n"
        "Trainer().fit()",
        "num_workers",
        {"kind": "unknown", "asked": None, "source": None},
    ),
    "a container that is searched with a variable": (
        "sizes = {'train': args.num_workers, 'val': 2}\nsplit = 'val'\n"
        "DataLoader(dataset, num_workers=sizes[split])",
        "num_workers",
        {"kind": "hard-coded", "expression": "2", "line": 2},
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_origin_of(run: Scripts, name: str) -> None:
    source, setting, expected = SCRIPTS[name]
    arguments = ["--num-workers", "8"] if expected.get("given") else []
    entry = run(ARGS + source, *arguments)[0][setting]
    assert {key: entry[key] for key in expected} == expected


def test_two_files_are_followed(run: Scripts) -> None:
    """The loader is made in one, the option is clamped in the other."""
    loaders = """
        def build_loader(DataLoader, dataset, num_workers, **more):
            return DataLoader(dataset, num_workers=num_workers, **more)
    """
    script = """
        import loaders
        args = namespace(num_workers=8, prefetch_factor=8)
        n = max(1, args.num_workers // 4)
        loaders.build_loader(DataLoader, dataset, n, prefetch_factor=3)
    """
    entries = run(script, "--num-workers", "8", loaders=loaders)[0]
    workers, prefetch = entries["num_workers"], entries["prefetch_factor"]
    assert told(workers, "asked", "got", "given", "line", "kind") == (8, 2, True, 4, "clamped")
    assert told(prefetch, "asked", "got", "line", "kind") == (8, 3, 5, "hard-coded")
    assert {Path(each["file"]).name for each in (workers, prefetch)} == {"train.py"}


def test_an_option_hard_coded_in_the_other_file_is_named(run: Scripts) -> None:
    loaders = """
        def build_loader(DataLoader, dataset, args):
            return DataLoader(dataset, num_workers=2)
    """
    script = """
        import loaders
        def main():
            args = namespace(workers=8)
            loaders.build_loader(DataLoader, dataset, args)
        main()
    """
    entry = run(script, loaders=loaders)[0]["num_workers"]
    assert told(entry, "asked", "got", "line", "kind") == (8, 2, 3, "hard-coded")
    assert Path(entry["file"]).name == "loaders.py"


def test_loaders_made_in_a_loop_are_told_apart(run: Scripts) -> None:
    script = """
        args = namespace(num_workers=8)
        for split, n in (("train", args.num_workers), ("val", 2)):
            DataLoader(dataset, num_workers=n)
        [DataLoader(dataset, num_workers=n) for n in (args.num_workers, 3)]
    """
    entries = [each["num_workers"] for each in run(script)]
    assert [told(each, "kind", "asked", "got", "line") for each in entries] == [
        ("same", 8, 8, 3),
        ("hard-coded", 8, 2, 3),
        ("same", 8, 8, 5),
        ("hard-coded", 8, 3, 5),
    ]


def test_a_loader_made_where_there_is_no_source_has_its_place() -> None:
    site = Site(file="gone.py", text="", line=7, names={}, globals={})
    entry = origins_at([site], ("gone.py", 7), {"num_workers": 2}, [], {})
    assert entry == [Origin(setting="num_workers", got=2, file="gone.py", line=7)]


@pytest.mark.parametrize("source", ["def broken(:", "x = 1\n", "\x00", "DataLoader(**kw)\n"])
def test_a_source_that_tells_nothing_is_unknown(source: str) -> None:
    site = Site(file="train.py", text=source, line=1, names={}, globals={})
    entry = origins_at([site], ("train.py", 1), {"num_workers": 2}, ["train.py"], {})
    assert entry == [Origin(setting="num_workers", got=2, file="train.py", line=1)]


@pytest.mark.parametrize(
    ("workers", "got", "how", "kind"),
    [(8, 4, "min(4, …)", "clamped"), (4, 4, None, "same"), (1, 2, "max(2, …)", "clamped")],
)
def test_text_and_values_are_enough(
    workers: int, got: int, how: str | None, kind: str
) -> None:
    """Without a frame: what a test, or a Python without columns, has."""
    source = (
        "def main(args):\n"
        f"    n = {CLAMP}\n"
        "    return DataLoader(data,\n"
        "        num_workers=n)\n"
    )
    names = {"args": argparse.Namespace(num_workers=workers), "n": got}
    site = Site(file="t.py", text=source, line=3, names=names, globals={})
    (entry,) = origins_at([site], ("t.py", 3), {"num_workers": got}, [], {})
    assert (entry.asked, entry.how, entry.kind, entry.line) == (workers, how, kind, 2)


def test_positions_are_torchs() -> None:
    names = list(inspect.signature(torch.utils.data.DataLoader).parameters)
    assert {name: names.index(name) for name in POSITIONS} == POSITIONS
