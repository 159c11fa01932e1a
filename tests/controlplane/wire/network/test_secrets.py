"""Secrets of the site by their names: of sinks, topics and webhooks alike."""

from pathlib import Path

import pytest

from controlplane.wire.network.secrets import NoSecret, SecretOf, named_secret


@pytest.mark.parametrize("owner", SecretOf)
def test_a_secret_is_a_variable_or_the_content_of_its_file(
    owner: SecretOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    with pytest.raises(NoSecret, match=f"{owner}SHOP_DB_1, or {owner}SHOP_DB_1_FILE"):
        named_secret(owner, "shop-db_1")
    monkeypatch.setenv(f"{owner}SHOP_DB_1_FILE", str(file))
    with pytest.raises(NoSecret, match=f"{owner}SHOP_DB_1_FILE names cannot be read"):
        named_secret(owner, "shop-db_1")
    file.write_text("from the file\n")
    assert named_secret(owner, "shop-db_1") == "from the file"
    monkeypatch.setenv(f"{owner}SHOP_DB_1", "of the variable")
    assert named_secret(owner, "shop-db_1") == "of the variable"


@pytest.mark.parametrize("name", ["", "Shop", "a b", "_a", "a/../b", "a" * 61])
def test_a_name_of_other_characters_is_refused(name: str) -> None:
    with pytest.raises(NoSecret, match="Name a secret"):
        named_secret(SecretOf.SINKS, name)
