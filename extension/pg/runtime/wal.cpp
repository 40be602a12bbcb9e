// The server's WAL as the pool's log: one record per mini-transaction, in a resource manager of our own whose redo does
// nothing (repair of the pool is done from the records, not by the server's recovery).
#include <string.h>

#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/commit_hold.hpp"
#include "extension/pg/runtime/mixed_commits.hpp"

extern "C" {
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xloginsert.h"
#include "lib/stringinfo.h"
}

namespace gcl {

namespace {

constexpr RmgrId kRmgrId = 150;
constexpr uint8 kMiniTransaction = 0x00;
constexpr uint8 kLeave = 0x10;  // says nothing: it is there for its end, up to which the log is flushed
constexpr uint8 kNote = 0x20;

void redo(XLogReaderState*) {}
uint8 kind_of(uint8 info) { return uint8(info & ~XLR_INFO_MASK); }
void describe(StringInfo to, XLogReaderState* record) {
  if (kind_of(XLogRecGetInfo(record)) == kMiniTransaction)
    appendStringInfo(to, "mini-transaction, %u bytes", XLogRecGetDataLen(record));
  if (kind_of(XLogRecGetInfo(record)) == kNote) appendStringInfo(to, "note, %u bytes", XLogRecGetDataLen(record));
}
const char* identify(uint8 info) {
  switch (kind_of(info)) {
    case kMiniTransaction:
      return "MINI_TRANSACTION";
    case kLeave:
      return "LEAVE";
    case kNote:
      return "NOTE";
    default:
      return nullptr;
  }
}

class WalSink final : public bufmgr::LogSink {
 public:
  coherence::Lsn append(std::span<const std::byte> record) override { return insert(kMiniTransaction, record); }
  void note(std::span<const std::byte> bytes) override { noted_ = insert(kNote, bytes).value; }
  void flush_notes() override {
    START_CRIT_SECTION();  // an ERROR must not leave: it is called from below
    XLogFlush(noted_);
    END_CRIT_SECTION();
  }
  uint64_t number_beside_note() override { return GetCurrentTransactionIdIfAny(); }  // xl_xid
  coherence::Lsn flushed() override { return {held_back(GetFlushRecPtr(nullptr))}; }
  void request_flush(coherence::Lsn lsn) override {
    std::atomic<uint64_t>& wanted = node_state()->flush_wanted;
    uint64_t seen = wanted.load(std::memory_order_relaxed);
    while (seen < lsn.value && !wanted.compare_exchange_weak(seen, lsn.value, std::memory_order_release)) {
    }  // pairs with the flusher's load
    wake_worker(Worker::kFlusher);
  }

 private:
  // Under page latches: an ERROR must not leave, so it is a critical section, whose errors are PANIC.
  static coherence::Lsn insert(uint8 kind, std::span<const std::byte> bytes) {
    START_CRIT_SECTION();
    XLogBeginInsert();
    XLogRegisterData(const_cast<char*>(reinterpret_cast<const char*>(bytes.data())), int(bytes.size()));
    const XLogRecPtr end = XLogInsert(kRmgrId, kind);
    count_own_record();
    END_CRIT_SECTION();
    return {end};
  }

  XLogRecPtr noted_ = 0;  // up to there, by this process
};

}  // namespace

bufmgr::LogSink& wal_sink() {
  static WalSink sink;
  return sink;
}

void flush_log() {
  if (GetXLogInsertRecPtr() > GetFlushRecPtr(nullptr)) (void)flush_with_record();
}

// Not to GetXLogInsertRecPtr(): at a page's end that is behind the next page's header, and cannot be flushed.
XLogRecPtr flush_with_record() {
  char nothing = 0;
  XLogBeginInsert();
  XLogRegisterData(&nothing, sizeof nothing);
  const XLogRecPtr end = XLogInsert(kRmgrId, kLeave);
  XLogFlush(end);
  return end;
}

void register_wal_records() {
  static RmgrData manager{.rm_name = "gcl", .rm_redo = redo, .rm_desc = describe, .rm_identify = identify};
  RegisterCustomRmgr(kRmgrId, &manager);
}

}  // namespace gcl
