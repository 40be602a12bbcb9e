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

bool SharedGuard::set_hint(uint16_t offset, uint64_t word) noexcept {
  VERIFY(offset % 8 == 0 && offset >= kPageBody && offset <= kPageSize - 8);
  if (line_->msi() != coherence::MsiState::kModified) return false;
  store_page_word(bytes_ + offset, word);
  if (!line_->is_dirty()) session_->note_dirtied(1);
  line_->note_hint(offset);
  return true;
}

void ExclusiveGuard::release() noexcept {
  if (line_ == nullptr) return;
  bytes_ = nullptr;
  std::exchange(session_, nullptr)->end_exclusive(*std::exchange(line_, nullptr));
}

}  // namespace bufmgr
