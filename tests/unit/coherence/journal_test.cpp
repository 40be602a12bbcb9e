// The journal beside the durable copy: what is cut off, what is damage, and what counts (pool.journal-*).
#include "coherence/region/pool_journal.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "cluster.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/processes.hpp"

namespace coherence {

namespace fs = std::filesystem;

using Patience = PoolJournal::Patience;

class Journal : public ClusterTest {
 protected:
  struct Entry {
    uint32_t kind;
    std::string text;
    bool operator==(const Entry&) const = default;
  };
  using Entries = std::vector<Entry>;
  static constexpr uint64_t kHeadBytes = 40;

  std::string file() const { return BesideCopy(durable.c_str(), BesideCopy::kJournal).text; }
  Status append(uint32_t kind, const std::string& text) {
    auto journal = PoolJournal::open(*pool, Patience::kTry, &problem);
    if (!journal) return journal.error();
    return (*journal)->append(kind, std::as_bytes(std::span(text)), &problem);
  }
  void note(uint32_t kind, const std::string& text) {
    const Status noted = append(kind, text);
    ASSERT_TRUE(noted.ok()) << errc_name(noted.error()) << problem.text;
  }
  Status read(uint64_t pool_id, uint64_t saves, Entries* to) {
    to->clear();
    const auto visit = [&](uint32_t kind, std::span<const std::byte> bytes) -> Status {
      to->push_back({kind, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
      return {};
    };
    return PoolJournal::visit(durable.c_str(), pool_id, saves, visit, &problem);
  }
  Entries entries(uint64_t saves) {
    Entries found;
    const Status read_all = read(pool->pool_id(), saves, &found);
    EXPECT_TRUE(read_all.ok()) << errc_name(read_all.error()) << problem.text;
    return found;
  }
  Entries entries() { return entries(pool->saves()); }
  std::string bytes() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void set_bytes(const std::string& all) const { std::ofstream(file(), std::ios::binary | std::ios::trunc) << all; }
  void expect_damaged(const std::string& why) {
    Entries found;
    EXPECT_EQ(read(pool->pool_id(), pool->saves(), &found).error(), Errc::kCorrupt) << why;
    EXPECT_NE(strstr(problem.text, ".journal is damaged at byte"), nullptr) << problem.text;
    const std::string before = bytes();
    EXPECT_EQ(append(9, "more").error(), Errc::kCorrupt) << why;
    EXPECT_EQ(bytes(), before) << "it is left as it is: " << why;
  }
  void expect_cut_off(const std::string& torn, const Entries& before, const std::string& why) {
    set_bytes(torn);
    EXPECT_EQ(entries(), before) << why;
    note(9, "next");
    Entries after = before;
    after.push_back({9, "next"});
    EXPECT_EQ(entries(), after) << why;
  }
  void join_and_leave(Errc expected = Errc::kOk) {
    TestNode& node = add_node(16, false);
    {
      Session session(*node.node, SessionId{0}, nullptr);
      bool last = false;
      EXPECT_EQ(node.node->leave(session, &last, &problem).error(), expected) << problem.text;
    }
    nodes.clear();
  }
  Problem problem;
};

TEST_F(Journal, EntriesComeBackInOrder) {
  EXPECT_EQ(entries(), Entries{}) << "no file is no entry";
  Entries written{{3, "a"}, {1, ""}, {2, std::string((3 << 20) + 5, 'x')}, {3, "a"}, {~0u, "last"}};
  for (const Entry& entry : written) note(entry.kind, entry.text);
  EXPECT_EQ(entries(), written);
  {
    auto one = PoolJournal::open(*pool, Patience::kTry, &problem);
    ASSERT_TRUE(one.ok()) << problem.text;
    for (const char* text : {"two", "in one go"}) {
      EXPECT_TRUE((*one)->append(7, std::as_bytes(std::span(std::string_view(text))), &problem).ok());
      written.push_back({7, text});
    }
  }
  EXPECT_EQ(entries(), written);
}

TEST_F(Journal, AVisitorsErrorEndsTheWalk) {
  for (const char* text : {"a", "b", "c"}) note(1, text);
  int visited = 0;
  const auto visit = [&](uint32_t, std::span<const std::byte>) {
    return ++visited == 2 ? Status(Errc::kIncompatible) : Status();
  };
  EXPECT_EQ(PoolJournal::visit(durable.c_str(), pool->pool_id(), pool->saves(), visit, &problem).error(),
            Errc::kIncompatible);
  EXPECT_EQ(visited, 2);
}

// pool.journal-version-refused
TEST_F(Journal, AnEntryOfALaterVersionIsNoTornEnd) {
  for (const char* text : {"of this version", "of the next"}) note(1, text);
  const std::string both = bytes();
  const size_t second = kHeadBytes + strlen("of this version");
  std::string later = both;
  ASSERT_EQ(later.substr(second, 8), "GJOURNL1");
  later[second + 7] = '2';
  set_bytes(later);
  Entries found;
  EXPECT_EQ(read(pool->pool_id(), pool->saves(), &found).error(), Errc::kIncompatible);
  const std::string why = ".journal has an entry of version 2 at byte " + std::to_string(second) +
                          ", and version 1 is read here; a later version of gcl wrote it: use that one";
  EXPECT_NE(strstr(problem.text, why.c_str()), nullptr) << problem.text;
  EXPECT_EQ(append(9, "more").error(), Errc::kIncompatible);
  EXPECT_EQ(bytes(), later) << "it is left as it is";
}

// pool.journal-before-effect
TEST_F(Journal, ATornEndIsCutOffWhereverItIs) {
  for (const Entries& before : {Entries{}, Entries{{1, "first"}, {2, ""}, {3, "third"}}}) {
    set_bytes("");
    for (const Entry& entry : before) note(entry.kind, entry.text);
    const size_t sound = bytes().size();
    note(4, "of which some is lost: more than the next one has");
    const std::string whole = bytes();
    for (size_t length = sound; length < whole.size(); ++length)
      expect_cut_off(whole.substr(0, length), before, "cut off at byte " + std::to_string(length));
    // The length is there, and what was written before it is not.
    for (size_t zeros = 1; zeros <= whole.size() - sound; zeros += 3) {
      std::string front = whole, back = whole;
      std::fill_n(front.begin() + long(sound), zeros, '\0');
      expect_cut_off(front, before, "zeros in front: " + std::to_string(zeros));
      std::fill_n(back.rbegin(), zeros, '\0');
      expect_cut_off(back, before, "zeros behind: " + std::to_string(zeros));
    }
    set_bytes(whole);
    EXPECT_EQ(entries().size(), before.size() + 1) << "and nothing is cut off what is whole";
  }
}

TEST_F(Journal, AnEntryThatIsNotTheLastIsDamagedAndNothingIsCutOff) {
  note(1, "first");
  note(2, "");
  note(3, "third");
  const size_t last = bytes().size();
  note(4, "last");
  const std::string whole = bytes();
  for (size_t at = 0; at < last; ++at) {
    std::string flipped = whole;
    flipped[at] = char(flipped[at] ^ (1 << at % 8));
    set_bytes(flipped);
    expect_damaged("byte " + std::to_string(at));
  }
  set_bytes(whole);
  EXPECT_EQ(entries().size(), 4u);
}

// It is looked for in pieces of 1 MB: where two of them meet, too.
TEST_F(Journal, ASoundEntryFarBehindTheDamageIsFound) {
  constexpr uint64_t kPiece = 1 << 20;
  for (uint64_t before = kPiece - 20; before <= kPiece + 4; ++before) {
    set_bytes("");
    note(1, std::string(before - kHeadBytes, 'x'));
    note(2, "sound");
    std::string flipped = bytes();
    flipped[kHeadBytes + 100] = 'y';
    set_bytes(flipped);
    expect_damaged(std::to_string(before) + " bytes before");
  }
}

// pool.journal-until-saved
TEST_F(Journal, OfAnotherPoolOrAnEarlierSaveCountsNothing) {
  note(1, "since this save");
  const Entries all{{1, "since this save"}};
  EXPECT_EQ(entries(pool->saves()), all);
  EXPECT_EQ(entries(pool->saves() - 1), all) << "of a later save than the copy's";
  EXPECT_EQ(entries(pool->saves() + 1), Entries{}) << "of an earlier one";
  Entries found;
  EXPECT_TRUE(read(pool->pool_id() ^ 1, pool->saves(), &found).ok());
  EXPECT_EQ(found, Entries{});
}

TEST_F(Journal, WhatWasNotedBehindASaveThatFailedCountsForTheCopy) {
  note(1, "before");
  const uint64_t copy = pool->saves();
  fs::create_directory(durable + ".next.new");
  join_and_leave(Errc::kSystem);
  fs::remove(durable + ".next.new");
  EXPECT_EQ(pool->saves(), copy + 1);
  note(2, "behind");
  EXPECT_EQ(entries(copy), (Entries{{1, "before"}, {2, "behind"}}));
  EXPECT_EQ(entries(copy + 1), (Entries{{2, "behind"}}));
}

TEST_F(Journal, ASaveForgetsIt) {
  note(1, "before the first");
  join_and_leave();
  EXPECT_FALSE(fs::exists(file()));
  EXPECT_EQ(entries(), Entries{});
  note(2, "before the second");
  pool.reset();
  ASSERT_TRUE(LocalPool::save_again(files(), &problem).ok()) << problem.text;
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(Journal, OneWritesAtATime) {
  auto first = PoolJournal::open(*pool, Patience::kTry, &problem);
  ASSERT_TRUE(first.ok()) << problem.text;
  EXPECT_EQ(append(2, "second").error(), Errc::kBusy);
  EXPECT_TRUE((*first)->append(1, {}, &problem).ok());
  std::atomic<bool> came{false};
  std::thread waits([&] {
    Problem why;
    auto second = PoolJournal::open(*pool, Patience::kWait, &why);
    came = true;
    EXPECT_TRUE(second.ok() && (*second)->append(2, {}, &why).ok()) << why.text;
  });
  EXPECT_FALSE(gcl_test::eventually([&] { return came.load(); }, std::chrono::milliseconds(50)));
  first.take().reset();
  waits.join();
  EXPECT_EQ(entries(), (Entries{{1, ""}, {2, ""}}));
}

// A limit of the file's size stands for a disk that is full.
TEST_F(Journal, WithoutRoomThereIsNoEntry) {
  note(1, "first");
  const uint64_t sound = bytes().size();
  const std::string text(200, 'x');
  const pid_t child = gcl_test::child([&] {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit;
    CHILD_VERIFY(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (uint64_t room = 0; room < kHeadBytes + text.size(); room += 13) {
      limit.rlim_cur = sound + room;
      CHILD_VERIFY(setrlimit(RLIMIT_FSIZE, &limit) == 0);
      CHILD_VERIFY(!append(2, text).ok());
      CHILD_VERIFY(entries() == (Entries{{1, "first"}}) && bytes().size() == sound);
    }
    limit.rlim_cur = sound + kHeadBytes + text.size();
    CHILD_VERIFY(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHILD_VERIFY(append(3, text).ok());
  });
  EXPECT_TRUE(gcl_test::ended_well(child));
  EXPECT_EQ(entries(), (Entries{{1, "first"}, {3, text}}));
}

// What is noted may have any bytes in it, such as those of a ring.
TEST_F(Journal, AnEntryInsideATornOneIsNone) {
  note(1, "first");
  const std::string sound = bytes();
  note(2, "inner");
  note(3, bytes());  // entries as they lie in a file, and the one that would stand there
  note(4, bytes());
  const std::string whole = bytes();
  set_bytes(sound);
  note(2, whole);
  const std::string torn = bytes();
  for (size_t lost : {size_t{1}, whole.size() / 2, whole.size() - 100})
    expect_cut_off(torn.substr(0, torn.size() - lost), {{1, "first"}}, std::to_string(lost) + " bytes are lost");
}

TEST_F(Journal, RewrittenItHasWhatIsKeptAndGoesOn) {
  note(1, "first");
  note(2, std::string(1000, 'x'));
  note(3, "");
  const auto keep = [](uint32_t* kind, std::vector<std::byte>* all) {
    if (*kind != 2) return;
    *kind = 4;
    all->resize(3);
  };
  const size_t before = bytes().size();
  ASSERT_TRUE(PoolJournal::rewrite(durable.c_str(), pool->pool_id(), pool->saves(), keep, &problem).ok())
      << problem.text;
  Entries expected{{1, "first"}, {4, "xxx"}, {3, ""}};
  EXPECT_EQ(entries(), expected);
  EXPECT_EQ(bytes().size(), before - 997);
  note(5, "more");
  expected.push_back({5, "more"});
  EXPECT_EQ(entries(), expected);
  {
    auto held = PoolJournal::open(*pool, Patience::kTry, &problem);
    EXPECT_EQ(PoolJournal::rewrite(durable.c_str(), pool->pool_id(), pool->saves(), keep, &problem).error(),
              Errc::kBusy);
  }
  fs::create_directory(file() + ".next");
  EXPECT_FALSE(PoolJournal::rewrite(durable.c_str(), pool->pool_id(), pool->saves(), keep, &problem).ok());
  EXPECT_EQ(entries(), expected);
  fs::remove(file() + ".next");
  // What was before another save is forgotten.
  ASSERT_TRUE(PoolJournal::rewrite(durable.c_str(), pool->pool_id(), pool->saves() + 1, keep, &problem).ok());
  EXPECT_EQ(bytes(), "");
  forget_since_save(durable.c_str());
  EXPECT_TRUE(PoolJournal::rewrite(durable.c_str(), pool->pool_id(), pool->saves(), keep, &problem).ok());
}

// The process that gave the file its name may have died before that was on the disk, so one that writes there sees to
// it (a process that has no descriptor left for the directory cannot, and says so).
TEST_F(Journal, TheFileHasItsNameForGoodBeforeItHasAnEntry) {
  note(1, "first");
  const auto keep = [](uint32_t*, std::vector<std::byte>*) {};
  ASSERT_TRUE(PoolJournal::rewrite(durable.c_str(), pool->pool_id(), pool->saves(), keep, &problem).ok())
      << problem.text;
  const pid_t child = gcl_test::child([&] {
    const int lowest = dup(STDIN_FILENO);
    close(lowest);
    rlimit limit;
    CHILD_VERIFY(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlim_t all = std::exchange(limit.rlim_cur, rlim_t(lowest) + 1);
    CHILD_VERIFY(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHILD_VERIFY(append(2, "second").error() == Errc::kSystem);
    limit.rlim_cur = all;
    CHILD_VERIFY(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHILD_VERIFY(append(3, "third").ok());
  });
  EXPECT_TRUE(gcl_test::ended_well(child));
  EXPECT_EQ(entries(), (Entries{{1, "first"}, {3, "third"}}));
}

// A writer that has waited while the pool was saved.
TEST_F(Journal, WhatIsWrittenIsInTheFileThatHasTheName) {
  const auto opened = [&] {
    int count = 0;
    for (const auto& fd : fs::directory_iterator("/proc/self/fd")) {
      std::error_code closed;
      count += fs::read_symlink(fd, closed) == file();
    }
    return count;
  };
  auto first = PoolJournal::open(*pool, Patience::kTry, &problem);
  ASSERT_TRUE(first.ok()) << problem.text;
  std::thread waits([&] {
    Problem why;
    auto second = PoolJournal::open(*pool, Patience::kWait, &why);
    EXPECT_TRUE(second.ok() && (*second)->append(2, {}, &why).ok()) << why.text;
  });
  EXPECT_TRUE(gcl_test::eventually([&] { return opened() == 2; }));
  forget_since_save(durable.c_str());
  first.take().reset();
  waits.join();
  EXPECT_EQ(entries(), (Entries{{2, ""}}));
}

}  // namespace coherence
