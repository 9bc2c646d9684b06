"""A seeded grammar of selectors: mostly well typed, with some mistakes, over the attributes of a given device."""

import random
from typing import Any

KINDS = ("bool", "int", "uint", "double", "string", "quantity", "semver", "any", "list", "map", "optional")
COMPARED = ("int", "uint", "double", "string", "bool")

INTS = ("0", "1", "2", "-1", "7", "42", "9007199254740993", "9223372036854775807", "-9223372036854775808", "0x1f")
UINTS = ("0u", "1u", "3u", "18446744073709551615u", "0xFu")
DOUBLES = ("0.0", "1.0", "-1.5", "2.5", "3.0", "1e3", "9007199254740992.0", "1e308", "-0.0", "1e-7", "123456789.0")
STRINGS = (
    '""',
    '"a"',
    '"gpu"',
    '"a,b,c"',
    "'H100'",
    '"1.2.3"',
    '"40Gi"',
    '"7"',
    '"true"',
    '"é東🚀"',
    r"r'\d'",
    r'"\u0041\n"',
)
STRINGS += ('"0x10"', '" a "', '"Hopper"', '"NVIDIA H100 80GB HBM3"', '"x"')
PATTERNS = (
    '"a"',
    '"^H[0-9]+$"',
    "r'\\d+'",
    '"(a|b)*"',
    '"["',
    '"(?i)gpu"',
    '"a{2,3}"',
    '"\\\\pL"',
    '""',
    '"."',
    '"(x)|y"',
)
AMOUNTS = (
    "40Gi",
    "1",
    "0",
    "1.5Gi",
    "100m",
    "1e3",
    "1n",
    "-5",
    "8Ei",
    "2.0",
    "1k",
    "81559Mi",
    "",
    "Mi",
    "1K",
    "0.1n",
    "1E",
    "5.",
)
VERSIONS = (
    "1.2.3",
    "9.0.0",
    "570.86.15",
    "1.0.0-rc.1",
    "1.0.0+b",
    "1.0",
    "v1.2.3",
    "01.2.3",
    "1.0.0-",
    "1",
    "",
    "1.2.3-01",
)
MISTAKE = 0.02


class Generator:
    """Makes one selector after another; the same seed and device make the same ones."""

    def __init__(self, seed: int, device: dict[str, Any]) -> None:
        self.random = random.Random(f"{seed} {sorted(device.get('attributes') or {})}")
        self.driver: str = device["driver"]
        self.attributes = self._paths("attributes", device.get("attributes") or {})
        self.capacity = self._paths("capacity", device.get("capacity") or {})
        self.scope: list[tuple[str, str]] = []

    def _paths(self, field: str, entries: dict[str, Any]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key, value in entries.items():
            domain, _, name = key.rpartition("/")
            kind = next(iter(value), "")
            place = f'device.{field}["{domain or self.driver}"]'
            found.setdefault(kind, []).extend([f"{place}.{name}", f'{place}["{name}"]'])
        found[""] = [f'device.{field}["{self.driver}"].nope', f'device.{field}["nope.example.com"].type']
        return found

    def selector(self) -> str:
        self.scope = []
        depth = self.random.choice((2, 3, 3, 4, 4, 5))
        return self.make("bool", depth) if self.random.random() < 0.95 else self.make(self.pick(KINDS), depth)

    def pick(self, options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def make(self, kind: str, depth: int) -> str:
        if self.chance(MISTAKE):
            kind = self.pick(KINDS)
        elif kind != "any" and depth > 0 and self.chance(0.04):
            return f"dyn({self.make(self.pick(KINDS), depth - 1)})"
        elif kind in ("string", "int", "bool", "semver") and self.chance(0.15):
            return self.attribute({"semver": "version"}.get(kind, kind))
        variables = [name for name, held in self.scope if held == kind]
        if variables and self.chance(0.4):
            return str(self.pick(variables))
        if depth <= 0:
            return self.leaf(kind)
        return str(getattr(self, f"_{kind}")(depth - 1))

    def leaf(self, kind: str) -> str:
        p = self.pick
        if kind == "bool":
            return str(p(("true", "false", f'device.driver == "{self.driver}"', self.attribute("bool"))))
        if kind in ("int", "uint", "double", "string"):
            if kind == "string" and self.chance(0.4):
                return str(p(("device.driver", self.attribute("string"))))
            return str(p({"int": INTS, "uint": UINTS, "double": DOUBLES, "string": STRINGS}[kind]))
        if kind == "quantity":
            return self.amount() if self.chance(0.5) or "value" not in self.capacity else str(p(self.capacity["value"]))
        if kind == "semver":
            return (
                f'semver("{p(VERSIONS)}")' if self.chance(0.5) else f'semver("{p(VERSIONS)}", {p(("true", "false"))})'
            )
        if kind == "any":
            return self.attribute(p(("string", "int", "bool", "version", "")))
        if kind == "list":
            return str(
                p(("[]", "[1, 2, 3]", '["a", "b", "a"]', "[true, false]", "[1.5, 2.0]", "[2u, 1u]", "[[1], []]"))
            )
        if kind == "map":
            maps = ('{"a": 1, "b": 2}', "{1: true}", "{}", "device.attributes", "device.capacity")
            return str(p((*maps, f'device.attributes["{self.driver}"]', f'device.capacity["{self.driver}"]')))
        return str(p(("optional.none()", "optional.of(1)", f'device.attributes["{self.driver}"].?nope')))

    def attribute(self, kind: str) -> str:
        places = self.attributes.get(kind) or self.attributes[""]
        return str(self.pick(self.attributes[""] if self.chance(0.07) else places))

    def amount(self) -> str:
        return f'quantity("{self.pick(AMOUNTS)}")'

    def variable(self) -> str:
        return str(self.pick(("x", "y", "z", "k")))

    def within(self, variables: list[tuple[str, str]], kind: str, depth: int) -> str:
        self.scope.extend(variables)
        made = self.make(kind, depth)
        del self.scope[len(self.scope) - len(variables) :]
        return made

    def _bool(self, depth: int) -> str:
        m, p = self.make, self.pick
        choice = self.random.randrange(24)
        if choice < 4:
            terms = [m("bool", depth) for _ in range(p((2, 2, 3)))]
            return "(" + p((" && ", " || ")).join(terms) + ")"
        if choice == 4:
            return f"!{m('bool', depth)}" if self.chance(0.7) else f"!({m('bool', depth)})"
        if choice == 5:
            return f"({m('bool', depth)} ? {m('bool', depth)} : {m('bool', depth)})"
        if choice < 9:
            kind = p(KINDS)
            other = kind if self.chance(0.7) else "any"
            return f"{m(kind, depth)} {p(('==', '==', '!='))} {m(other, depth)}"
        if choice < 11:
            kind = p(COMPARED)
            numeric = kind in ("int", "uint", "double") and self.chance(0.4)
            other = p(("int", "uint", "double")) if numeric else p((kind, kind, "any"))
            return f"{m(kind, depth)} {p(('<', '<=', '>', '>='))} {m(other, depth)}"
        if choice == 11:
            kind = p(("quantity", "semver"))
            return f"{m(kind, depth)}.{p(('isGreaterThan', 'isLessThan'))}({m(kind, depth)})"
        if choice == 12:
            return f"{m(p(('any', 'int', 'string')), depth)} in {m(p(('list', 'map')), depth)}"
        if choice == 13:
            name = p(("contains", "startsWith", "endsWith"))
            return f"{m('string', depth)}.{name}({m('string', depth)})"
        if choice == 14:
            return f"{m('string', depth)}.matches({p(PATTERNS)})"
        if choice < 18:
            return self.quantifier(depth)
        if choice == 18:
            return f"has({p((self.leaf('map'), m('map', depth)))}.{p(('type', 'a', 'memory', 'nope'))})"
        if choice == 19:
            kind = p(KINDS)
            name = self.variable()
            return f"cel.bind({name}, {m(kind, depth)}, {self.within([(name, kind)], 'bool', depth)})"
        if choice == 20:
            return f"{p(('isQuantity', 'isSemver'))}({m('string', depth)})"
        if choice == 21:
            return f"{m('optional', depth)}.hasValue()" if self.chance(0.5) else f"{m('list', depth)}.isSorted()"
        if choice == 22:
            name = p(("contains", "equivalent", "intersects"))
            return f"sets.{name}({m('list', depth)}, {m('list', depth)})"
        return p((f"bool({m('string', depth)})", f"{m('quantity', depth)}.isInteger()"))

    def quantifier(self, depth: int) -> str:
        over = self.pick(("list", "list", "map"))
        source = self.make(over, depth)
        name, other = self.random.sample(("x", "y", "z", "k"), 2)
        kind = self.pick(("int", "string", "any")) if over == "list" else "string"
        if self.chance(0.3):
            macro = self.pick(("all", "exists", "existsOne"))
            first = "int" if over == "list" else "string"
            body = self.within([(name, first), (other, self.pick((kind, "any")))], "bool", depth)
            return f"{source}.{macro}({name}, {other}, {body})"
        macro = self.pick(("all", "exists", "exists_one"))
        return f"{source}.{macro}({name}, {self.within([(name, kind)], 'bool', depth)})"

    def arithmetic(self, kind: str, depth: int, operators: tuple[str, ...]) -> str:
        return f"({self.make(kind, depth)} {self.pick(operators)} {self.make(kind, depth)})"

    def _int(self, depth: int) -> str:
        m, p = self.make, self.pick
        choices = [
            lambda: self.arithmetic("int", depth, ("+", "-", "*", "/", "%")),
            lambda: self.arithmetic("int", depth, ("+", "-", "*", "/", "%")),
            lambda: f"-{m('int', depth)}",
            lambda: f"{m(p(('string', 'list', 'map')), depth)}.size()",
            lambda: f"size({m(p(('string', 'list', 'map')), depth)})",
            lambda: f"int({m(p(('string', 'double', 'uint', 'int')), depth)})",
            lambda: f"{m('string', depth)}.{p(('indexOf', 'lastIndexOf'))}({m('string', depth)})",
            lambda: f"{m('string', depth)}.{p(('indexOf', 'lastIndexOf'))}({m('string', depth)}, {m('int', 0)})",
            lambda: f"{m('list', depth)}.{p(('indexOf', 'lastIndexOf'))}({m(p(('int', 'string', 'any')), depth)})",
            lambda: f"{m('list', depth)}.{p(('sum', 'min', 'max'))}()",
            lambda: f"{m('quantity', depth)}.compareTo({m('quantity', depth)})",
            lambda: f"{m('semver', depth)}.compareTo({m('semver', depth)})",
            lambda: f"{m('semver', depth)}.{p(('major', 'minor', 'patch'))}()",
            lambda: f"{m('quantity', depth)}.asInteger()",
            lambda: f"sign({m('quantity', depth)})",
            lambda: f"{m('list', depth)}[{m('int', 0)}]",
            lambda: f"({m('bool', depth)} ? {m('int', depth)} : {m('int', depth)})",
            lambda: f"{m('optional', depth)}.{p(('value()', 'orValue(1)'))}",
        ]
        return p(choices)()

    def _uint(self, depth: int) -> str:
        if self.chance(0.4):
            return f"uint({self.make(self.pick(('int', 'double', 'string')), depth)})"
        return self.arithmetic("uint", depth, ("+", "-", "*", "/", "%"))

    def _double(self, depth: int) -> str:
        choice = self.random.randrange(4)
        if choice == 0:
            return f"double({self.make(self.pick(('int', 'uint', 'string')), depth)})"
        if choice == 1:
            return f"{self.make('quantity', depth)}.asApproximateFloat()"
        return self.arithmetic("double", depth, ("+", "-", "*", "/"))

    def _string(self, depth: int) -> str:
        m, p = self.make, self.pick
        choices = [
            lambda: f"({m('string', depth)} + {m('string', depth)})",
            lambda: f"{m('string', depth)}.{p(('lowerAscii', 'upperAscii', 'trim'))}()",
            lambda: f"{m('string', depth)}.charAt({m('int', 0)})",
            lambda: f"{m('string', depth)}.substring({p('0123')})",
            lambda: f"{m('string', depth)}.substring({m('int', 0)}, {m('int', 0)})",
            lambda: f"{m('string', depth)}.replace({m('string', 0)}, {m('string', 0)})",
            lambda: f"{m('string', depth)}.replace({m('string', 0)}, {m('string', 0)}, {m('int', 0)})",
            lambda: f"string({m(p(('int', 'uint', 'double', 'bool', 'string', 'any')), depth)})",
            lambda: f"{m('string', depth)}.find({p(PATTERNS)})",
            lambda: f"{m('string', depth)}.split({m('string', 0)})[{p('012')}]",
            lambda: f"({m('bool', depth)} ? {m('string', depth)} : {m('string', depth)})",
            lambda: f"{m('optional', depth)}.orValue({m('string', 0)})",
        ]
        return p(choices)()

    def _quantity(self, depth: int) -> str:
        choice = self.random.randrange(5)
        if choice == 0:
            return f"quantity({self.make('string', depth)})"
        if choice < 4:
            other = self.make(self.pick(("quantity", "quantity", "int")), depth)
            return f"{self.make('quantity', depth)}.{self.pick(('add', 'sub'))}({other})"
        return f"({self.make('bool', depth)} ? {self.make('quantity', depth)} : {self.make('quantity', depth)})"

    def _semver(self, depth: int) -> str:
        return self.leaf("semver") if self.chance(0.6) else f"semver({self.make('string', depth)})"

    def _any(self, depth: int) -> str:
        choice = self.random.randrange(4)
        if choice == 0:
            return f"{self.leaf('map')}[{self.make('string', depth)}]"
        if choice == 1:
            return f"dyn({self.make(self.pick(KINDS), depth)})"
        return self.leaf("any")

    def _list(self, depth: int) -> str:
        m, p = self.make, self.pick
        name, other = self.random.sample(("x", "y", "z", "k"), 2)
        choice = self.random.randrange(9)
        if choice < 3:
            kind = p(KINDS)
            return "[" + ", ".join(m(kind, depth) for _ in range(p((1, 2, 3)))) + "]"
        if choice == 3:
            return f"({m('list', depth)} + {m('list', depth)})"
        if choice == 4:
            limit = f", {m('int', 0)}" if self.chance(0.4) else ""
            return f"{m('string', depth)}.split({m('string', 0)}{limit})"
        if choice == 5:
            return f"{m('string', depth)}.findAll({p(PATTERNS)}{p(('', ', 1', ', 0', ', -1'))})"
        over = p(("list", "map"))
        source, kind = m(over, depth), p(("int", "string", "any")) if over == "list" else "string"
        if choice == 6:
            return f"{source}.filter({name}, {self.within([(name, kind)], 'bool', depth)})"
        if choice == 7:
            test = f"{self.within([(name, kind)], 'bool', depth - 1)}, " if self.chance(0.3) else ""
            return f"{source}.map({name}, {test}{self.within([(name, kind)], p(KINDS), depth)})"
        pair = [(name, "int" if over == "list" else "string"), (other, p((kind, "any")))]
        return f"{source}.transformList({name}, {other}, {self.within(pair, p(KINDS), depth)})"

    def _map(self, depth: int) -> str:
        if self.chance(0.5):
            return self.leaf("map")
        if self.chance(0.4):
            pair = [("k", "string"), ("y", "any")]
            return f"{self.make('map', depth)}.transformMap(k, y, {self.within(pair, self.pick(KINDS), depth)})"
        key, value = self.pick(("string", "int", "bool")), self.pick(KINDS)
        entries = (f"{self.make(key, 0)}: {self.make(value, depth)}" for _ in range(self.pick((1, 2))))
        return "{" + ", ".join(entries) + "}"

    def _optional(self, depth: int) -> str:
        m, p = self.make, self.pick
        choices = [
            lambda: f"{self.leaf('map')}[?{m('string', depth)}]",
            lambda: f"{m('list', depth)}[?{m('int', 0)}]",
            lambda: f"{m('map', depth)}.?{p(('type', 'a', 'nope'))}",
            lambda: f"{p(('optional.of', 'optional.ofNonZeroValue'))}({m(p(KINDS), depth)})",
            lambda: f"{m('optional', depth)}.or({m('optional', depth)})",
        ]
        return p(choices)()
