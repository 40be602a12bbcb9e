#include "coherence/write_back_group.hpp"

#include "coherence/base/verify.hpp"
#include "coherence/session.hpp"
#include "coherence/session/write_back.hpp"

namespace coherence {

WriteBackGroup::~WriteBackGroup() { VERIFY(size_ == 0); }

bool WriteBackGroup::room_for(PageId page) const noexcept {
  return size_ == 0 || (size_ < kLinesMax && batch_->to() == page.node() && batch_->room() >= kWriteBackOpsMax);
}

Result<bool> WriteBackGroup::add(Line& line, PageId page) noexcept {
  VERIFY(room_for(page));
  if (session_.node().fenced()) return Errc::kFenced;
  if (!LatchTable::hit_shared_but_for_marks(line)) return Errc::kWouldBlock;
  auto begun = session_.evictor_.begin_write_back(line, page);
  if (!begun || !*begun) {
    session_.unlock_shared(line);
    return begun.ok() ? Result<bool>(false) : Result<bool>(begun.error());
  }
  if (size_ == 0) batch_.emplace(page.node());
  session_.evictor_.add_changes(*batch_, line);
  line_[size_++] = &line;
  return true;
}

bool WriteBackGroup::write() noexcept {
  const bool known = session_.evictor_.memory().run(*batch_).ok();
  for (int i = 0; i < size_; i++) {
    session_.evictor_.end_write_back(*line_[i], known);
    session_.unlock_shared(*line_[i]);
  }
  return known;
}

}  // namespace coherence
