"""What the README links to is there; `validation/test_readme.py` runs its code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?!http)([^)#]+)\)", TEXT))))
def test_its_links_lead_somewhere(target):
    assert (ROOT / target).exists(), f"README.md links to {target}, which does not exist"
