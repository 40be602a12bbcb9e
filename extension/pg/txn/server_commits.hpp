// What this server's own commit log says of transactions that a former run of it left PREPARED in the pool
// (txn.in-doubt-until-back).
#pragma once

#include "bufmgr/buffer_pool.hpp"
#include "extension/engine/txn/host.hpp"

namespace gcl {

enum class CommitLog : uint8_t {
  kOwn,
  kLost,     // the data directory is another one, in place of that which is lost: what was not published is rolled back
  kForeign,  // a data directory that the pool does not take: it decides nothing
};

// REQUIRES: the server's own recovery has ended.
class ServerCommits final : public engine::HostCommits {
 public:
  // `pool`: whose journal the decisions come to.
  ServerCommits(CommitLog log, bufmgr::BufferPool& pool) : log_(log), pool_(pool) {}
  // kCorrupt: the server knows nothing of that number any more: its data directory is far younger than the pool, or is
  // not the one.
  coherence::Result<bool> committed(uint64_t host_xid) override;
  coherence::Status about_to_decide(engine::TxnId, bool committed) override;
  // A WARNING if this server has decided otherwise: its ordinary tables and the gcl tables do not agree.
  bool was_decided(uint64_t host_xid, bool committed) override;

 private:
  const CommitLog log_;
  bufmgr::BufferPool& pool_;
};

// Decides what the former incarnation of this node left in doubt (extension.doubts-decided-first).  By the member
// worker; by the next one again, if this one fails, as long as no commit has gone on meanwhile.
void decide_doubts(CommitLog);

}  // namespace gcl
