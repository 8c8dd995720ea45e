"""What the user asked for: on the command line, in the environment, in a configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice

from stoker.run.origins_argv import (
    Given,
    as_typed,
    converted,
    declared_in,
    given_as,
    given_for,
    means,
)
from stoker.run.origins_code import Path, is_environment, text_of
from stoker.run.origins_leaves import Way
from stoker.run.origins_slice import Slice
from stoker.run.origins_values import (
    MAX_NAMESPACES,
    UNKNOWN,
    Site,
    fields_of,
    held_by,
    is_scalar,
    namespaces,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A wish: its value (or UNKNOWN), its source, and whether the user spelled it out."""

    value: object
    source: str
    given: bool


class Wishes:
    """Where the user's wishes stand while the calls of `sites` are under way."""

    def __init__(
        self, sites: Sequence[Site], argv: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self._all_sites = sites
        self._sites = [site for site in sites if not site.is_library]
        self._argv = argv
        self._environment = environment

    @cached_property
    def _declared(self) -> dict[str, str]:
        known: dict[str, str] = {}
        for source in {site.source for site in self._sites}:
            known |= declared_in(source)
        return known

    @cached_property
    def _fields(self) -> list[tuple[Path, object]]:
        """Each plain value in a namespace that some frame knows."""
        seen: set[int] = set()
        found: list[tuple[Path, object]] = []
        for site in self._sites:
            every = chain(namespaces(site.names), namespaces(site.globals))
            for path, holder in islice(every, MAX_NAMESPACES):
                if id(holder) not in seen:
                    seen.add(id(holder))
                    values = ((field, held_by(holder, field)) for field in fields_of(holder))
                    found += [((*path, f), value) for f, value in values if is_scalar(value)]
        return found

    def of_leaf(self, way: Way, code: Slice, got: object) -> Asked:
        """The wish at the end of `way`."""
        spellings = way.spellings(code)
        long = [each for each in spellings if len(each[1]) > 1] or spellings
        values = [code.evaluate(leaf.node, leaf.at) for leaf, _ in long]
        known = [index for index, value in enumerate(values) if value is not UNKNOWN]
        chosen = known[-1] if known else -1
        (leaf, path), value = long[chosen], converted(values[chosen], got)
        if is_environment(path):
            key = str(path[-1])
            return Asked(value, f'os.environ["{key}"]', key in self._environment)
        source = text_of(leaf.node, leaf.at.site.source)
        for _, each in spellings:
            found = self._given(each, value, got)
            if found is not None:
                is_option = found.source.startswith("-")
                return found if is_option else replace(found, source=source)
        return Asked(value, source, False)

    def of_name(self, setting: str, got: object, code: Slice, but: set[Path]) -> Asked | None:
        """The wish whose name is that of the setting, though it never reached the loader.

        None where there is no such name, or several that say different things. `but` are
        paths that did reach the loader.
        """
        known = [*self._fields, *self._parameters(code)]
        for sureness in (3, 2):
            found = [
                (path, value)
                for path, value in known
                if means(setting, path[-1]) == sureness
                and path not in but
                and is_alike(value, got)
            ]
            wishes = [
                self._given(path, value, got) or Asked(value, spelled(path), False)
                for path, value in found
            ]
            if wishes:
                same = {wish.value for wish in wishes}
                return max(wishes, key=lambda wish: wish.given) if len(same) == 1 else None
        given = given_as(setting, self._argv, self._declared)
        if given is None or (value := as_typed(given, got)) is UNKNOWN:
            return None
        return Asked(value, given.option, True)

    def _parameters(self, code: Slice) -> Iterator[tuple[Path, object]]:
        """What the functions under way were passed: click's and typer's options are that."""
        for depth, site in enumerate(self._all_sites):
            found = None if site.is_library else code.call(depth)
            names = found[1].scope.every_parameter() if found else []
            values = ((name, site.names.get(name)) for name in names)
            yield from (((name,), value) for name, value in values if is_scalar(value))

    def _given(self, path: Path, value: object, got: object) -> Asked | None:
        """The wish as the command line has it."""
        given = given_for(path, self._argv, self._declared)
        if given is None:
            return None
        is_known = value is not UNKNOWN and value is not None
        typed = as_typed(given, value if is_known else got)
        if given.is_short_for_more and typed != value:
            return None
        return Asked(value if typed is UNKNOWN else typed, self._source(given, path), True)

    def _source(self, given: Given, path: Path) -> str:
        long = self._declared.get(given.option, given.option)
        return long if long.startswith("-") else spelled(path)


def is_alike(value: object, got: object) -> bool:
    """Whether both are switches, or both numbers."""
    return isinstance(value, int | float) and isinstance(value, bool) == isinstance(got, bool)


def spelled(path: Path) -> str:
    """`cfg.data.num_workers`."""
    return ".".join(str(key) for key in path)
