/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_TLS_FILES_H
#define TCP_TLS_FILES_H

/* Certificates: files in the format PEM. The strings are not owned, and must outlive the contexts. */
struct tcp_tls_files {
    const char
        *certificate; /* this side's, with those up to the authority's behind it; NULL: the handshake is by the key */
    const char *key;  /* the private key of the certificate */
    const char *authority; /* the certificates of the authorities that sign the peers' */
    const char *name;      /* what a peer's certificate must name; NULL: the peer's IP address */
};

#endif
