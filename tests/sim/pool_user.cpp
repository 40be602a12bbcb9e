#include "pool_user.hpp"

#include <cstring>

namespace sim {

using bufmgr::ExclusiveGuard, bufmgr::MiniTransaction, bufmgr::OptimisticGuard, bufmgr::PageHeader, bufmgr::PageType;

namespace {

constexpr uint16_t kFirstUser = 2;                  // the workers have the sessions before
constexpr uint32_t kSmall = 256 + 8 * kFormer;      // of redo, as far as it is known before
constexpr uint32_t kFillAt = 4'160, kFill = 4'000;  // between the words

}  // namespace

PoolUser::PoolUser(PoolCluster& cluster, PoolMember& member, int number)
    : cluster_(cluster),
      options_(cluster.options_),
      random_(scheduler()->random()),
      chance_(cluster.options_.interrupt_one_in),
      pool_(*member.pool),
      session_(pool_.attach(SessionId{uint16_t(kFirstUser + number)}, chance_, member.log)),
      waiting_(*cluster.waiting_[size_t(member.id.value * options_.threads + number)]) {}

template <class Wait>
auto PoolUser::waited(Wait wait) {
  waiting_.since = scheduler()->now();
  auto got = wait();
  waiting_.since = 0;
  expect(got.error());
  return got;
}

void PoolUser::work(int operations) {
  for (int i = 0; i < operations && !over_; i++) {
    one_operation();
    think();
  }
}

void PoolUser::one_operation() {
  // A quarter of the work is on one page.
  const int page = random_.one_in(4) ? 0 : int(random_.below(cluster_.pages_.size()));
  if (random_.below(100) < options_.writes_percent)
    return options_.two_pages && random_.one_in(4) ? write_two(page) : write(page);
  switch (random_.below(10)) {
    case 0:
      return read(page, Intent::kRead);
    case 1:
      return copy(page);
    case 2:
      return read(page, Intent::kWrite);
    case 3:
    case 4:
      return read_optimistically(page);
    case 5:
      return upgrade(page);
    case 6:
      return copy(page);
    case 7:
      return options_.holds ? hold(page) : copy(page);
    case 8:
      return try_latch(page);
    case 9:
      return abort_in_the_middle(page);
  }
}

void PoolUser::read(int page, Intent intent) {
  auto guard = waited([&] { return pool_.fix_shared(*session_, id(page), intent); });
  if (!guard) return;
  enter(page, false);
  look(*guard, page);
  if (random_.one_in(4)) guard->set_hint(kHintAt, uint64_t(page + 1) << 32 | ++hints_);
  think();
  look(*guard, page);
  leave(page, false);
}

void PoolUser::write(int page) {
  MiniTransaction mini(pool_, *session_);
  if (!waited([&] { return mini.reserve(kSmall); })) return;
  auto guard = waited([&] { return pool_.fix_exclusive(*session_, id(page)); });
  if (!guard) return;
  enter(page, true);
  change(mini, *guard, page);
  commit(mini, {page});
  look(*guard, page);
  leave(page, true);
}

// In one order (guards.ordered-waits), changed together.
void PoolUser::write_two(int page) {
  const int next = page + 1;
  if (next >= int(cluster_.pages_.size())) return write(page);
  MiniTransaction mini(pool_, *session_);
  if (!waited([&] { return mini.reserve(2 * kSmall); })) return;
  auto one = waited([&] { return pool_.fix_exclusive(*session_, id(page)); });
  if (!one) return;
  enter(page, true);
  session_->next_wait(bufmgr::WaitOrder::kById);
  auto two = waited([&] { return pool_.fix_exclusive(*session_, id(next)); });
  if (!two) return leave(page, true);
  enter(next, true);
  change(mini, *one, page);
  change(mini, *two, next);
  commit(mini, {page, next});
  leave(next, true);
  two->release();
  leave(page, true);
}

OptimisticGuard PoolUser::look_at(int page) {
  if (random_.one_in(2)) return pool_.peek(*session_, id(page));
  auto guard = waited([&] { return pool_.fix_optimistic(*session_, id(page)); });
  return guard ? *guard : OptimisticGuard();
}

bool PoolUser::read_words(const OptimisticGuard& guard, int page, uint64_t* value) {
  uint64_t seen[kValues];
  for (int i = 0; i < kValues; i++) {
    seen[i] = guard.word(kValueAt[i]);
    scheduler()->yield();
  }
  const uint64_t hint = guard.word(kHintAt);
  if (!guard.validate()) return false;
  cluster_.oracle_.read(page, seen[0]);
  for (uint64_t s : seen) cluster_.oracle_.torn(page, seen[0], s);
  check_hint(hint, page);
  *value = seen[0];
  return true;
}

void PoolUser::read_optimistically(int page) {
  uint64_t value;
  if (const OptimisticGuard guard = look_at(page)) (void)read_words(guard, page, &value);
}

void PoolUser::upgrade(int page) {
  MiniTransaction mini(pool_, *session_);
  if (!waited([&] { return mini.reserve(kSmall); })) return;
  const OptimisticGuard seen = look_at(page);
  uint64_t value;
  if (!seen || !read_words(seen, page, &value)) return;
  think();
  auto guard = waited([&] { return pool_.upgrade(*session_, seen); });
  if (!guard) return;
  enter(page, true);
  if (bufmgr::load_page_word(guard->bytes() + kValueAt[0]) != value)
    object(Checker::kLastWrite, "page %d was upgraded at another value than was read", page);
  change(mini, *guard, page);
  commit(mini, {page});
  leave(page, true);
}

void PoolUser::copy(int page) {
  alignas(8) std::byte bytes[kPageSize] = {};
  uint64_t before = cluster_.oracle_.value(page);
  const size_t taken_back = cluster_.taken_back_;
  const bool parts = random_.one_in(2);
  if (!waited([&] {
        return parts ? pool_.copy_parts(*session_, id(page), bytes, random_.one_in(2) ? Intent::kRead : Intent::kWrite)
                     : pool_.copy_page(*session_, id(page), bytes);
      }))
    return;
  uint64_t seen[kValues];
  for (int i = 0; i < kValues; i++) memcpy(&seen[i], bytes + kValueAt[i], sizeof seen[i]);
  if (cluster_.taken_back_ != taken_back) before = 0;  // perhaps it was that value
  cluster_.oracle_.read_copy(page, before, seen[0]);
  for (int i = 1; i < kValues; i++) cluster_.oracle_.torn(page, seen[0], seen[i]);
  uint64_t hint;
  memcpy(&hint, bytes + kHintAt, sizeof hint);
  check_hint(hint, page);
}

// For a transaction's end: the node keeps the page, latched or not.
void PoolUser::hold(int page) {
  const bool exclusive = random_.one_in(2);
  Line* line = nullptr;
  auto held = [&](auto guard) {
    if (!guard) return;
    enter(page, exclusive);
    look(*guard, page);
    line = pool_.find(id(page));
    if (line == nullptr) return object(Checker::kLeaks, "page %d is latched, and not in the frame table", page);
    session_->coherence().hold(*line, exclusive);
    leave(page, exclusive);
  };
  if (exclusive)
    held(waited([&] { return pool_.fix_exclusive(*session_, id(page)); }));
  else
    held(waited([&] { return pool_.fix_shared(*session_, id(page)); }));
  if (!line) return;
  think();
  if (auto again = pool_.try_shared(*session_, id(page))) {
    enter(page, false);
    look(*again, page);
    leave(page, false);
  }
  session_->coherence().drop_hold(*line, exclusive);
}

void PoolUser::try_latch(int page) {
  if (random_.one_in(2)) {
    auto guard = pool_.try_exclusive(*session_, id(page));
    if (!guard) return;
    enter(page, true);
    look(*guard, page);
    leave(page, true);
  } else {
    auto guard = pool_.try_shared(*session_, id(page));
    if (!guard) return;
    enter(page, false);
    look(*guard, page);
    leave(page, false);
  }
}

// What an error leaves behind is the session's to release.
void PoolUser::abort_in_the_middle(int page) {
  MiniTransaction mini(pool_, *session_);
  if (!waited([&] { return mini.reserve(kSmall); })) return;
  auto one = waited([&] { return pool_.fix_shared(*session_, id(page)); });
  if (!one) return;
  enter(page, false);
  Result<ExclusiveGuard> two = Errc::kNotFound;
  if (const int next = page + 1; next < int(cluster_.pages_.size())) {
    session_->next_wait(bufmgr::WaitOrder::kById);
    two = waited([&] { return pool_.fix_exclusive(*session_, id(next)); });
    if (two) enter(next, true), look(*two, next), leave(next, true);
  }
  leave(page, false);
  session_->release_all();
}

void PoolUser::expect(Errc error) {
  over_ |= error == Errc::kFenced;
  switch (error) {
    case Errc::kInterrupted:
      if (options_.interrupt_one_in) return;
      break;
    case Errc::kFenced:
      if (cluster_.fenced()) return;
      break;
    case Errc::kHeld:
      if (options_.holds) return;
      break;
    case Errc::kOk:
    case Errc::kRestart:  // of upgrade()
      return;
    default:
      break;
  }
  object(Checker::kProgress, "a page could not be had: %s", coherence::errc_name(error));
}

template <class Guard>
void PoolUser::look(const Guard& guard, int page) {
  const uint64_t first = bufmgr::load_page_word(guard.bytes() + kValueAt[0]);
  cluster_.oracle_.read(page, first);
  for (int i = 1; i < kValues; i++) {
    scheduler()->yield();
    cluster_.oracle_.torn(page, first, bufmgr::load_page_word(guard.bytes() + kValueAt[i]));
  }
  check_hint(bufmgr::load_page_word(guard.bytes() + kHintAt), page);
  check_former(guard.bytes(), page);
  if (guard.header().version != cluster_.versions_[size_t(page)])
    object(Checker::kLastWrite, "page %d is of version %lu after %lu changes", page, guard.header().version,
           cluster_.versions_[size_t(page)]);
}

// Hints may come and go, but never to another page.
void PoolUser::check_hint(uint64_t hint, int page) {
  if (hint != 0 && hint >> 32 != uint64_t(page) + 1)
    object(Checker::kLastWrite, "page %d has a hint of page %lu", page, (hint >> 32) - 1);
}

// What was moved within the page is where it belongs.
void PoolUser::check_former(const std::byte* bytes, int page) {
  const std::vector<uint64_t>& all = cluster_.former_[size_t(page)];
  for (size_t i = 0; i < kFormer; i++) {
    const uint64_t value = bufmgr::load_page_word(bytes + kFormerAt + 8 * i);
    const uint64_t right = i < all.size() ? all[all.size() - 1 - i] : 0;
    if (value != right)
      object(Checker::kLastWrite, "page %d: the value %zu changes ago was %lu, and the page says %lu", page, i + 1,
             right, value);
  }
}

void PoolUser::change(MiniTransaction& mini, ExclusiveGuard& guard, int page) {
  look(guard, page);
  mini.join(guard);
  if (guard.header().type == PageType::kUnused) {
    mini.format(guard, PageType::kHeap, 1);
    mini.set(guard, offsetof(PageHeader, lower), kLower);
    mini.set(guard, offsetof(PageHeader, upper), kUpper);
  }
  const uint64_t before = cluster_.oracle_.value(page);
  const uint64_t value = cluster_.oracle_.write(page);
  cluster_.oracle_.logged(page);  // take_back() knows what has not taken place
  cluster_.changes(page, value, before);
  mini.move(guard, kFormerAt + 8, kFormerAt, 8 * (kFormer - 1));
  mini.set(guard, kFormerAt, before);
  for (uint32_t at : kValueAt) {
    mini.set(guard, at, value);
    scheduler()->yield(FaultPoint::kChanging);
  }
  if (random_.one_in(options_.large_one_in)) memset(mini.edit(guard, kFillAt, kFill), int(value & 0xff), kFill);
}

void PoolUser::commit(MiniTransaction& mini, std::initializer_list<int> pages) {
  for (int page : pages) cluster_.versions_[size_t(page)]++;
  mini.commit();
}

void PoolUser::think() { scheduler()->sleep(random_.below(options_.think_ns_max)); }

}  // namespace sim
