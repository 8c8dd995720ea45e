"""Cures that are settings: where each is written, and what to write there."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.diagnose.case import Case
from stoker.diagnose.finding import Cure, Edit, SettingValue
from stoker.measure.facts import Origin


def setting_cure(case: Case, settings: Mapping[str, SettingValue], text: str = "") -> Cure:
    """Change `settings` of the training loader: on the command line where they come from
    there, otherwise in the line that makes them."""
    flags = [
        f"{origin.source} {value}"
        for name, value in settings.items()
        if (origin := origin_of(case, name)) and _comes_from_a_flag(origin)
    ]
    said = text or ", ".join(f"{name}={value}" for name, value in settings.items())
    return Cure(
        text=f"{said} ({' '.join(flags)})" if flags else said,
        settings=dict(settings),
        loader=case.loader.loader,
        place=case.loader.made_at,
        edits=tuple(
            edit for name, value in settings.items() if (edit := _edit(case, name, value))
        ),
    )


def origin_of(case: Case, setting: str) -> Origin | None:
    return next((each for each in case.loader.origins if each.setting == setting), None)


def _comes_from_a_flag(origin: Origin) -> bool:
    return origin.kind in ("same", "default") and (origin.source or "").startswith("--")


def _edit(case: Case, setting: str, value: SettingValue) -> Edit | None:
    origin = origin_of(case, setting)
    if origin is not None and _comes_from_a_flag(origin):
        return None
    if origin is not None and origin.place is not None and origin.expression:
        return Edit(
            place=origin.place, setting=setting, value=value, expression=origin.expression
        )
    made_at = case.loader.made_at
    return Edit(place=made_at, setting=setting, value=value) if made_at else None
