"""Wishes are read from where they are stored, and nothing of the script changes by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts_with_origins import Scripts, told


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripts:
    return Scripts(tmp_path, monkeypatch)


def test_options_of_train_and_validation_are_told_apart(run: Scripts) -> None:
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


def test_configurations_that_disagree_are_not_chosen_from(run: Scripts) -> None:
    script = """
        cfg = namespace(train=namespace(batch_size=64), val=namespace(batch_size=1))
        DataLoader(dataset, batch_size=2)
    """
    assert told(run(script)[0]["batch_size"], "asked", "kind") == (None, "hard-coded")


def test_a_dataclass_is_read(run: Scripts) -> None:
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
def test_hydras_overrides_are_given(run: Scripts, arguments: tuple[str, ...]) -> None:
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


def test_omegaconf_is_read_without_running_its_resolvers(run: Scripts) -> None:
    omegaconf = pytest.importorskip("omegaconf")
    script = """
        from omegaconf import OmegaConf
        ran = []
        OmegaConf.register_new_resolver("count", lambda: ran.append(1) or 2, replace=True)
        cfg = OmegaConf.create({"data": {"num_workers": 8, "batch_size": "${count:}"}})
        OmegaConf.set_struct(cfg, True)
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
    run: Scripts, monkeypatch: pytest.MonkeyPatch, reads: str, given: bool
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


def test_lightnings_hparams_are_read_where_they_are_stored(run: Scripts) -> None:
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


def test_no_code_of_the_script_is_run(run: Scripts) -> None:
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


def test_objects_are_not_kept_alive(run: Scripts) -> None:
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


def test_a_functions_own_locals_stay_as_they_were(run: Scripts) -> None:
    script = """
        def main(lr=1):
            config = locals()
            DataLoader(dataset, num_workers=0)
            later = 2
            assert config == {"lr": 1}
        main()
    """
    assert len(run(script)) == 1
