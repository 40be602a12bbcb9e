#include "user.hpp"

#include <cstring>

namespace sim {

User::User(Cluster& cluster, Member& member, int number)
    : cluster_(cluster),
      member_(member),
      options_(cluster.options_),
      random_(scheduler()->random()),
      chance_(cluster.options_.interrupt_one_in),
      session_(*member.node, SessionId{uint16_t(number)}, &chance_),
      waiting_(*cluster.waiting_[size_t(member.id.value * options_.threads + number)]) {}

void User::work(int operations) {
  for (int i = 0; i < operations && !over_; i++) {
    one_operation();
    think();
  }
}

void User::hog(const Member& victim) {
  while (victim.users > 0 && !over_) {
    if (random_.below(100) < options_.writes_percent)
      write(0);
    else
      read(0, Intent::kRead);
  }
}

void User::one_operation() {
  // Half of the work is on one page.
  const int page = random_.one_in(2) ? 0 : int(random_.below(uint64_t(options_.pages)));
  if (random_.below(100) < options_.writes_percent) {
    if (options_.two_pages && random_.one_in(4))
      write_two(page);
    else
      write(page);
    return;
  }
  switch (random_.below(11)) {
    case 0:
    case 1:
    case 2:
      read(page, Intent::kRead);
      break;
    case 3:
      if (read(page, Intent::kWrite) && random_.one_in(2)) write(page);
      break;
    case 4:
    case 5:
      read_optimistically(page);
      break;
    case 6:
      if (random_.one_in(4))
        member_.evict_all(session_);
      else
        member_.evict(session_, page);
      break;
    case 7:
      if (Line* line = member_.directory.lines[size_t(page)]) (void)session_.write_back(*line, id(page));
      session_.serve_flushed();
      break;
    case 8:
      if (options_.holds) hold(page);
      break;
    case 9:
      try_latch(page);
      break;
    case 10:
      look_once(page);
      break;
  }
}

bool User::read(int page, Intent intent) {
  Line* line = member_.line(session_, page);
  if (!line || !lock(*line, page, false, intent)) return false;
  cluster_.oracle_.enter(page, false);
  look(*line, page);
  think();
  look(*line, page);
  end_shared(*line, page);
  return true;
}

bool User::write(int page) {
  Line* line = member_.line(session_, page);
  if (!line || !lock(*line, page, true, Intent::kWrite)) return false;
  cluster_.oracle_.enter(page, true);
  change(*line, page);
  if (!random_.one_in(4)) {
    end_exclusive(*line, page);
    return true;
  }
  cluster_.oracle_.downgrade(page);
  session_.downgrade(*line);
  look(*line, page);
  end_shared(*line, page);
  return true;
}

// In the one order that all users keep.
bool User::write_two(int page) {
  if (page + 1 >= options_.pages) return write(page);
  Line* line = member_.line(session_, page);
  if (!line || !lock(*line, page, true, Intent::kWrite)) return false;
  cluster_.oracle_.enter(page, true);
  change(*line, page);
  const bool both = random_.one_in(2) ? write(page + 1) : read(page + 1, Intent::kRead);
  end_exclusive(*line, page);
  return both;
}

bool User::read_optimistically(int page) {
  Line* line = member_.directory.lines[size_t(page)];
  uint64_t token;
  if (!line || !line->begin_optimistic(id(page), &token)) return false;
  uint64_t seen[kWords];
  for (int i = 0; i < kWords; i++) {
    seen[i] = word(*line, i);
    scheduler()->yield();
  }
  if (!line->validate(token)) return false;
  cluster_.oracle_.read(page, seen[0]);
  for (uint64_t s : seen) cluster_.oracle_.torn(page, seen[0], s);
  think();
  if (!random_.one_in(2) || !session_.try_upgrade(*line, id(page), token)) return true;
  cluster_.oracle_.enter(page, true);
  if (word(*line, 0) != seen[0])
    object(Checker::kLastWrite, "page %d was upgraded at another value than was read", page);
  change(*line, page);
  end_exclusive(*line, page);
  return true;
}

// For a transaction's end: the node keeps the page, latched or not.
bool User::hold(int page) {
  Line* line = member_.line(session_, page);
  const bool exclusive = random_.one_in(2);
  if (!line || !lock(*line, page, exclusive, Intent::kRead)) return false;
  cluster_.oracle_.enter(page, exclusive);
  look(*line, page);
  session_.hold(*line, exclusive);
  exclusive ? end_exclusive(*line, page) : end_shared(*line, page);
  think();
  if (session_.try_lock_shared(*line, id(page))) {
    cluster_.oracle_.enter(page, false);
    look(*line, page);
    end_shared(*line, page);
  }
  session_.drop_hold(*line, exclusive);
  return true;
}

void User::try_latch(int page) {
  Line* line = member_.directory.lines[size_t(page)];
  if (!line) return;
  const bool exclusive = random_.one_in(2);
  if (!(exclusive ? session_.try_lock_exclusive(*line, id(page)) : session_.try_lock_shared(*line, id(page)))) return;
  cluster_.oracle_.enter(page, exclusive);
  look(*line, page);
  exclusive ? end_exclusive(*line, page) : end_shared(*line, page);
}

// What a peer's transaction holds is seen as it was at some moment of the call (coherence.copy-owns-nothing).
void User::look_once(int page) {
  Line* line = member_.line(session_, page);
  if (!line) return;
  const uint64_t before = cluster_.oracle_.value(page);
  ReadAccess how;
  if (!waited([&] { return session_.begin_read(*line, id(page), &how); })) return;
  if (how == ReadAccess::kShared) {
    cluster_.oracle_.enter(page, false);
    look(*line, page);
    cluster_.oracle_.leave(page, false);
  } else {
    const uint64_t seen = word(*line, 0);
    cluster_.oracle_.read_copy(page, before, seen);
    for (int i = 1; i < kWords; i++) cluster_.oracle_.torn(page, seen, word(*line, i));
  }
  session_.end_read(*line, how);
}

template <class Wait>
Status User::waited(Wait wait) {
  waiting_.since = scheduler()->now();
  const Status ok = wait();
  over_ |= !ok && ok.error() == Errc::kFenced;
  cluster_.waited(waiting_, over_);
  return ok;
}

Status User::lock(Line& line, int page, bool exclusive, Intent intent) {
  return waited([&] {
    return exclusive ? session_.lock_exclusive(line, id(page)) : session_.lock_shared(line, id(page), intent);
  });
}

void User::end_exclusive(Line& line, int page) {
  cluster_.oracle_.leave(page, true);
  session_.unlock_exclusive(line);
}

void User::end_shared(Line& line, int page) {
  cluster_.oracle_.leave(page, false);
  session_.unlock_shared(line);
}

uint64_t User::word(const Line& line, int i) const {
  uint64_t value;
  memcpy(&value, member_.node->frame(line) + kWordAt[i], sizeof value);
  return value;
}

void User::look(const Line& line, int page) {
  const uint64_t first = word(line, 0);
  cluster_.oracle_.read(page, first);
  for (int i = 1; i < kWords; i++) {
    scheduler()->yield();
    cluster_.oracle_.torn(page, first, word(line, i));
  }
}

void User::change(Line& line, int page) {
  look(line, page);
  cluster_.oracle_.read(page, word(line, 0));
  const uint64_t value = cluster_.oracle_.write(page);
  const Lsn lsn{++member_.horizon.written};
  for (int i = 0; i < kWords; i++) {
    memcpy(member_.node->frame(line) + kWordAt[i], &value, sizeof value);
    uint64_t mask[2] = {0, 0};
    mask[kWordAt[i] / 64 / 64] = uint64_t{1} << kWordAt[i] / 64 % 64;
    line.note_change(mask, lsn, 1);
    scheduler()->yield();
  }
  cluster_.redo_.append(member_.id, page, value);
  cluster_.oracle_.logged(page);
}

void User::think() { scheduler()->sleep(random_.below(options_.think_ns_max)); }

}  // namespace sim
