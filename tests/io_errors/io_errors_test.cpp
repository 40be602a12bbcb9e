// Each operation on a pool's files, with each of its calls of the C library failing in turn: its caller hears of it,
// with the file's name and the reason; nothing that was acknowledged is lost; and the operation works when the disk
// does.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "coherence/region/pool_outline.hpp"
#include "coherence/region/saved_file.hpp"
#include "coherence/region/saved_pages.hpp"
#include "coherence/session.hpp"
#include "place.hpp"
#include "recovery/checkpoint.hpp"

namespace gcl_test {
namespace {

// What became of an operation in its process.
struct Ended {
  bool returned, ok;
  char text[600];
};

struct Operation {
  const char* name;
  void (*prepare)(Place&);
  Status (*act)(Place&, Problem*);  // calls arm() first
  // Afterwards no call fails.  `done`: it was acknowledged.
  void (*check)(Place&, bool done);
  bool may_end = false;                 // the process, rather than go on
  const char* may_be_unread = nullptr;  // such a file: it is written anew then
};

std::ostream& operator<<(std::ostream& out, const Operation& operation) { return out << operation.name; }

void nothing(Place&, bool) {}

// --- the journal

Status append_third(Place& place, Problem* why) {
  place.arm();
  return place.append("three", why);
}

void check_appended(Place& place, bool done) {
  std::vector<std::string> expected{"one", "two"};
  if (done) expected.emplace_back("three");
  // What was cut off may be on the disk still, whatever a later sync says.
  const bool sync_failed = place.calls->call() == "fsync" && place.calls->file().ends_with(".journal");
  EXPECT_TRUE(!sync_failed || place.goes_on || place.journal_file() != place.first_journal) << "it is believed";
  if (place.goes_on && place.entries().size() == 3 && !done) expected.emplace_back("three");  // it could not be cut off
  EXPECT_EQ(place.entries(), expected);
  place.require(place.append("four", &place.problem).error());
  expected.emplace_back("four");
  EXPECT_EQ(place.entries(), expected);
}

Status visit_journal(Place& place, Problem* why) {
  std::vector<std::string> found;
  place.arm();
  const Status visited = place.entries(&found, why);
  return visited && found.size() != 2 ? Status(why->set(Errc::kCorrupt, "%zu entries", found.size())) : visited;
}

Status rewrite_journal(Place& place, Problem* why) {
  place.arm();
  const auto keep = [](uint32_t*, std::vector<std::byte>* bytes) { bytes->resize(1); };
  return PoolJournal::rewrite(place.durable.c_str(), place.journaled->pool_id(), place.journaled->saves(), keep, why);
}

void check_rewritten(Place& place, bool done) {
  const std::vector<std::string> before{"one", "two"}, after{"o", "t"};
  const auto found = place.entries();
  EXPECT_TRUE(!done || found == after);
  EXPECT_TRUE(found == before || found == after);
  place.require(place.append("four", &place.problem).error());
  EXPECT_EQ(place.entries().size(), 3u);
}

// --- checkpoints

recovery::Checkpoint checkpoint_of(uint64_t number) { return {.pool_id = 7, .saves = 3, .number = number}; }

Status write_next_checkpoint(const Place& place, uint64_t number, std::byte with, Problem* why) {
  auto there = recovery::read_checkpoint(place.durable.c_str(), 7, 3, why);
  if (!there) return there.error();
  auto delta = recovery::DeltaPages::open(place.durable.c_str(), there->pages, why);
  if (!delta) return delta.error();
  std::vector<std::byte> image(kPageSize, with);
  GCL_TRY((*delta)->write(kPage, image.data(), why));
  auto pages = (*delta)->finish(why);
  if (!pages) return pages.error();
  recovery::Checkpoint next = checkpoint_of(number);
  next.pages = pages.take();
  return recovery::write_checkpoint(place.durable.c_str(), next, why);
}

Status read_checkpoint(const Place& place, uint64_t* number, std::byte* first, Problem* why) {
  const auto there = recovery::read_checkpoint(place.durable.c_str(), 7, 3, why);
  if (!there) return there.error();
  *number = there->number;
  const auto delta = recovery::DeltaPages::open(place.durable.c_str(), there->pages, why);
  if (!delta) return delta.error();
  std::vector<std::byte> image(kPageSize);
  const auto read = (*delta)->read(kPage, image.data(), why);
  *first = image[0];
  return read.error();
}

void begin_checkpoints(Place& place) { place.require(write_next_checkpoint(place, 1, kOld, &place.problem).error()); }

Status second_checkpoint(Place& place, Problem* why) {
  place.arm();
  return write_next_checkpoint(place, 2, kNew, why);
}

void check_checkpoint(Place& place, bool done) {
  uint64_t number = 0;
  std::byte first{};
  place.require(read_checkpoint(place, &number, &first, &place.problem).error());
  EXPECT_TRUE(!done || number == 2);
  EXPECT_EQ(first, number == 2 ? kNew : kOld);
  place.require(write_next_checkpoint(place, 3, kNew, &place.problem).error());
}

Status look_at_checkpoint(Place& place, Problem* why) {
  uint64_t number = 0;
  std::byte first{};
  place.arm();
  GCL_TRY(read_checkpoint(place, &number, &first, why));
  return number == 1 && first == kOld ? Status() : Status(why->set(Errc::kCorrupt, "another checkpoint"));
}

// --- the pool

void nothing_before(Place&) {}
void make_pool(Place& place) { place.make_pool(); }

Status create_pool(Place& place, Problem* why) {
  PoolSpec spec{.nodes_max = 4, .memory_nodes = 2, .compatibility = "test=1\n"};
  spec.region_bytes[coherence::kRegionPages] = spec.further_pages_bytes = kPages * kPageSize;
  place.arm();
  return LocalPool::create(place.files(), spec, why).error();
}

void check_created(Place& place, bool done) {
  if (done) return void(place.open());
  EXPECT_TRUE(place.goes_on || !fs::exists(place.path)) << "half a pool is there";
  if (place.goes_on) place.remove_pool();  // nothing could be removed
  place.make_pool();
}

Status open_pool(Place& place, Problem* why) {
  place.arm();
  const auto pool = LocalPool::open(place.files(), why);
  if (!pool) return pool.error();
  place.calls->end();
  const bool same = *gcl_test::pool_bytes(**pool, kPage) == kOld;
  return same ? Status() : Status(why->set(Errc::kCorrupt, "the pool has another content"));
}

void check_content(Place& place, bool) { EXPECT_EQ(place.content(), kOld); }

void make_and_lose_pool(Place& place) {
  place.make_pool();
  place.lose_memory();
}

Status join_pool(Place& place, Problem* why) {
  const auto pool = place.open();
  place.arm();
  auto node = Place::try_to_join(*pool, why);
  place.calls->end();
  if (!node) return node.error();
  coherence::Session session(**node, coherence::SessionId{0}, nullptr);
  bool last = false;
  return (*node)->leave(session, &last, why);
}

Status leave_pool(Place& place, Problem* why) {
  const auto pool = place.open();
  const auto node = place.join(*pool);
  coherence::Session session(*node, coherence::SessionId{0}, nullptr);
  bool last = false;
  place.arm();
  return node->leave(session, &last, why);
}

// Whatever became of the copy, the pool in memory is whole, and can be saved.
void check_saved(Place& place, bool done) {
  if (!done) place.require(LocalPool::save_again(place.files(), &place.problem).error());
  place.lose_memory();
  EXPECT_EQ(place.content(), kOld);
}

Status save_pool(Place& place, Problem* why) {
  place.arm();
  return LocalPool::save_again(place.files(), why);
}

Status add_memory_node(Place& place, Problem* why) {
  place.arm();
  const auto added = LocalPool::add_memory_node(place.files(), kPages * kPageSize, why);
  if (!added) return added.error();
  return added->saved ? Status() : Status(Errc::kSystem);
}

void check_memory_node(Place& place, bool done) {
  const uint32_t count = place.open()->memory_nodes();
  EXPECT_TRUE(count == 2 || count == 3);
  EXPECT_TRUE(!done || count == 3);
  place.require(LocalPool::add_memory_node(place.files(), kPages * kPageSize, &place.problem).error());
  EXPECT_EQ(place.open()->memory_nodes(), count + 1);
  place.require(LocalPool::save_again(place.files(), &place.problem).error());
  check_saved(place, true);
}

void make_and_lose_pool_in_use(Place& place) {
  place.make_pool();
  place.lose_memory_in_use();
}

Status restart_pool(Place& place, Problem* why) {
  bool whole = false;
  place.arm();
  GCL_TRY(LocalPool::begin_restart(place.files(), &whole, why));
  return whole ? Status() : LocalPool::end_restart(place.files(), 100, why);
}

void check_restarted(Place& place, bool done) {
  place.fails_at = 0;
  if (!done) place.require(restart_pool(place, &place.problem).error());
  place.calls->end();
  EXPECT_EQ(place.content(), kOld);
}

// A save whose files are whole, and not in their places: the copy before says "in use".
void make_unplaced_pool(Place& place) {
  place.make_pool();
  place.fill(kNew);
  {
    const auto pool = place.open();
    const auto node = place.join(*pool);
    for (const char* part : {"", ".mem1"}) fs::copy_file(place.durable + part, place.directory + "/old" + part);
    coherence::Session session(*node, coherence::SessionId{0}, nullptr);
    bool last = false;
    place.require(node->leave(session, &last, &place.problem).error());
  }
  for (const char* part : {"", ".mem1"}) {
    fs::rename(place.durable + part, place.durable + ".next" + part);
    fs::rename(place.directory + "/old" + part, place.durable + part);
  }
}

Status join_unplaced(Place& place, Problem* why) {
  const auto pool = LocalPool::open(place.files(), why);
  if (!pool) return pool.error();
  place.arm();
  auto node = Place::try_to_join(**pool, why);
  place.calls->end();
  if (!node) return node.error();
  coherence::Session session(**node, coherence::SessionId{0}, nullptr);
  bool last = false;
  return (*node)->leave(session, &last, why);
}

// The copy of the last save is there, under one of its names.
void check_placed(Place& place, bool done) {
  if (done) return;
  place.lose_memory();
  place.restart();
  EXPECT_EQ(place.content(), kNew);
}

// Nothing is lost that was in memory; where its node counts as dead, all is in the copy.
void check_left(Place& place, bool done) {
  if (!done && LocalPool::open(place.files(), &place.problem)) {
    const auto pool = place.open();
    const auto node = place.join(*pool);
    coherence::Session session(*node, coherence::SessionId{0}, nullptr);
    bool last = false;
    place.require(node->leave(session, &last, &place.problem).error());
  }
  place.lose_memory();
  place.restart();
  EXPECT_EQ(place.content(), kOld);
}

Status verify_copy(Place& place, Problem* why) {
  const auto damage = std::make_unique<coherence::Damage>();
  place.arm();
  return coherence::verify_saved(place.durable.c_str(), damage.get(), why);
}

Status read_saved_page(Place& place, Problem* why) {
  place.arm();
  const auto pages = coherence::SavedPages::open(place.durable.c_str(), why);
  if (!pages) return pages.error();
  std::vector<std::byte> image(kPageSize);
  GCL_TRY((*pages)->read(kPage, image.data(), why));
  return image[0] == kOld ? Status() : Status(why->set(Errc::kCorrupt, "another page"));
}

Status outline(Place& place, Problem* why) {
  place.arm();
  return coherence::outline_pool(place.durable.c_str(), why).error();
}

Status inspect(Place& place, Problem* why) {
  place.arm();
  return LocalPool::inspect(place.files(), why) == LocalPool::Condition::kClean ? Status() : Status(Errc::kSystem);
}

const Operation kOperations[] = {
    {"JournalAppend", [](Place& p) { p.begin_journal(); }, append_third, check_appended, true},
    {"JournalVisit", [](Place& p) { p.begin_journal(); }, visit_journal, nothing},
    {"JournalRewrite", [](Place& p) { p.begin_journal(); }, rewrite_journal, check_rewritten},
    {"CheckpointWrite", begin_checkpoints, second_checkpoint, check_checkpoint},
    {"CheckpointRead", begin_checkpoints, look_at_checkpoint, nothing},
    {"PoolCreate", nothing_before, create_pool, check_created},
    {"PoolOpen", make_pool, open_pool, check_content},
    {"PoolLoad", make_and_lose_pool, open_pool, check_content},
    {"PoolSave", make_pool, save_pool, check_saved},
    {"NodeJoin", make_pool, join_pool, check_saved},
    {"NodeJoinUnplaced", make_unplaced_pool, join_unplaced, check_placed},
    {"LastNodeLeaves", make_pool, leave_pool, check_left},
    {"MemoryNodeAdd", make_pool, add_memory_node, check_memory_node, true, "durable"},
    {"Restart", make_and_lose_pool_in_use, restart_pool, check_restarted},
    {"CopyVerify", make_pool, verify_copy, nothing},
    {"SavedPage", make_pool, read_saved_page, nothing},
    {"Outline", make_pool, outline, nothing},
    {"Inspect", make_pool, inspect, check_content},
};

// Calls whose failure is no error of the operation, and why.
bool may_fail(const std::string& call, const std::string& file) {
  if (call == "unlink")
    return true;  // what is left over counts for nothing (pool.journal-until-saved, pool.saved-beside)
  if (call == "fallocate" && file.find(" (deleted)") != std::string::npos) return true;  // memory is given back later
  if (file.ends_with(".growing")) return true;                                           // what is left over, likewise
  return file.find(".flight") != std::string::npos;  // without a flight recorder a node works as well
}

class IoErrors : public testing::TestWithParam<Operation> {
 protected:
  // In a process of its own, which may end.
  static Ended act(Place& place, const Operation& operation) {
    auto* const ended =
        static_cast<Ended*>(mmap(nullptr, sizeof(Ended), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      (void)!freopen(place.said.c_str(), "w", stderr);
      Problem why;
      const Status done = operation.act(place, &why);
      place.calls->end();
      ended->ok = done.ok();
      snprintf(ended->text, sizeof ended->text, "%s", why.text);
      ended->returned = true;
      fflush(nullptr);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    place.calls->end();
    Ended found = *ended;
    munmap(ended, sizeof *ended);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) ADD_FAILURE() << "it hangs";
    if (!found.returned) said(place, found.text, sizeof found.text);
    fs::remove(place.said);
    return found;
  }

  static bool is_unread(const Place& place) {
    const std::string file = fs::path(place.calls->file()).filename();
    return GetParam().may_be_unread && file.starts_with(GetParam().may_be_unread) &&
           (place.calls->call() == "open" || place.calls->call() == "read");
  }

  static void said(const Place& place, char* to, size_t bytes) {
    FILE* const in = fopen(place.said.c_str(), "r");
    to[in ? fread(to, 1, bytes - 1, in) : 0] = 0;
    if (in) fclose(in);
  }

  // The file may be told by the name that it is to get.  Where more calls fail, it may be another one's.
  static void expect_told(const Place& place, const Ended& ended) {
    const std::string text = ended.text, name = fs::path(place.calls->file()).filename();
    const std::string file = name.ends_with(".new") ? name.substr(0, name.size() - 4) : name;
    const bool directory = place.calls->file() == place.directory && text.find("directory") != std::string::npos;
    EXPECT_NE(text.find(strerror(EIO)), std::string::npos) << "the reason is not told: " << text;
    const bool in_memory = file.starts_with("pool") && text.find("into memory") != std::string::npos;
    EXPECT_TRUE(place.goes_on || directory || in_memory || text.find(file) != std::string::npos)
        << "the file is not told: " << text;
  }

  // Call number `fails_at` fails.  False: there are not so many.
  bool play(uint64_t fails_at, bool goes_on) {
    const Operation& operation = GetParam();
    Place place;
    place.fails_at = fails_at;
    place.goes_on = goes_on;
    operation.prepare(place);
    if (place.problem.text[0] != 0) return false;
    const Ended ended = act(place, operation);
    const bool done = ended.returned && ended.ok;
    EXPECT_TRUE(fails_at != 0 || done) << ended.text;
    if (fails_at != 0 && !place.calls->has_failed()) return false;
    SCOPED_TRACE(testing::Message() << place.calls->call() << " number " << fails_at << " of "
                                    << fs::path(place.calls->file()).filename() << " fails"
                                    << (goes_on ? ", and all behind it" : ""));
    if (fails_at != 0 && !done) expect_told(place, ended);
    EXPECT_TRUE(ended.returned || operation.may_end) << "the process ended: " << ended.text;
    EXPECT_TRUE(fails_at == 0 || !done || may_fail(place.calls->call(), place.calls->file()) || is_unread(place))
        << "nobody hears of it";
    operation.check(place, done);
    return true;
  }
};

TEST_P(IoErrors, AreToldAndLoseNothing) {
  ASSERT_TRUE(play(0, false));
  uint64_t calls = 0;
  while (play(calls + 1, false)) ++calls;
  for (uint64_t n = 1; n <= calls; ++n) play(n, true);
  printf("%lu calls\n", calls);
  EXPECT_GT(calls, 1u);
}

INSTANTIATE_TEST_SUITE_P(Files, IoErrors, testing::ValuesIn(kOperations),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gcl_test
