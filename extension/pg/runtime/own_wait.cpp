#include "extension/pg/runtime/own_wait.hpp"

extern "C" {
#include "pgstat.h"
#include "utils/timestamp.h"
}

namespace gcl {

namespace {

struct Slot {
  slock_t lock;
  OwnWait wait;
  OwnWaitKind kind_before;
  char detail[kDetailBytes];
};

struct Slots {
  uint32_t count;
  Slot slot[FLEXIBLE_ARRAY_MEMBER];
};

Slots* slots = nullptr;

// Runs `f(slot)` with the slot locked.  `f` must be short and call nothing.
template <class F>
auto locked(uint32_t index, F f) {
  Slot& slot = slots->slot[index];
  SpinLockAcquire(&slot.lock);
  auto result = f(slot);
  SpinLockRelease(&slot.lock);
  return result;
}

template <class F>
auto mine(F f) {
  return locked(uint32_t(MyProc->pgprocno), f);
}

// Copies the detail; false if there is none.
bool take_detail(char* to) {
  return mine([to](const Slot& s) {
    if (s.wait.condemned) memcpy(to, s.detail, kDetailBytes);
    return s.wait.condemned;
  });
}

}  // namespace

size_t own_waits_bytes(uint32_t count) { return offsetof(Slots, slot) + count * sizeof(Slot); }

void own_waits_init(void* memory, uint32_t count) {
  slots = static_cast<Slots*>(memory);
  memset(memory, 0, own_waits_bytes(count));
  slots->count = count;
  for (uint32_t i = 0; i < count; ++i) SpinLockInit(&slots->slot[i].lock);
}

void own_wait_begins(OwnWaitKind kind, OwnParty holder, OwnRemote remote) {
  const TimestampTz now = GetCurrentTimestamp();
  (void)mine([=](Slot& s) {
    s.wait.since = now;
    s.wait.holder = holder;
    s.wait.remote = remote;
    s.wait.pid = MyProcPid;
    s.wait.timeout_ms = DeadlockTimeout;
    s.wait.kind = kind;
    s.wait.condemned = false;
    return ++s.wait.sequence;
  });
}

void own_wait_ends() noexcept {
  (void)mine([](Slot& s) {
    if (s.wait.kind != OwnWaitKind::kNone) s.kind_before = s.wait.kind;
    s.wait.kind = OwnWaitKind::kNone;
    s.wait.condemned = false;  // (runtime.condemned-for-one-wait)
    return 0;
  });
}

void own_wait_goes_on() noexcept {
  (void)mine([](Slot& s) {
    s.wait.kind = s.kind_before;
    return 0;
  });
}

void own_ddl_transaction(uint64_t ddl_transaction, OwnParty works_for) noexcept {
  (void)mine([=](Slot& s) {
    s.wait.ddl_transaction = ddl_transaction;
    s.wait.works_for = works_for;
    s.wait.pid = MyProcPid;
    if (s.wait.kind == OwnWaitKind::kNone) s.wait.timeout_ms = DeadlockTimeout;
    return 0;
  });
}

void own_wait_forget() noexcept {
  if (slots == nullptr || MyProc == nullptr) return;
  own_wait_ends();
  own_ddl_transaction(0);
}

void own_wait_rolled_back() noexcept {
  if (slots == nullptr || MyProc == nullptr) return;
  (void)mine([](Slot& s) {
    if (s.wait.kind == OwnWaitKind::kNone) s.wait.condemned = false;
    return 0;
  });
}

namespace {

emit_log_hook_type next_emit_log = nullptr;

void put_detail(ErrorData* error) {
  if (slots != nullptr && MyProc != nullptr) (void)own_wait_explain(error);
  if (next_emit_log) next_emit_log(error);
}

}  // namespace

void install_deadlock_details() {
  next_emit_log = emit_log_hook;
  emit_log_hook = put_detail;
}

void own_wait_check() {
  char text[kDetailBytes];
  if (!take_detail(text)) return;
  pgstat_report_deadlock();
  ereport(ERROR, (errcode(ERRCODE_T_R_DEADLOCK_DETECTED), errmsg("deadlock detected"), errdetail_internal("%s", text)));
}

bool own_wait_explain(ErrorData* error) noexcept {
  char text[kDetailBytes];
  if (error->sqlerrcode != ERRCODE_T_R_DEADLOCK_DETECTED || !take_detail(text)) return false;
  // What stands there is left from a deadlock that this process found in its own server, if anything.
  for (char* old : {error->detail, error->detail_log, error->hint})
    if (old != nullptr) pfree(old);
  error->detail = MemoryContextStrdup(TopMemoryContext, text);
  error->detail_log = error->hint = nullptr;
  return true;
}

uint32_t own_wait_slots() noexcept { return slots->count; }

OwnWait own_wait_of(uint32_t slot) noexcept {
  return locked(slot, [](const Slot& s) { return s.wait; });
}

bool own_wait_condemn(uint32_t slot, int pid, OwnWaitKind kind, uint64_t sequence, const char* detail) noexcept {
  return locked(slot, [=](Slot& s) {
    const bool told = kind != OwnWaitKind::kNone || (s.wait.ddl_transaction != 0 && s.wait.works_for.pid == 0);
    const bool same = s.wait.pid == pid && s.wait.sequence == sequence && s.wait.kind == kind && told;
    if (same) {
      s.wait.condemned = true;
      strlcpy(s.detail, detail, kDetailBytes);
    }
    return same;
  });
}

}  // namespace gcl
