"""Endpoint URLs: what is accepted and what it becomes, and every way into the control plane that is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelplane.routing import paths, urls

ACCEPTED = [
    ("http://192.0.2.10/ml/qwen-abc/v1", ("http", "192.0.2.10", 80, "/ml/qwen-abc/", "IPv4")),
    ("https://openrouter.ai/api/v1", ("https", "openrouter.ai", 443, "/api/", "FQDN")),
    ("https://api.example.com", ("https", "api.example.com", 443, "/", "FQDN")),
    ("https://api.example.com/", ("https", "api.example.com", 443, "/", "FQDN")),
    ("https://api.example.com/v1/", ("https", "api.example.com", 443, "/", "FQDN")),
    ("https://api.example.com/v1beta", ("https", "api.example.com", 443, "/v1beta/", "FQDN")),
    ("https://api.example.com/openai", ("https", "api.example.com", 443, "/openai/", "FQDN")),
    ("HTTPS://API.Example.COM.:8443/v1", ("https", "api.example.com", 8443, "/", "FQDN")),
    ("http://10.0.0.7:30080/v1", ("http", "10.0.0.7", 30080, "/", "IPv4")),
    ("http://[2001:DB8:0::1]:8080/v1", ("http", "2001:db8::1", 8080, "/", "IPv6")),
    ("http://[fd12:3456::1]/a/b/v1", ("http", "fd12:3456::1", 80, "/a/b/", "IPv6")),
    ("http://host.example:/v1", ("http", "host.example", 80, "/", "FQDN")),
    ("https://api.example.com/a%20b/v1", ("https", "api.example.com", 443, "/a%20b/", "FQDN")),
    ("https://svc.example.com/v1", ("https", "svc.example.com", 443, "/", "FQDN")),
    ("https://cluster.local.example.com/v1", ("https", "cluster.local.example.com", 443, "/", "FQDN")),
]


@pytest.mark.parametrize("url, want", ACCEPTED)
def test_accepted(url, want):
    found = urls.parse(url)
    assert (found.scheme, found.host, found.port, found.path, found.family) == want
    assert found.service_port == (443 if found.tls else 80)


LOCAL = [
    "127.0.0.1",
    "127.8.9.10",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:7f00:1::]",
    "0.0.0.0",
    "0.1.2.3",
    "[::]",
    "169.254.169.254",
    "169.254.170.2",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "168.63.129.16",
    "100.100.100.200",
    "224.0.0.1",
    "[ff02::1]",
    "255.255.255.255",
    "240.0.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "localhost.localdomain",
    "kubernetes.default.svc",
    "kubernetes.default.svc.",
    "Kubernetes.Default.SVC",
    "kubernetes.default.svc.cluster.local",
    "x.cluster.local.",
    "metadata.google.internal",
]
DISGUISED = [
    "2130706433",
    "0x7f000001",
    "0X7F000001",
    "0x7f.0.0.1",
    "127.1",
    "127.0.1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.01",
    "1.2.3.4.5",
    "256.1.1.1",
    "example.0x",
    "a.1",
    "127.0.0.1.",
]
MALFORMED = [
    "",
    "api.example.com",
    "//api.example.com/v1",
    "ftp://api.example.com",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "http://",
    "http:///v1",
    "http://:80/v1",
    "http://user:pw@api.example.com/v1",
    "http://127.0.0.1@api.example.com/v1",
    "http://api.example.com@127.0.0.1/v1",
    "http://api.example.com:0/v1",
    "http://api.example.com:65536/v1",
    "http://api.example.com:99999999999999999999/v1",
    "http://api.example.com:http/v1",
    "http://api.example.com:80:80/v1",
    "http://2001:db8::1/v1",
    "http://[2001:db8::1/v1",
    "http://[2001:db8::1%25eth0]/v1",
    "http://[2001:db8::1%eth0]/v1",
    "http://[]/v1",
    "http://[v1.x]/v1",
    "http://api.example.com/v1?key=1",
    "http://api.example.com/v1#x",
    "http://api.example.com/a b",
    "http://api.example.com/v1\n",
    "\thttp://api.example.com/v1",
    "http://api.example.com\\@127.0.0.1/v1",
    "http://bücher.example/v1",
    "http://api。example.com/v1",
    "http://\uff11\uff12\uff17.0.0.1/v1",
    "http://api_1.example.com/v1",
    "http://-api.example.com/v1",
    "http://api..example.com/v1",
    "http://%31%32%37.0.0.1/v1",
    "http://single/v1",
    "http://api.example.com/a/../v1",
    "http://api.example.com/a/%2e%2E/v1",
    "http://api.example.com/./v1",
    "http://api.example.com//v1",
    "http://api.example.com/a%2fb/v1",
    "http://api.example.com/a%5Cb/v1",
    "http://api.example.com/%zz",
    "http://api.example.com/" + "a" * 1024,
    "http://" + "a." * 127 + "example.com/v1",
    "http://api.example.com/" + "a" * 3000,
]


@pytest.mark.parametrize("url", [f"http://{h}/v1" for h in LOCAL + DISGUISED] + MALFORMED)
def test_refused_with_a_reason(url):
    with pytest.raises(urls.InvalidURL) as refused:
        urls.parse(url)
    assert "spec.url" in str(refused.value)
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("host", LOCAL)
def test_a_port_changes_nothing(host):
    with pytest.raises(urls.InvalidURL):
        urls.parse(f"https://{host}:8443/v1")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    for url in (text, f"http://{text}", f"http://h.example/{text}"):
        try:
            found = urls.parse(url)
        except urls.InvalidURL:
            continue
        assert found.path.startswith("/")
        assert found.path.endswith("/")
        assert 1 <= found.port <= 65535


@pytest.mark.parametrize("path, want", [("/", "/"), ("/api", "/api/"), ("/api/v1", "/api/v1/"), ("/a/b/", "/a/b/")])
def test_rewrite_paths(path, want):
    assert urls.judge_path(path) == want


@pytest.mark.parametrize(
    "path", ["", "api", "/a//b", "/../x", "/%2e%2e/x", "/a?b", "/a#b", "/a b", "/ü", "/" + "a" * 1024]
)
def test_refused_rewrite_paths(path):
    with pytest.raises(urls.InvalidURL, match=r"spec\.rewritePath"):
        urls.judge_path(path)


@pytest.mark.parametrize("address", ["192.0.2.10", "2001:db8::1", "lb.example.com"])
def test_a_composed_url_reads_back(address):
    found = urls.parse(paths.endpoint_url(address, "ml-team", "qwen-abc"))
    assert (found.host, found.path) == (address, paths.replica("ml-team", "qwen-abc"))


def test_service_urls():
    assert paths.service_url("192.0.2.1", "ml", "qwen") == "http://192.0.2.1/ml/qwen"
    assert paths.service_url("2001:db8::1", "ml", "qwen", "https") == "https://[2001:db8::1]/ml/qwen"
