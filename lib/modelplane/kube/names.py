"""Syntax of Kubernetes names, keys and label values.

Rules: https://github.com/kubernetes/apimachinery/blob/v0.36.2/pkg/util/validation/validation.go
"""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")


def is_dns_label(text: str) -> bool:
    """Whether the text is an RFC 1123 label: lower-case letters, digits and "-", at most 63."""
    return len(text) <= 63 and _DNS_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Whether the text is an RFC 1123 subdomain: labels joined by ".", at most 253 characters."""
    return len(text) <= 253 and _DNS_SUBDOMAIN.fullmatch(text) is not None


def is_qualified_name(text: str) -> bool:
    """Whether the text is a label, annotation or taint key: an optional "prefix/" and a name of at most 63."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_dns_subdomain(prefix):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether the text is a label value: empty, or a name of at most 63 characters."""
    return not text or (len(text) <= 63 and _NAME.fullmatch(text) is not None)
