"""Keys and certificates of the control plane, by openssl: nothing of it is used anywhere else."""

import secrets
import subprocess
from pathlib import Path

DAYS = "30"


def _openssl(*arguments: str, text: str = "") -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, input=text.encode())


class Authority:
    """A certificate authority: two files of a folder, `ca.crt` and `ca.key` unless they have another stem."""

    def __init__(self, folder: Path, stem: str = "ca") -> None:
        self.folder = folder
        self.certificate = folder / f"{stem}.crt"
        self.key = folder / f"{stem}.key"

    @classmethod
    def create(cls, folder: Path) -> "Authority":
        folder.mkdir(parents=True, exist_ok=True)
        made = cls(folder)
        _openssl(
            *["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=e2e-ca"],
            *("-keyout", str(made.key), "-out", str(made.certificate), "-days", DAYS),
            *("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        )
        return made

    def sign(self, folder: Path, *names: str) -> None:
        """Write ca.crt, tls.crt and tls.key of a server with the given names, such as `DNS:localhost`."""
        folder.mkdir(parents=True, exist_ok=True)
        request, extensions = folder / "tls.csr", folder / "extensions"
        key, certificate = folder / "tls.key", folder / "tls.crt"
        extensions.write_text(f"subjectAltName={','.join(names)}\nextendedKeyUsage=serverAuth,clientAuth\n")
        _openssl(
            *["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=e2e"],
            *("-keyout", str(key), "-out", str(request)),
        )
        _openssl(
            *("x509", "-req", "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self.key)),
            *("-set_serial", f"0x{secrets.token_hex(8)}", "-days", DAYS),
            *("-out", str(certificate), "-extfile", str(extensions)),
        )
        (folder / "ca.crt").write_bytes(self.certificate.read_bytes())


def signing_key(folder: Path) -> tuple[Path, Path]:
    """Make the key pair that signs service account tokens; returns the private and the public file."""
    folder.mkdir(parents=True, exist_ok=True)
    private, public = folder / "sa.key", folder / "sa.pub"
    _openssl("genrsa", "-out", str(private), "2048")
    _openssl("rsa", "-in", str(private), "-pubout", "-out", str(public))
    return private, public
