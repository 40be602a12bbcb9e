// Which transports there are: the one place that names them all.  A program that makes a node asks here; a new
// transport is a folder below transport/ and a case more.
#pragma once

#include <memory>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/member/transport.hpp"
#include "coherence/transport/settings.hpp"

namespace coherence {

// What the settings name outlives the transport.  kNotFound: there is no such kind; kIncompatible: a setting is wrong.
Result<std::unique_ptr<Transport>> open_transport(const TransportSettings&, Problem*);

}  // namespace coherence
