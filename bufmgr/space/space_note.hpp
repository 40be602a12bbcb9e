// SpaceNote: what is changed together with the allocator's map, by one mini-transaction.
//
// space.noted-in-same-change: A session that keeps account of pages in other pages (a list of what is being made, a
//     relation that is being freed page by page) does it with a note: no crash and no interrupted wait comes between a
//     page's allocation, or its end, and that account.  So nothing leaks, and nothing is freed twice.
//
//   PageNote unlink(pool, session, map, offset, entry_without_it);      // {page, offset, bytes}
//   GCL_TRY(pool.free(session, page, 1, &unlink));
//
// A note latches its pages behind the map's (WaitOrder::kNote, kNew) and keeps them latched until it is destroyed: it
// lives no longer than the call.  A session that holds a page that notes change waits for no page of the allocator:
// allocate() and free() insist on that.
#pragma once

#include <cstring>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/mini_transaction.hpp"

namespace bufmgr {

class SpaceNote {
 public:
  virtual ~SpaceNote() = default;
  // Log space for what write() changes.
  virtual uint32_t log_bytes() const = 0;
  // `first` is about to be allocated or freed.  An error (kRestart: the account has changed; never kNoSpace) ends the
  // call, and nothing has happened.
  virtual Status open(PageId first) = 0;
  virtual void write(MiniTransaction& change) = 0;
};

// Writes up to 64 bytes of one page.  REQUIRES: no other session changes them.
class PageNote final : public SpaceNote {
 public:
  template <class T>
  PageNote(BufferPool& pool, Session& session, PageId page, uint32_t offset, const T& value)
      : pool_(pool), session_(session), page_(page), offset_(offset), bytes_(sizeof value) {
    static_assert(sizeof value <= sizeof value_ && std::is_trivially_copyable_v<T>);
    std::memcpy(value_, &value, sizeof value);
  }
  uint32_t log_bytes() const override { return bytes_; }
  Status open(PageId) override {
    session_.next_wait(WaitOrder::kNote);
    auto guard = pool_.fix_exclusive(session_, page_);
    if (!guard) return guard.error();
    guard_ = guard.take();
    return {};
  }
  void write(MiniTransaction& change) override {
    change.join(guard_);
    change.write(guard_, offset_, value_, bytes_);
  }

 private:
  BufferPool& pool_;
  Session& session_;
  PageId page_;
  uint32_t offset_, bytes_;
  std::byte value_[64];
  ExclusiveGuard guard_;
};

}  // namespace bufmgr
