"""Syntax of names, keys and label values."""

import pytest

from modelplane.kube import names


@pytest.mark.parametrize("text, want", [("a", True), ("a-1", True), ("a" * 63, True), ("a" * 64, False)])
@pytest.mark.parametrize(
    "suffix, valid", [("", True), ("-", False), ("\n", False), ("A", False), (".b", False), ("é", False)]
)
def test_dns_label(text: str, want: bool, suffix: str, valid: bool) -> None:
    assert names.is_dns_label(text + suffix) is (want and valid)


@pytest.mark.parametrize(
    "text, want",
    [
        ("a.b-c.d", True),
        ("a" * 253, True),
        ("a" * 254, False),
        ("", False),
        ("a..b", False),
        (".a", False),
        ("a.", False),
    ],
)
def test_dns_subdomain(text: str, want: bool) -> None:
    assert names.is_dns_subdomain(text) is want


QUALIFIED = ["a", "A_b.c-D", "ex.com/A"]
UNQUALIFIED = ["", "/a", "ex.com/", "EX.com/a", "a/b/c", "a" * 64, "-a", "a\n"]


@pytest.mark.parametrize("text, want", [*((t, True) for t in QUALIFIED), *((t, False) for t in UNQUALIFIED)])
def test_qualified_name(text: str, want: bool) -> None:
    assert names.is_qualified_name(text) is want


@pytest.mark.parametrize("text, want", [("", True), ("A.b_c", True), ("a" * 64, False), ("a/b", False), ("a-", False)])
def test_label_value(text: str, want: bool) -> None:
    assert names.is_label_value(text) is want
