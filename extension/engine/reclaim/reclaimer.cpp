#include "extension/engine/reclaim/reclaimer.hpp"

#include <algorithm>
#include <utility>

#include "bufmgr/space/space_note.hpp"
#include "extension/engine/blink/tree.hpp"
#include "extension/engine/heap/heap.hpp"
#include "extension/engine/sequence/sequence.hpp"

namespace engine {

using bufmgr::MiniTransaction;
using bufmgr::PageNote;

namespace {

constexpr int kTreePagesAtOnce = 64;

struct ListBuffer {
  alignas(8) std::byte bytes[coherence::kPageSize];
  const ReclaimPage& page() const { return *reinterpret_cast<const ReclaimPage*>(bytes); }
};

Result<PageId> root_of(TxnSystem& txns, NodeId node) {
  const auto link = txns.pool().memory(txns.session()).load(txns.words().reclaim_root(node));
  if (!link) return link.error();
  return linked_page(*link);
}

// A failure that passes: what was to be done is still to be done.
bool passes(Errc error) {
  return error == Errc::kInterrupted || error == Errc::kFenced || error == Errc::kNoMemory || error == Errc::kHeld;
}

}  // namespace

// reclaim.status-log-decides.
Result<Reclaimer::Findings> Reclaimer::examine(TxnSystem& txns, const ReclaimPage& page) {
  Findings found;
  for (uint32_t i = 0; i < ReclaimPage::kRecords; ++i) {
    const ReclaimRecord& record = page.record[i];
    if (record.word == 0) continue;
    ++found.records;
    auto status = txns.status(record.by());
    if (!status) return status.error();
    if (status->running()) continue;
    found.due = true;
    if (status->committed() != (record.what() == ReclaimWhat::kDropped))
      found.forget.push_back(i);
    else if (!found.free)
      found.free = i;
  }
  return found;
}

// Examines lists without their lock.  A page that has gone meanwhile ends that: the session that works there says what
// is left.
Result<bool> Reclaimer::due(TxnSystem& txns, NodeId node, uint64_t* records) {
  ListBuffer copy;
  uint64_t count = 0;
  if (records != nullptr) *records = 0;
  const auto root = root_of(txns, node);
  if (!root) return root.error();
  for (PageId at = *root; at.valid(); at = linked_page(copy.page().next)) {
    GCL_TRY(txns.pool().copy_page(txns.session(), at, copy.bytes));
    if (!is_list_of(copy.page(), node)) return true;
    if (copy.page().closed != 0) return true;
    auto found = examine(txns, copy.page());
    if (!found) return found.error();
    count += found->records;
    if (records != nullptr) *records = count;
    if (found->due) return true;
  }
  return false;
}

Result<bool> Reclaimer::due_anywhere(TxnSystem& txns) {
  for (uint32_t n = 0; n < txns.words().nodes(); ++n) {
    auto some = due(txns, NodeId{uint8_t(n)});
    if (!some || *some) return some;
  }
  return false;
}

Result<bool> Reclaimer::step() {
  if (job_) return free_some();
  return list_ ? work_on_page() : choose_list();
}

// reclaim.others-while-away.
Result<bool> Reclaimer::choose_list() {
  for (uint32_t n = 0; n < txns_.words().nodes(); ++n) {
    const NodeId node{uint8_t(n)};
    if (node != txns_.node() && !txns_.away(node)) continue;
    auto some = due(txns_, node, node == txns_.node() ? &open_ : nullptr);
    if (!some) return some;
    if (!*some) continue;
    const auto root = root_of(txns_, node);
    if (!root) return root.error();
    auto locked = txns_.take_session_lock_on(*root, bufmgr::PageType::kReclaim, offsetof(ReclaimPage, lock_token));
    if (!locked) return locked;
    if (!*locked) continue;
    list_ = node;
    at_ = *root;
    before_ = {};
    return true;
  }
  return false;
}

Result<bool> Reclaimer::work_on_page() {
  ListBuffer copy;
  GCL_TRY(txns_.pool().copy_page(txns_.session(), at_, copy.bytes));
  VERIFY(is_list_of(copy.page(), *list_));  // reclaim.lock-holder-removes: only we remove pages
  auto found = examine(txns_, copy.page());
  if (!found) return found.error();
  if (!found->forget.empty()) {
    GCL_TRY(forget(found->forget, copy.page()));
  } else if (found->free) {
    job_ = Job{at_, *found->free, copy.page().record[*found->free]};
  } else {
    return pass_page(copy.page(), found->records == 0);
  }
  return true;
}

Status Reclaimer::forget(const std::vector<uint32_t>& places, const ReclaimPage& seen) {
  constexpr size_t kAtOnce = 32;  // ranges of a mini-transaction
  MiniTransaction change(txns_.pool(), txns_.session());
  GCL_TRY(change.reserve(kAtOnce * 32));
  auto guard = txns_.pool().fix_exclusive(txns_.session(), at_);
  if (!guard) return guard.error();
  const auto& now = *reinterpret_cast<const ReclaimPage*>(guard->bytes());
  change.join(*guard);
  for (size_t i = 0; i < std::min(places.size(), kAtOnce); ++i) {
    VERIFY(now.record[places[i]] == seen.record[places[i]]);  // reclaim.lock-holder-removes: only we remove records
    change.zero(*guard, record_at(places[i]), sizeof(ReclaimRecord));
  }
  change.commit();
  return {};
}

// On to the next page.  One that is empty goes, but for the root and the newest, which get records, and before which
// new pages are put.
Result<bool> Reclaimer::pass_page(const ReclaimPage& page, bool empty) {
  const PageId next = linked_page(page.next);
  const auto root = root_of(txns_, *list_);
  if (!root) return root.error();
  const bool old = before_.valid() && before_ != *root;
  bool goes = old && empty;
  if (goes && page.closed == 0) {
    auto closed = close_page();
    if (!closed) return closed;
    goes = *closed;
  }
  if (goes) {
    PageNote unlink(txns_.pool(), txns_.session(), before_, offsetof(ReclaimPage, next), page.next);
    GCL_TRY(txns_.pool().free(txns_.session(), at_, 1, &unlink));
  } else {
    before_ = at_;
  }
  at_ = next;
  if (at_.valid()) return true;
  list_.reset();
  txns_.release_session_lock();
  return true;
}

// False: it has a record again, of a session that took it for the newest.
Result<bool> Reclaimer::close_page() {
  MiniTransaction change(txns_.pool(), txns_.session());
  GCL_TRY(change.reserve(64));
  auto guard = txns_.pool().fix_exclusive(txns_.session(), at_);
  if (!guard) return guard.error();
  for (const ReclaimRecord& record : reinterpret_cast<const ReclaimPage*>(guard->bytes())->record)
    if (record.word != 0) return false;
  change.join(*guard);
  change.set(*guard, offsetof(ReclaimPage, closed), uint32_t{1});
  change.commit();
  return true;
}

Result<bool> Reclaimer::free_some() {
  const Job& job = *job_;
  auto gone = free_part();
  if (!gone && passes(gone.error())) return gone;
  if (!gone) {
    failure_ = gone.error();
    MiniTransaction change(txns_.pool(), txns_.session());
    GCL_TRY(change.reserve(64));
    auto guard = txns_.pool().fix_exclusive(txns_.session(), job.list);
    if (!guard) return guard.error();
    change.join(*guard);
    change.zero(*guard, record_at(job.place), sizeof(ReclaimRecord));
    change.commit();
  }
  if (!gone || *gone) job_.reset();
  return true;
}

// True: all of it is gone, and the record with it.
Result<bool> Reclaimer::free_part() {
  const Job& job = *job_;
  const PageId page{job.record.page};
  auto& pool = txns_.pool();
  auto& session = txns_.session();
  for (int pages = 0; pages < kTreePagesAtOnce; ++pages) {
    PageNote last(pool, session, job.list, record_at(job.place), ReclaimRecord{});
    switch (job.record.kind()) {
      case ReclaimKind::kTable:
        return Heap::drop_some(txns_, RelationId{page}, &last);
      case ReclaimKind::kSequence:
        GCL_TRY(Sequence::drop(pool, session, page, &last));
        return true;
      case ReclaimKind::kIndex: {
        auto gone = blink::Tree::drop_some(pool, session, page, &last);
        if (!gone || *gone) return gone;
        break;
      }
      default:
        return Errc::kCorrupt;
    }
  }
  return false;
}

}  // namespace engine
