"""Create certificate authorities for clusters and single servers, and the certificates that they sign. Any thread.

    OUT/ca.pem, ca.key          valid for ten years; the key is for signing, and no node needs it
    OUT/node2.pem, node2.key    has the node's identity (`transport.handshake`) and host as names; valid for 825 days
    OUT/server.pem, server.key  of a single server: has the host names for clients; created at each start

Existing certificates are not replaced, except the certificate of a single server. To renew a certificate, remove its
file. Keys are P-256 keys, readable only by their owner. If OUT already has an authority, it is used; its key may be an
RSA key or an elliptic-curve key.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from saros_cluster.placement.ring import NodeId
from saros_cluster.transport.handshake import Identity
from saros_server.pki.certificate_files import CertificateFiles
from saros_storage.base.errors import UserMistake
from saros_storage.folder.layout import write_durably
from saros_storage.io.disk import LocalDisk

_CA, _SERVER = "ca", "server"
_CA_DAYS, _NODE_DAYS = 3_650, 825
_HOST = re.compile(r"[A-Za-z0-9._-]+")

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def make_certificates(folder: str, cluster: str, hosts: Mapping[NodeId, str]) -> list[str]:
    """Create the missing files of an authority and the certificates of nodes; return the names of the created files.

    Raises UserMistake 2004 (invalid host name; an authority that cannot be read), OSError.
    """
    names = {node: _names(Identity(cluster, node), hosts[node]) for node in sorted(hosts)}
    os.makedirs(folder, mode=0o700, exist_ok=True)
    made = []
    if not os.path.exists(_certificate_path(folder, _CA)):
        _make_authority(folder, cluster)
        made.append(f"{_CA}.pem")
    authority, signer = _load_authority(folder)
    for node, found in names.items():
        if not os.path.exists(_certificate_path(folder, f"node{node}")):
            _make_certificate(folder, f"node{node}", f"node {node}", found, authority, signer)
            made.append(f"node{node}.pem")
    return made


def make_server_certificate(folder: str, hosts: Sequence[str]) -> tuple[CertificateFiles, str]:
    """Create a new certificate of a single server, and its authority if it does not exist.

    Return the certificate and the path of the authority. Raises the errors of `make_certificates`.
    """
    names = [_host_name(host) for host in hosts]
    os.makedirs(folder, mode=0o700, exist_ok=True)
    trusted = _certificate_path(folder, _CA)
    if not os.path.exists(trusted):
        _make_authority(folder, hosts[0])
    _make_certificate(folder, _SERVER, hosts[0], names, *_load_authority(folder))
    return CertificateFiles(_certificate_path(folder, _SERVER), _key_path(folder, _SERVER)), trusted


def _names(identity: Identity, host: str) -> list[x509.GeneralName]:
    return [x509.UniformResourceIdentifier(identity.uri), x509.DNSName(identity.host_name), _host_name(host)]


def _host_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        if _HOST.fullmatch(host) is None:
            raise UserMistake(f"{host!r} is not a host name or an IP address", code=2004) from None
        return x509.DNSName(host)


def _make_authority(folder: str, cluster: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _subject(f"saros {cluster}")
    request = (
        _request(name, name, key, _CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs=True), critical=True)
    )
    _save(folder, _CA, key, request.sign(key, hashes.SHA256()))


def _make_certificate(
    folder: str,
    file: str,
    subject: str,
    names: list[x509.GeneralName],
    authority: x509.Certificate,
    signer: Key,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    request = (
        _request(_subject(subject), authority.subject, key, _NODE_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    _save(folder, file, key, request.sign(signer, hashes.SHA256()))


def _request(subject: x509.Name, issuer: x509.Name, key: Key, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    """Return the key usage. The key of an authority signs certificates, and the key of a node signs messages."""
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _load_authority(folder: str) -> tuple[x509.Certificate, Key]:
    with open(_certificate_path(folder, _CA), "rb") as certificate, open(_key_path(folder, _CA), "rb") as key:
        try:
            authority = x509.load_pem_x509_certificate(certificate.read())
            signer = serialization.load_pem_private_key(key.read(), password=None)
        except (ValueError, TypeError) as error:  # A TypeError means that the key has a password.
            raise UserMistake(f"the authority in {folder} cannot be read: {error}", code=2004) from None
    if not isinstance(signer, Key) or signer.public_key() != authority.public_key():
        raise UserMistake(f"{key.name} is not the key of {certificate.name}, or not RSA or elliptic", code=2004)
    return authority, signer


def _save(folder: str, name: str, key: Key, certificate: x509.Certificate) -> None:
    """Write the key and then the certificate, so that there is never a certificate without its key."""
    form = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    for path, content in (
        (_key_path(folder, name), pem),
        (_certificate_path(folder, name), certificate.public_bytes(serialization.Encoding.PEM)),
    ):
        write_durably(LocalDisk(), path, content)


def _certificate_path(folder: str, name: str) -> str:
    return os.path.join(folder, f"{name}.pem")


def _key_path(folder: str, name: str) -> str:
    return os.path.join(folder, f"{name}.key")
