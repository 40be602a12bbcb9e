#include "tools/gclctl/checkpoint_pages.hpp"

namespace gclctl {

using bufmgr::PageId;
using coherence::Problem;
using coherence::Result;
using coherence::Status;

Result<std::byte*> CheckpointPages::image(PageId page) {
  if (const auto there = changed_.find(page.raw); there != changed_.end()) return there->second->bytes;
  auto fresh = std::make_unique<Image>();
  const auto changed_before = delta_.read(page, fresh->bytes, &problem_);
  if (!changed_before) return changed_before.error();
  if (!*changed_before)
    if (const Status read = copy_.read(page, fresh->bytes, &problem_); !read) return read.error();
  if (changed_.size() + 1 >= pages_max_) logs_.pause = true;
  return changed_.emplace(page.raw, std::move(fresh)).first->second->bytes;
}

Status CheckpointPages::write_out(Problem* problem) {
  for (const auto& [page, image] : changed_) GCL_TRY(delta_.write(PageId{page}, image->bytes, problem));
  changed_.clear();
  return {};
}

}  // namespace gclctl
