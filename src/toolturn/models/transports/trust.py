"""Which certificates are trusted: those the system trusts."""

from __future__ import annotations

import os
import ssl
import sys


def trusted_by_the_system() -> ssl.SSLContext:
    """Return a context for clients that trusts what the system trusts and what ``SSL_CERT_FILE`` adds or names.

    On Windows and macOS the system's own verification is asked, by ``truststore`` where that is installed; elsewhere
    the certificates are files and OpenSSL reads them, ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` included.
    """
    if sys.platform in ("win32", "darwin"):
        try:
            import truststore
        except ImportError:
            pass
        else:
            context: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
            if file or folder:
                context.load_verify_locations(file or None, folder or None)
            context.set_alpn_protocols(["http/1.1"])
            return context
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
