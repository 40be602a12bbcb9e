#include "extension/pg/txn/pending.hpp"

#include "extension/engine/blink/tree.hpp"
#include "extension/engine/sequence/sequence.hpp"
#include "extension/pg/backend.hpp"
#include "extension/pg/ddl/ddl.hpp"

namespace gcl {

using coherence::Errc;
using coherence::PageId;

namespace {

struct Pending {
  RelationFile kind;
  PageId header;
  int level;
  bool on_commit;
};
std::vector<Pending> pending;

void note(RelationFile kind, PageId header, bool on_commit) {
  if (ddl_replaying()) return;
  pg_entry([&] { pending.push_back({kind, header, GetCurrentTransactionNestLevel(), on_commit}); });
}

// At commit: pages of relations that nobody can name any more.  What cannot be freed leaks, and says so.
void free_pages(const Pending& p) noexcept {
  engine::TxnSystem* txns = attached_txns();
  if (txns == nullptr) return;
  for (;;) {
    const coherence::Status status = free_relation_pages(*txns, p.kind, p.header);
    if (status.ok()) return;
    if (status.error() == Errc::kInterrupted) continue;
    ereport(WARNING,
            errmsg("pages of a dropped gcl relation were not given back: %s", coherence::errc_name(status.error())));
    return;
  }
}

}  // namespace

coherence::Status free_relation_pages(engine::TxnSystem& txns, RelationFile kind, PageId header) noexcept {
  switch (kind) {
    case RelationFile::kTable:
      return engine::Heap::drop(txns, engine::RelationId{header});
    case RelationFile::kIndex:
      return engine::blink::Tree::drop(txns.pool(), txns.session(), header);
    case RelationFile::kSequence:
      return engine::Sequence::drop(txns.pool(), txns.session(), header);
  }
  return Errc::kCorrupt;
}

void pages_made(RelationFile kind, PageId header) { note(kind, header, false); }
void pages_dropped(RelationFile kind, PageId header) { note(kind, header, true); }

void pages_kept(RelationFile kind, PageId header) {
  std::erase_if(pending, [=](const Pending& p) { return p.on_commit && p.kind == kind && p.header == header; });
}

bool pending_any() noexcept { return !pending.empty(); }

void pending_commit() noexcept {
  for (const Pending& p : pending)
    if (p.on_commit) free_pages(p);
  pending.clear();
}

void pending_abort() noexcept { pending_sub_abort(0); }

void pending_sub_commit(int level) noexcept {
  for (Pending& p : pending)
    if (p.level >= level) p.level = level - 1;
}

void pending_sub_abort(int level) noexcept {
  size_t kept = 0;
  for (const Pending& p : pending) {
    if (p.level < level) {
      pending[kept++] = p;
    } else if (!p.on_commit) {
      throw_away({uint32_t(p.kind), p.header.raw});
    }
  }
  pending.resize(kept, Pending{});
}

}  // namespace gcl
