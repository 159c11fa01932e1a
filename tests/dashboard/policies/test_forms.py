"""The form of a policy says what the policy says, and sends back what it shows."""

import pytest

from controlplane.errors import Invalid
from controlplane.policies.settings import PolicySettings
from dashboard.policies.forms import SETTINGS, form_sections, policy_changes

pytestmark = pytest.mark.nightly("pages")


def sent_by(policy: PolicySettings) -> dict[str, list[str]]:
    """Return what a browser sends of the form as it is shown."""
    found = {}
    for _, settings in form_sections(policy):
        for one in settings:
            ticks = one.setting.kind in ("many", "flag")
            found[one.setting.name] = sorted(one.ticked) if ticks else [one.value]
    return found


def test_every_setting_has_its_field() -> None:
    assert sorted(one.name for one in SETTINGS) == sorted(PolicySettings.model_fields)


def test_settings_below_a_switch_that_is_off_have_no_effect() -> None:
    for is_on in (False, True):
        sections = form_sections(PolicySettings(auto_record=is_on))
        idle = {one.setting.name for _, settings in sections for one in settings if one.is_idle}
        assert idle == (set() if is_on else {"auto_record_runs", "auto_record_error"})


@pytest.mark.parametrize(
    "policy",
    [
        PolicySettings(),
        PolicySettings(auto_gain=0.07, dead_band=0.29, auto_bytes=1_100_000, auto_days=[0, 6]),
        PolicySettings(auto_bytes=123_456_789, bytes_per_s=100_000, watch_replication=1.05),
    ],
)
def test_what_is_shown_comes_back_the_same(policy: PolicySettings) -> None:
    """Saving without a change changes nothing, whatever the scale of a field."""
    changes = policy_changes(sent_by(policy))
    assert {name: getattr(policy, name) for name in PolicySettings.model_fields} == {
        name: sorted(changes[name], key=getattr(policy, name).index)
        if name == "auto_kinds"
        else changes[name]
        for name in PolicySettings.model_fields
    }


def test_text_that_is_no_number_is_refused_by_its_field() -> None:
    sent = sent_by(PolicySettings()) | {
        "auto_moves": ["many"],
        "dead_band": [""],
        "pause_ms": ["inf"],
    }
    with pytest.raises(Invalid) as refused:
        policy_changes(sent)
    assert refused.value.fields == {
        "auto_moves": ["many is not a number"],
        "dead_band": ["Must be a number"],
        "pause_ms": ["inf is not a number"],
    }
