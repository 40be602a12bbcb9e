// DdlLog: every DDL transaction of the cluster that was ready to commit, in order, on pages of the pool.  A primary
// that was away reads it from where it stopped.
//
// Rules: ddl_log.entry-linked-whole, ddl_log.entry-before-decision, ddl_log.remove-oldest-applied,
// ddl_log.known-node-first and ddl_log.read-then-ask-root (rules.md).  Entries are numbered 1, 2, ...
//
//   number = log.append(record, txn.raw);
//   DdlLogEntry entry;
//   for (log.first(&entry); entry.valid(); log.next(&entry)) ...  // what is removed meanwhile is passed over
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
  uint64_t txn = 0;  // raw TxnId of the coordinator's transaction
  uint32_t bytes = 0;
  bool valid() const { return page.valid(); }
};

struct DdlLogExtent {
  uint64_t count = 0;    // entries ever
  uint64_t removed = 0;  // of these; 0: none
  uint64_t pages = 0;    // of the entries that are left
};

class DdlLog {
 public:
  DdlLog(bufmgr::BufferPool& pool, bufmgr::Session& session, DdlChannel& channel)
      : pool_(pool), session_(session), channel_(channel) {}

  // REQUIRES: no guard held; the caller has the DDL lock of the record's database (ddl_log.entry-before-decision).
  coherence::Result<uint64_t> append(std::span<const std::byte> record, uint64_t txn);
  coherence::Status first(DdlLogEntry* entry);
  coherence::Status next(DdlLogEntry* entry);
  // Copies the entry's record; `to` has entry.bytes bytes.  kNotFound: it has been removed.
  coherence::Status read(const DdlLogEntry& entry, std::byte* to);

  // The newest entry that has been removed, and what is left.
  coherence::Status extent(DdlLogExtent* extent);
  // Removes what all known nodes have applied; any node may, at any time.
  coherence::Status remove_applied();

 private:
  coherence::Status open_root(coherence::PageId* root);
  coherence::Result<coherence::PageId> write_chunk(std::span<const std::byte> chunk, coherence::PageId next,
                                                   uint64_t txn, uint32_t total);
  coherence::Result<uint64_t> link(coherence::PageId root, coherence::PageId entry, uint64_t pages);
  coherence::Status load(coherence::PageId page, DdlLogEntry* entry);
  coherence::Result<bool> is_there(uint64_t number);
  coherence::Result<coherence::PageId> unlink(coherence::PageId root);
  coherence::Status wipe(coherence::PageId page);
  coherence::Status free_chain(coherence::PageId page);

  bufmgr::BufferPool& pool_;
  bufmgr::Session& session_;
  DdlChannel& channel_;
};

}  // namespace engine
