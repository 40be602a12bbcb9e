// What OpenSSL found wrong, in words.  They hold nothing that the other side has written.
#pragma once

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

struct ssl_st;

namespace coherence::net {

// "<what>: <reason>", out of this thread's error queue, which is empty afterwards.  kSystem.
Errc tls_failed(const char* what, Problem*) noexcept;
// Why a handshake did not come about, as somebody who operates a cluster can act on it.  kIncompatible.
Errc handshake_failed(const ssl_st*, bool has_key, Problem*) noexcept;

}  // namespace coherence::net
