"""What was asked for, and what the loader got: told from the source and the frames alone."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch.utils.data

from stoker.run.origins import POSITIONS, Origin, origins_at, origins_of
from stoker.run.origins_values import Site, sites_from

Found = list[dict[str, dict[str, Any]]]
Run = Callable[..., Found]

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
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a script; for each loader it made, the origin of each setting.

    `DataLoader` in it takes what torch's takes and asks for its own origins.
    """
    monkeypatch.syspath_prepend(str(tmp_path))

    def run_script(source: str, *arguments: str, **files: str) -> Found:
        found: Found = []

        class DataLoader:
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                bound = inspect.signature(torch.utils.data.DataLoader).bind(*args, **kwargs)
                bound.apply_defaults()
                frame, place = sys._getframe(1), ("train.py", 0)
                # By itself: what it raises is kept from a user's script, not from a test.
                told = origins_at(
                    sites_from(frame), place, bound.arguments, sys.argv, os.environ
                )
                entries = origins_of(frame, bound.arguments, sys.argv)
                assert [each["kind"] for each in entries] == [each.kind for each in told]
                found.append({str(entry["setting"]): entry for entry in entries})

        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(source))
        monkeypatch.setattr(sys, "argv", [str(script), *arguments])
        names: dict[str, Any] = {
            "__name__": "__main__",
            "DataLoader": DataLoader,
            "dataset": range(8),
            "namespace": argparse.Namespace,
        }
        exec(compile(script.read_text(), str(script), "exec"), names)
        for name in files:
            sys.modules.pop(name, None)
        return found

    return run_script


def told(entry: Mapping[str, Any], *fields: str) -> tuple[Any, ...]:
    return tuple(entry[field] for field in fields)


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
    run: Run,
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
    assert entry["source"] == (arguments[0].rstrip("8=") if arguments else "args.num_workers")


@pytest.mark.parametrize(
    ("arguments", "given"), [((), False), (("--prefetch-factor", "8"), True)]
)
def test_an_option_that_never_reaches_the_loader_is_named(
    run: Run, arguments: tuple[str, ...], given: bool
) -> None:
    entry = run(DOCUMENT_4, *arguments)[0]["prefetch_factor"]
    asked = (8, "--prefetch-factor") if given else (4, "args.prefetch_factor")
    assert told(entry, "got", "kind", "given") == (2, "hard-coded", given)
    assert told(entry, "expression", "line") == ("2", 18)
    assert told(entry, "asked", "source") == asked


def test_settings_not_in_force_have_no_entry(run: Run) -> None:
    assert "prefetch_factor" not in run(DOCUMENT_4, "--num-workers", "0")[0]


def test_what_nobody_asked_about_is_hard_coded_or_torchs_default(run: Run) -> None:
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
        {"kind": "default", "asked": True, "source": "args.pin_memory"},
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
def test_the_origin_of(run: Run, name: str) -> None:
    source, setting, expected = SCRIPTS[name]
    arguments = ["--num-workers", "8"] if expected.get("given") else []
    entry = run(ARGS + source, *arguments)[0][setting]
    assert {key: entry[key] for key in expected} == expected


def test_two_files_are_followed(run: Run) -> None:
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


def test_an_option_hard_coded_in_the_other_file_is_named(run: Run) -> None:
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


def test_loaders_made_in_a_loop_are_told_apart(run: Run) -> None:
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


def test_options_of_train_and_validation_are_told_apart(run: Run) -> None:
    script = """
        args = namespace(batch_size=64, val_batch_size=16)
        DataLoader(dataset, batch_size=args.batch_size)
        DataLoader(dataset, batch_size=args.val_batch_size)
    """
    entries = [each["batch_size"] for each in run(script, "--val-batch-size", "16")]
    assert [told(each, "source", "given", "kind") for each in entries] == [
        ("args.batch_size", False, "same"),
        ("--val-batch-size", True, "same"),
    ]


def test_configurations_that_disagree_are_not_chosen_from(run: Run) -> None:
    script = """
        cfg = namespace(train=namespace(batch_size=64), val=namespace(batch_size=1))
        DataLoader(dataset, batch_size=2)
    """
    assert told(run(script)[0]["batch_size"], "asked", "kind") == (None, "hard-coded")


def test_a_dataclass_is_read(run: Run) -> None:
    script = """
        from dataclasses import dataclass, field
        @dataclass(slots=True)
        class Data:
            num_workers: int = 8
            pin_memory: bool = False
        @dataclass
        class Config:
            data: Data = field(default_factory=Data)
        def build(cfg):
            workers = min(cfg.data.num_workers, 4)
            return DataLoader(dataset, num_workers=workers, pin_memory=True)
        build(Config())
    """
    entries = run(script)[0]
    assert told(entries["num_workers"], "asked", "source") == (8, "cfg.data.num_workers")
    assert told(entries["pin_memory"], "asked", "kind") == (False, "hard-coded")


@pytest.mark.parametrize("arguments", [(), ("data.num_workers=8",), ("+data.num_workers=8",)])
def test_hydras_overrides_are_given(run: Run, arguments: tuple[str, ...]) -> None:
    script = """
        cfg = {"data": {"num_workers": 8, "batch_size": 4}}
        workers = min(4, cfg["data"]["num_workers"])
        DataLoader(dataset, **{**cfg["data"], "num_workers": workers})
    """
    entries = run(script, *arguments)[0]
    assert told(entries["num_workers"], "asked", "got", "given", "kind") == (
        *(8, 4),
        bool(arguments),
        "clamped",
    )
    assert told(entries["batch_size"], "asked", "given", "kind") == (4, False, "same")


def test_omegaconf_is_read_without_running_its_resolvers(run: Run) -> None:
    omegaconf = pytest.importorskip("omegaconf")
    script = """
        from omegaconf import OmegaConf
        ran = []
        OmegaConf.register_new_resolver("count", lambda: ran.append(1) or 2, replace=True)
        cfg = OmegaConf.create({"data": {"num_workers": 8, "batch_size": "${count:}"}})
        kept = cfg.data.batch_size
        DataLoader(dataset, num_workers=min(4, cfg.data.num_workers), batch_size=kept)
        assert len(ran) == 1
        DataLoader(dataset, **cfg.data)
        DataLoader(dataset, **OmegaConf.to_container(cfg.data, resolve=True))
    """
    entries = [each["num_workers"] for each in run(script, "data.num_workers=8")]
    assert omegaconf
    assert [told(each, "asked", "source", "given", "kind") for each in entries] == [
        (8, "cfg.data.num_workers", True, "clamped"),
        (8, "cfg.data.num_workers", True, "same"),
        (8, "cfg.data.num_workers", True, "same"),
    ]


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(
    "reads",
    [
        'os.environ.get("WORKERS", "8")',
        'os.getenv("WORKERS", 8)',
    ],
)
def test_the_environment_is_read(
    run: Run, monkeypatch: pytest.MonkeyPatch, reads: str, given: bool
) -> None:
    if given:
        monkeypatch.setenv("WORKERS", "8")
    script = f"import os\nDataLoader(dataset, num_workers=min(4, int({reads})))"
    entry = run(script)[0]["num_workers"]
    assert told(entry, "source", "given", "kind") == (
        'os.environ["WORKERS"]',
        given,
        "clamped",
    )
    assert told(entry, "asked", "got", "how") == (8, 4, "min(4, …)")


def test_lightnings_hparams_are_read_where_they_are_stored(run: Run) -> None:
    script = """
        ran = []
        class Attributes(dict):
            def __getattr__(self, name):
                ran.append(name)
                return self[name]
        class Module:
            def __init__(self, num_workers, batch_size):
                self._hparams = Attributes(num_workers=num_workers, prefetch_factor=8)
                self.batch_size = batch_size
            @property
            def hparams(self):
                ran.append("hparams")
                return self._hparams
            def train_dataloader(self):
                return DataLoader(
                    dataset,
                    num_workers=min(2, self.hparams.num_workers),
                    prefetch_factor=2,
                    batch_size=self.batch_size,
                )
        Module(8, 16).train_dataloader()
        assert ran == ["hparams", "num_workers"]
    """
    entries = run(script)[0]
    assert told(entries["num_workers"], "asked", "how") == (8, "min(2, …)")
    assert told(entries["prefetch_factor"], "asked", "kind") == (8, "hard-coded")
    assert told(entries["batch_size"], "asked", "source") == (16, "self.batch_size")


def test_no_code_of_the_script_is_run(run: Run) -> None:
    script = """
        ran = []
        class Config:
            num_workers = 8
            @property
            def batch_size(self): ran.append("property"); return 4
            def __getattr__(self, name): ran.append(name); return 2
            def __eq__(self, other): ran.append("eq"); return True
            def __hash__(self): ran.append("hash"); return 0
        class Mapping(dict):
            def __getitem__(self, key): ran.append("item"); return dict.__getitem__(self, key)
            def __missing__(self, key): ran.append("missing"); return 2
        config, params = Config(), Mapping(num_workers=8)
        workers, size, prefetch = params["num_workers"], config.batch_size, config.prefetch
        ran.clear()
        DataLoader(dataset, num_workers=workers, batch_size=size, prefetch_factor=prefetch)
        assert ran == [], ran
    """
    assert run(script)[0]["batch_size"]["got"] == 4


def test_objects_are_not_kept_alive(run: Run) -> None:
    script = """
        import weakref
        class Big: pass
        def main():
            big = Big()
            gone = weakref.ref(big)
            DataLoader(dataset, num_workers=0)
            del big
            assert gone() is None
        main()
    """
    assert len(run(script)) == 1


def test_a_functions_own_locals_stay_as_they_were(run: Run) -> None:
    script = """
        def main(lr=1):
            config = locals()
            DataLoader(dataset, num_workers=0)
            later = 2
            assert config == {"lr": 1}
        main()
    """
    assert len(run(script)) == 1


def test_a_loader_made_where_there_is_no_source_has_its_place() -> None:
    site = Site(file="gone.py", source="", line=7, names={}, globals={})
    entry = origins_at([site], ("gone.py", 7), {"num_workers": 2}, [], {})
    assert entry == [Origin(setting="num_workers", got=2, file="gone.py", line=7)]


@pytest.mark.parametrize("source", ["def broken(:", "x = 1\n", "\x00", "DataLoader(**kw)\n"])
def test_a_source_that_tells_nothing_is_unknown(source: str) -> None:
    site = Site(file="train.py", source=source, line=1, names={}, globals={})
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
    site = Site(file="t.py", source=source, line=3, names=names, globals={})
    (entry,) = origins_at([site], ("t.py", 3), {"num_workers": got}, [], {})
    assert (entry.asked, entry.how, entry.kind, entry.line) == (workers, how, kind, 2)


def test_positions_are_torchs() -> None:
    names = list(inspect.signature(torch.utils.data.DataLoader).parameters)
    assert {name: names.index(name) for name in POSITIONS} == POSITIONS
