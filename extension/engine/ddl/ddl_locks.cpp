#include "extension/engine/ddl/ddl_locks.hpp"

#include <algorithm>

namespace engine {

using coherence::Batch;

namespace {

// FNV-1a; never 0.
uint64_t key_of(std::string_view database) {
  uint64_t key = 0xcbf29ce484222325;
  for (const char c : database) key = (key ^ uint8_t(c)) * 0x100000001b3;
  return key | 1;
}

}  // namespace

int DdlLocks::lock_of(std::string_view database) {
  const uint64_t key = key_of(database);
  const int home = int(key >> 32 & (kDdlDatabasesMax - 1));
  for (int i = 0; i < kDdlDatabasesMax; ++i) {
    const int lock = 1 + (home + i) % kDdlDatabasesMax;
    uint64_t seen = region_.load(word(lock, offsetof(DdlLockWords, key)));
    if (seen == key) return lock;
    if (seen != 0) continue;
    char name[kDdlDatabaseBytes]{};
    std::copy_n(database.data(), std::min<size_t>(database.size(), sizeof name - 1), name);
    Batch batch(region_.at(0).node());
    const int cas = batch.cas(word(lock, offsetof(DdlLockWords, key)), 0, key);
    if (!region_.run(batch)) break;
    seen = batch.op(cas).old;
    if (seen != 0 && seen != key) continue;
    if (seen == 0) {
      Batch naming(region_.at(0).node());
      naming.write(word(lock, offsetof(DdlLockWords, database)), name, sizeof name);
      (void)region_.run(naming);
    }
    return lock;
  }
  return 1 + home;
}

DdlHolder DdlLocks::try_take(int lock, DdlHolder me, uint64_t now, bool* fresh) {
  Batch batch(region_.at(0).node());
  const int cas = batch.cas(word(lock, offsetof(DdlLockWords, holder)), 0, me.raw);
  *fresh = region_.run(batch) && batch.cas_succeeded(cas);
  if (!*fresh) return {batch.op(cas).old};
  region_.store(word(lock, offsetof(DdlLockWords, since)), now);
  return me;
}

DdlHolder DdlLocks::other_holder(DdlHolder me) {
  Batch batch(region_.at(0).node());
  for (int lock = 1; lock <= kDdlDatabasesMax; ++lock) batch.faa(word(lock, offsetof(DdlLockWords, holder)), 0);
  if (!region_.run(batch)) return {};
  for (int i = 0; i < batch.size(); ++i)
    if (batch.op(i).old != 0 && batch.op(i).old != me.raw) return {batch.op(i).old};
  return {};
}

bool DdlLocks::try_lock(int lock, DdlHolder me, uint64_t now, DdlHolder* other) {
  bool fresh;
  *other = try_take(lock, me, now, &fresh);
  if (*other != me || region_.lost()) return false;
  *other = lock == kWholeCluster ? other_holder(me)  // ddl_log.database-or-cluster-lock
                                 : DdlHolder{region_.load_newest(word(kWholeCluster, offsetof(DdlLockWords, holder)))};
  if (region_.lost()) return false;
  if (!other->held() || *other == me) return true;
  if (lock == kWholeCluster) return false;  // ddl_log.cluster-lock-keeps-out
  if (!fresh) return true;                  // it was ours before the other came, which waits for us
  unlock(lock, me);
  return false;
}

void DdlLocks::unlock(int lock, DdlHolder me) {
  Batch batch(region_.at(0).node());
  batch.cas(word(lock, offsetof(DdlLockWords, holder)), me.raw, 0);
  (void)region_.run(batch);
}

bool DdlLocks::unlock_all(DdlHolder me) {
  Batch batch(region_.at(0).node());
  for (int lock = 1; lock <= kDdlDatabasesMax; ++lock) batch.cas(word(lock, offsetof(DdlLockWords, holder)), me.raw, 0);
  Batch whole(region_.at(0).node());
  const int last = whole.cas(word(kWholeCluster, offsetof(DdlLockWords, holder)), me.raw, 0);
  if (!region_.run(batch) || !region_.run(whole)) return false;
  bool held = whole.cas_succeeded(last);
  for (int i = 0; i < batch.size(); ++i) held |= batch.cas_succeeded(i);
  return held;
}

DdlLocks::Holders DdlLocks::holders() {
  Holders holders{};
  Batch whole(region_.at(0).node()), others(region_.at(0).node());
  whole.load(word(kWholeCluster, offsetof(DdlLockWords, holder)));
  for (int lock = 1; lock <= kDdlDatabasesMax; ++lock) others.load(word(lock, offsetof(DdlLockWords, holder)));
  if (!region_.run(whole) || !region_.run(others)) return holders;
  holders[kWholeCluster] = {whole.op(0).old};
  for (int lock = 1; lock <= kDdlDatabasesMax; ++lock) holders[lock] = {others.op(lock - 1).old};
  return holders;
}

void DdlLocks::want(DdlWanted what) {
  for (uint64_t before = 0;;) {
    Batch batch(region_.at(0).node());
    const int cas = batch.cas(region_.at(kDdlWanted), before, before | what.bits());
    if (!region_.run(batch) || batch.cas_succeeded(cas)) return;
    before = batch.op(cas).old;
    if ((before & what.bits()) == what.bits()) return;
  }
}

DdlWanted DdlLocks::take_wanted() {
  for (uint64_t before = 0;;) {
    Batch batch(region_.at(0).node());
    const int cas = batch.cas(region_.at(kDdlWanted), before, 0);
    if (!region_.run(batch)) return DdlWanted(0);
    if (batch.cas_succeeded(cas)) return DdlWanted(before);
    before = batch.op(cas).old;
  }
}

DdlLockWords DdlLocks::words(int lock) {
  DdlLockWords copy{};
  Batch batch(region_.at(0).node());
  batch.read(word(lock, 0), &copy, sizeof copy);
  if (!region_.run(batch)) return {};
  copy.database[kDdlDatabaseBytes - 1] = 0;
  return copy;
}

}  // namespace engine
