import pytest

from modelplane.kube import rules

TEXT = {"type": "string"}


def ruled(rule, kind="string", **more):
    return {"type": kind, "x-kubernetes-validations": [{"rule": rule, **more}]}


def judge(rule, value, kind="string", **more):
    verdict = rules.check(ruled(rule, kind, **more), value, path="v")
    assert verdict.skipped == [], verdict
    return [p.message for p in verdict.problems]


HOLD = [
    "self.startsWith('a')",
    "size(self) == 5 && self.size() < 6",
    "self.matches('^[a-z-]+$')",
    "self.split('-') == ['ab', 'cd'] && self.split('-', 1) == ['ab-cd']",
    "self.lowerAscii() == self && self.upperAscii() == 'AB-CD'",
    "self.indexOf('-') == 2 && self.lastIndexOf('z') == -1 && self.charAt(0) == 'a'",
    "self.substring(3) == 'cd' && self.substring(0, 2) == 'ab' && self.replace('-', '') == 'abcd'",
    "self.find('[c-z]+') == 'cd' && self.findAll('[a-z]+') == ['ab', 'cd']",
    "['a', 'b'].join('-') == 'a-b' && [1, 2].sum() == 3 && [1, 2].min() == 1 && [1, 2].max() == 2",
    "[1, 2, 2].isSorted() && ![2, 1].isSorted() && [1, 2].indexOf(2) == 1",
    "isIP('::1') && !isIP('1.2.3') && ip('10.0.0.1').family() == 4 && !ip('10.0.0.1').isLoopback()",
    "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0') && cidr('10.0.0.0/8').prefixLength() == 8",
    "cidr('10.0.0.0/8').containsIP('10.1.1.1') && !cidr('10.0.0.0/8').containsCIDR('10.0.0.0/7')",
    "isURL('https://h:8/p') && url('https://h:8/p').getScheme() == 'https' && url('https://h:8/p').getPort() == '8'",
    "url('https://[::1]/p').getHostname() == '::1' && !isURL('h')",
    "isQuantity('1Gi') && !isQuantity('1 G') && quantity('1Gi').isGreaterThan(quantity('1G'))",
    "quantity('2k').asInteger() == 2000 && quantity('1').add(1).compareTo(quantity('2')) == 0",
    "duration('90s') >= duration('1m30s')",
    "self in ['ab-cd'] && !(self in ['x'])",
    "[1, 2].exists_one(x, x == 2) && [1, 2].all(x, x > 0) && [1, 2].map(x, x + 1) == [2, 3]",
    "self == 'x' || self == 'ab-cd' ? true : false",
]


@pytest.mark.parametrize("rule", HOLD)
def test_holds_and_its_opposite_does_not(rule):
    assert judge(rule, "ab-cd") == []
    assert judge(f"!({rule})", "ab-cd") == [f"failed rule: !({rule})"]


OBJECT = {
    "type": "object",
    "properties": {
        "namespace": TEXT,
        "a-b": TEXT,
        "count": {"type": "integer"},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "wait": {"type": "string", "format": "duration"},
        "port": {"x-kubernetes-int-or-string": True},
        "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "none": {"type": "string", "nullable": True},
    },
}
READ = [
    ("self.__namespace__ == 'n'", {"namespace": "n"}, True),
    ("self.a__dash__b == 'n'", {"a-b": "n"}, True),
    ("self.count == 3", {"count": 3.0}, True),
    ("self.labels['a/b-c'] == 'x' && 'a/b-c' in self.labels", {"labels": {"a/b-c": "x"}}, True),
    ("has(self.labels) && !('k' in self.labels)", {"labels": {}}, True),
    ("self.wait > duration('1m')", {"wait": "61s"}, True),
    ("type(self.port) == int || self.port == 'http'", {"port": "http"}, True),
    ("!has(self.anything.a)", {"anything": {"a": 1}}, True),
    ("self.none == null", {"none": None}, True),
    ("has(self.count)", {"count": None}, False),
    ("has(self.count) && self.count > 0", {}, False),
]


@pytest.mark.parametrize("rule, value, want", READ)
def test_what_a_rule_reads(rule, value, want):
    verdict = rules.check({**OBJECT, "x-kubernetes-validations": [{"rule": rule}]}, value, path="v")
    assert (verdict.skipped, not verdict.problems) == ([], want)


def test_a_missing_field_fails_the_rule():
    verdict = rules.check({**OBJECT, "x-kubernetes-validations": [{"rule": "self.count > 1"}]}, {}, path="v")
    assert verdict.skipped == []
    assert "rule cannot be evaluated" in verdict.problems[0].message


def test_an_argument_without_a_result_fails_the_rule():
    assert "rule cannot be evaluated" in judge("ip(self).family() == 4", "x")[0]


SKIPPED = [
    ("nope(self)", "nope"),
    ("true || self.nope()", "nope"),
    ("cel.bind(x, self, x == 'a')", "cel.bind"),
    ("sets.contains([1], [1])", "sets.contains"),
    ("[1].all(i, x, x > 0)", "all"),
    ("self.?a.orValue('') == ''", "cannot be parsed"),
    ("self.", "cannot be parsed"),
    ("self", "boolean"),
    ("self > 1", "overload"),
]


@pytest.mark.parametrize("rule, why", SKIPPED)
def test_what_cannot_be_judged_is_said(rule, why):
    verdict = rules.check(ruled(rule), "a", path="v")
    assert verdict.problems == []
    assert [(s.path, s.rule) for s in verdict.skipped] == [("v", rule)]
    assert why in verdict.skipped[0].why


@pytest.mark.parametrize("value", [2**70, {1, 2}])
def test_a_value_that_is_no_cel_value_is_said_to_be_skipped(value):
    assert len(rules.check(ruled("self > 1", "number"), value, path="v").skipped) == 1


def test_messages():
    assert judge("false", "a", message="must be b") == ["must be b"]
    assert judge("false", "a", message="must be b", messageExpression="'not ' + self") == ["not a"]
    assert judge("false", "a", message="must be b", messageExpression="self.x") == ["must be b"]


POOLS = {
    "type": "object",
    "properties": {
        "pools": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "properties": {"name": TEXT, "class": ruled("self == oldSelf")},
            },
        },
        "loose": {"type": "array", "items": ruled("self == oldSelf")},
        "map": {"type": "object", "additionalProperties": ruled("self != oldSelf", fieldPath=".x")},
    },
}
UPDATES = [
    ("created", None, {"pools": [{"name": "a", "class": "x"}]}, []),
    ("same", {"pools": [{"name": "a", "class": "x"}]}, {"pools": [{"name": "a", "class": "x"}]}, []),
    (
        "changed, though moved",
        {"pools": [{"name": "a", "class": "x"}, {"name": "b", "class": "y"}]},
        {"pools": [{"name": "b", "class": "y"}, {"name": "a", "class": "z"}]},
        ["pools[1].class"],
    ),
    ("added", {"pools": [{"name": "a", "class": "x"}]}, {"pools": [{"name": "b", "class": "y"}]}, []),
    ("a plain list has no identity", {"loose": ["a"]}, {"loose": ["b"]}, []),
    ("map entry", {"map": {"k": "a"}}, {"map": {"k": "a"}}, ["map.k.x"]),
]


@pytest.mark.parametrize("name, old, new, want", UPDATES, ids=[u[0] for u in UPDATES])
def test_old_self(name, old, new, want):
    assert [p.path for p in rules.check(POOLS, new, old).problems] == want


def test_old_self_in_a_text_is_no_transition():
    assert judge("self != 'oldSelf'", "a") == []
    assert len(judge("self != 'oldSelf'", "oldSelf")) == 1


def test_optional_old_self_is_said_to_be_skipped():
    assert rules.check(ruled("self == oldSelf", optionalOldSelf=True), "a", path="v").skipped[0].path == "v"


def test_the_root_shows_name_but_not_labels():
    rule = {"x-kubernetes-validations": [{"rule": "self.metadata.name == 'a' && !has(self.metadata.labels)"}]}
    value = {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "labels": {"b": "c"}}}
    assert rules.check(rule, value) == ([], [])


@pytest.mark.parametrize(
    "name, want", [("import", "__import__"), ("a-b.c/d__e", "a__dash__b__dot__c__slash__d__underscores__e")]
)
def test_escape(name, want):
    assert rules.escape(name) == want
