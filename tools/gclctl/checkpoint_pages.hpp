// CheckpointPages: the pages that a checkpoint's merge changes, out of the checkpoint before and the copy.  The copy is
// never changed.
#pragma once

#include <memory>
#include <unordered_map>

#include "coherence/region/saved_pages.hpp"
#include "recovery/checkpoint.hpp"
#include "recovery/log_merge.hpp"
#include "tools/gclctl/restart_logs.hpp"

namespace gclctl {

class CheckpointPages final : public recovery::PageImages {
 public:
  // Has the logs pause when it holds so many pages.
  CheckpointPages(coherence::SavedPages& copy, recovery::DeltaPages& delta, size_t pages_max, LogBounds& logs)
      : copy_(copy), delta_(delta), pages_max_(pages_max), logs_(logs) {}
  coherence::Result<std::byte*> image(bufmgr::PageId) override;
  size_t count() const { return changed_.size(); }
  // All that were asked for go into the delta, and out of memory.
  coherence::Status write_out(coherence::Problem*);
  // What the last image() failed of.
  const coherence::Problem& problem() const { return problem_; }

 private:
  struct Image {
    alignas(8) std::byte bytes[coherence::kPageSize];
  };
  coherence::SavedPages& copy_;
  recovery::DeltaPages& delta_;
  const size_t pages_max_;
  LogBounds& logs_;
  std::unordered_map<uint64_t, std::unique_ptr<Image>> changed_;  // by raw page ids
  coherence::Problem problem_;
};

}  // namespace gclctl
