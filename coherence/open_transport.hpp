// Which transports there are: the one place that names them all.  Whoever makes a node asks here; a new transport is a
// folder below transport/ and a case more.
#pragma once

#include <memory>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/member/transport.hpp"

namespace coherence {

// `description`: as a setting says it; "shm" is the transport of one machine.  kNotFound: there is no such transport.
Result<std::unique_ptr<Transport>> open_transport(const char* description, Problem*);

}  // namespace coherence
