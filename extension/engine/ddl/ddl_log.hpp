// DdlLog: every DDL transaction of the cluster that was ready to commit, in order, on pages of the pool.  A primary
// that was away reads it from where it stopped.
//
// L1. Entries are numbered 1, 2, ...; an entry is linked (and counted) by one mini-transaction, when it is complete.
// L2. Only the holder of its database's DDL lock appends an entry.  Whoever reads it asks the status log whether its
//     transaction committed: an entry is written before that is decided.  Other databases' may follow meanwhile.
// L3. Nothing is ever removed: a primary that joins later starts from entry 1.
//
//   number = log.append(record, txn.raw);
//   DdlLogEntry entry;
//   for (log.first(&entry); entry.valid(); log.next(&entry)) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bufmgr/buffer_pool.hpp"
#include "coherence/base/result.hpp"
#include "extension/engine/ddl/ddl_channel.hpp"

namespace engine {

struct DdlLogEntry {
  coherence::PageId page;  // invalid: there is no such entry (yet)
  coherence::PageId following;
  uint64_t number = 0;
  uint64_t txn = 0;  // raw TxnId of the author's transaction
  uint32_t bytes = 0;
  bool valid() const { return page.valid(); }
};

class DdlLog {
 public:
  DdlLog(bufmgr::BufferPool& pool, bufmgr::Session& session, DdlChannel& channel)
      : pool_(pool), session_(session), channel_(channel) {}

  // REQUIRES: no guard held; L2.
  coherence::Result<uint64_t> append(std::span<const std::byte> record, uint64_t txn);
  coherence::Status first(DdlLogEntry* entry);
  coherence::Status next(DdlLogEntry* entry);
  // Copies the entry's record; `to` has entry.bytes bytes.
  coherence::Status read(const DdlLogEntry& entry, std::byte* to);

 private:
  coherence::Status open_root(coherence::PageId* root);
  coherence::Result<coherence::PageId> write_chunk(std::span<const std::byte> chunk, coherence::PageId next,
                                                   uint64_t txn, uint32_t total);
  coherence::Result<uint64_t> link(coherence::PageId root, coherence::PageId entry);
  coherence::Status load(coherence::PageId page, DdlLogEntry* entry);

  bufmgr::BufferPool& pool_;
  bufmgr::Session& session_;
  DdlChannel& channel_;
};

}  // namespace engine
