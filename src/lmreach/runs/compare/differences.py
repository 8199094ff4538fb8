"""Where studies differ, and which of these differences move the numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from pydantic import JsonValue

from lmreach.results.compare import ComparisonEntry, Difference
from lmreach.results.study import StudyResults

__all__ = ["differences"]

Studies = Mapping[str, StudyResults]
Entries = Sequence[ComparisonEntry]

# Settings that say how much is run or where, and leave the outcome of a string as it is.
_HARMLESS = {"seed", "batch_size", "strings", "max_steps", "protocol", "within"}
_NOT_RECORDED = "not recorded"
# Mean steps within this factor are the same number: strings that end early spend fewer.
_SAME_STEPS = 1.1


def differences(studies: Studies, entries: Entries) -> tuple[Difference, ...]:
    """Return where the studies differ, what moves n50 or the slope first.

    Parameters
    ----------
    studies
        Measured ones by the name they go by.
    entries
        Of these studies, and published ones.
    """
    protocols = _by_study(entries, lambda one: one.protocol)
    found = [
        _differing("protocol", protocols, _PUBLISHED if "published" in protocols.values() else _PROTOCOL),
        _steps(studies, entries),
        _differing("targets", _by_study(entries, lambda one: one.target), _TARGETS),
        *_files(studies),
        _cut_short(entries),
        _differing("what vectors are held to", _by_study(entries, _sets), _WITHIN),
        _differing("settings of the search", _settings(studies), _SETTINGS),
        _differing("format behind eps", _limit_dtypes(studies), _FORMAT),
        _differing("numbers of vectors", _by_study(entries, _counts), _COUNTS, serious=False),
        _differing("arithmetic", {k: one.model.dtype for k, one in studies.items()}, _DTYPE, serious=False),
        _differing("vocabulary", _by_study(entries, _vocabulary), _VOCABULARY, serious=False),
        _unfinished(studies),
    ]
    return tuple(sorted((one for one in found if one is not None), key=lambda one: not one.serious))


_PROTOCOL = "The protocols differ, so n50 and slopes mean different things."
_PUBLISHED = (
    f"{_PROTOCOL} Under the published one the first token is given and counted, and no string is decoded."
)
_STEPS = (
    "Steps per string differ. More steps reach further, so a part of each difference in n50 or slope is one "
    "of steps, not of models."
)
_TARGETS = (
    "The kinds of target differ. Only rows of the same kind compare: likelier text reaches further than "
    "random tokens."
)
_SETTINGS = "The search was set differently, which moves n50."
_WITHIN = (
    "The vectors were held to different sets, so these are measurements of different premises: compare each "
    "with the limit of its own set."
)
_FORMAT = "The limits use the roundoff of different formats, so they are limits of different precision."
_COUNTS = "Slopes are fitted over different numbers of vectors m; where growth bends, so do they."
_DTYPE = "Weights were computed in different formats; this moves n50 little, if at all."
_VOCABULARY = (
    "The vocabularies differ, so a token is not the same amount of information. Bits per coordinate compare "
    "across them; tokens do not."
)
_CUT_SHORT = (
    "Most strings still grew when their steps ended. Their n50 is set by the number of steps and would "
    "likely rise with more."
)
_UNFINISHED = "These studies ended before all their strings were done; their intervals say how much is known."


def _differing(what: str, values: dict[str, str], words: str, *, serious: bool = True) -> Difference | None:
    if len(set(values.values())) < 2:
        return None
    return Difference(what=what, serious=serious, values=values, words=words)


def _by_study(entries: Entries, told: Callable[[ComparisonEntry], str]) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for entry in entries:
        values.setdefault(entry.study, []).append(told(entry))
    return {study: " / ".join(dict.fromkeys(each)) for study, each in values.items()}


def _counts(entry: ComparisonEntry) -> str:
    return ", ".join(map(str, entry.m))


def _sets(entry: ComparisonEntry) -> str:
    sets = dict.fromkeys(one.within or "any float32" for one in entry.conditions)
    return ", ".join(sets) or "any float32"


def _vocabulary(entry: ComparisonEntry) -> str:
    return _NOT_RECORDED if entry.vocab is None else f"{entry.vocab:,}"


def _steps(studies: Studies, entries: Entries) -> Difference | None:
    """Compare the steps that were allowed and those that were spent."""
    spent: dict[str, float] = {}
    for entry in entries:
        if entry.steps is not None:
            spent[entry.study] = max(entry.steps, spent.get(entry.study, 0.0))
    allowed = {name: _text(_cram(one).get("max_steps")) for name, one in studies.items()}
    allowed |= {one.study: f"{one.steps:.0f}" for one in entries if one.origin == "published" and one.steps}
    same = len(set(allowed.values())) < 2
    if same and (not spent or max(spent.values()) <= _SAME_STEPS * min(spent.values())):
        return None
    told = {
        name: f"{spent[name]:.0f}{'' if most == _NOT_RECORDED else f' of at most {most}'}"
        if name in spent and name in studies
        else f"at most {most}"
        for name, most in allowed.items()
    }
    return Difference(what="steps per string", serious=True, values=told, words=_STEPS)


def _files(studies: Studies) -> Iterable[Difference]:
    """Find targets that share a name and not their text."""
    labels = dict.fromkeys(label for one in studies.values() for label in one.provenance.target_files)
    for label in labels:
        held = {
            name: one.provenance.target_files[label][:12]
            for name, one in studies.items()
            if label in one.provenance.target_files
        }
        words = f"The targets called {label} come from files of different content."
        difference = _differing(f"text of {label}", held, words)
        if difference is not None:
            yield difference


def _cut_short(entries: Entries) -> Difference | None:
    """Name the studies most of whose strings were ended by their steps (as the page of a study does)."""
    told = {}
    for entry in entries:
        strings = sum(one.strings for one in entry.conditions if one.still_growing is not None)
        if entry.still_growing is not None and 4 * entry.still_growing > 3 * strings:
            told[entry.name] = f"{entry.still_growing} of {strings} strings"
    if not told:
        return None
    return Difference(what="strings that still grew", serious=True, values=told, words=_CUT_SHORT)


def _cram(results: StudyResults) -> Mapping[str, JsonValue]:
    cram = results.config.get("cram")
    return cram if isinstance(cram, dict) else {}


def _settings(studies: Studies) -> dict[str, str]:
    """Return the settings in which the searches differ, by study."""
    names = dict.fromkeys(name for one in studies.values() for name in _cram(one) if name not in _HARMLESS)
    differ = [name for name in names if len({_text(_cram(one).get(name)) for one in studies.values()}) > 1]
    return {
        study: ", ".join(f"{name} {_text(_cram(one).get(name, _NOT_RECORDED))}" for name in differ)
        for study, one in studies.items()
    }


def _limit_dtypes(studies: Studies) -> dict[str, str]:
    return {name: _text(one.config.get("limit_dtype", _NOT_RECORDED)) for name, one in studies.items()}


def _text(value: JsonValue) -> str:
    return _NOT_RECORDED if value is None else str(value)


def _unfinished(studies: Studies) -> Difference | None:
    told = {}
    for name, one in studies.items():
        asked, done = (sum(getattr(c, k) for c in one.accessibility) for k in ("strings", "finished"))
        if one.provenance.interrupted or done < asked:
            told[name] = f"{done} of {asked} strings" + (
                ", interrupted" if one.provenance.interrupted else ""
            )
    if not told:
        return None
    return Difference(what="unfinished", serious=False, values=told, words=_UNFINISHED)
