// What libibverbs makes, with what ends it.
//
// verbs.gone-for-certain: What is destroyed here is gone when the call returns: a queue pair carries out nothing more,
//     a region is touched by nothing more.  A device that cannot do so ends the process, with which the kernel ends all
//     that it had of the device: nobody goes on as if it were gone.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "coherence/base/verify.hpp"

namespace coherence::verbs {

template <class T, int (*end)(T*)>
struct Ends {
  void operator()(T* it) const noexcept { VERIFY(end(it) == 0); }
};

using Context = std::unique_ptr<ibv_context, Ends<ibv_context, ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Ends<ibv_pd, ibv_dealloc_pd>>;
using CompletionChannel = std::unique_ptr<ibv_comp_channel, Ends<ibv_comp_channel, ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Ends<ibv_cq, ibv_destroy_cq>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Ends<ibv_mr, ibv_dereg_mr>>;
using Pair = std::unique_ptr<ibv_qp, Ends<ibv_qp, ibv_destroy_qp>>;

}  // namespace coherence::verbs
