#include "bufmgr/guards.hpp"

#include "bufmgr/copy.hpp"
#include "bufmgr/session.hpp"
#include "coherence/line/line.hpp"

namespace bufmgr {

void SharedGuard::release() noexcept {
  if (line_ == nullptr) return;
  bytes_ = nullptr;
  std::exchange(session_, nullptr)->end_shared(*std::exchange(line_, nullptr));
}

namespace {

// Whether the page was as in the pool.  REQUIRES: the node owns it.
bool store_hint(coherence::Line& line, std::byte* page, uint16_t offset, uint64_t word) noexcept {
  VERIFY(offset % 8 == 0 && offset >= kPageBody && offset <= kPageSize - 8);
  store_page_word(page + offset, word);
  const bool dirties = !line.is_dirty();
  line.note_hint(offset);
  return dirties;
}

}  // namespace

bool SharedGuard::set_hint(uint16_t offset, uint64_t word) noexcept {
  if (line_->msi() != coherence::MsiState::kModified) return false;
  if (store_hint(*line_, bytes_, offset, word)) session_->note_dirtied(1);
  return true;
}

void SharedGuard::hold(uint64_t by) noexcept { session_->coherence().hold(*line_, false, by); }
void ExclusiveGuard::hold(uint64_t by, bool exclusive) noexcept { session_->coherence().hold(*line_, exclusive, by); }

void ExclusiveGuard::set_hint(uint16_t offset, uint64_t word) noexcept {
  if (store_hint(*line_, bytes_, offset, word)) session_->note_dirtied(1);
}

void ExclusiveGuard::release() noexcept {
  if (line_ == nullptr) return;
  bytes_ = nullptr;
  std::exchange(session_, nullptr)->end_exclusive(*std::exchange(line_, nullptr));
}

}  // namespace bufmgr
