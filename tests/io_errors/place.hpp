// Place: the files of one pool, in a directory of their own, where calls may fail.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "coherence/member/node.hpp"
#include "coherence/region/pool_journal.hpp"
#include "coherence/region/since_save.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/shm_transport.hpp"
#include "failing_calls.hpp"
#include "tests/support/pool_bytes.hpp"

namespace gcl_test {

namespace fs = std::filesystem;
using coherence::BesideCopy;
using coherence::Errc;
using coherence::kPageSize;
using coherence::LocalPool;
using coherence::MemoryNodeId;
using coherence::PageId;
using coherence::Pool;
using coherence::PoolFiles;
using coherence::PoolJournal;
using coherence::PoolSpec;
using coherence::Problem;
using coherence::Result;
using coherence::Status;

inline constexpr uint64_t kPages = 8;
inline constexpr std::byte kOld{0x5a}, kNew{0x77};
inline const PageId kPage = PageId::at(MemoryNodeId{0}, 3);

// The files of one pool, and what is done to them.
class Place {
 public:
  Place() {
    directory = "/dev/shm/gcl-test-XXXXXX";
    EXPECT_NE(mkdtemp(directory.data()), nullptr);
    path = directory + "/pool", durable = directory + "/durable";
    said = "/tmp/" + std::filesystem::path(directory).filename().string();
    calls = std::make_unique<FailingCalls>(directory);
  }
  ~Place() { fs::remove_all(directory); }
  PoolFiles files() const {
    return {.path = path.c_str(), .durable_path = durable.c_str(), .compatibility = "test=1\n"};
  }

  // From here on one call fails.
  void arm() { calls->begin(fails_at, goes_on); }

  void make_pool(uint32_t memory_nodes = 2) {
    PoolSpec spec{.nodes_max = 4, .memory_nodes = memory_nodes, .compatibility = "test=1\n"};
    spec.region_bytes[coherence::kRegionPages] = kPages * kPageSize;
    spec.further_pages_bytes = kPages * kPageSize;
    require(LocalPool::create(files(), spec, &problem).error());
    fill(kOld);
    require(LocalPool::save_again(files(), &problem).error());
  }
  std::unique_ptr<Pool> open() {
    auto pool = LocalPool::open(files(), &problem);
    require(pool.error());
    return pool ? pool.take() : nullptr;
  }
  void fill(std::byte with) {
    if (const auto pool = open()) memset(gcl_test::pool_bytes(*pool, kPage), int(with), kPageSize);
  }
  std::byte content() {
    const auto pool = open();
    return pool ? *gcl_test::pool_bytes(*pool, kPage) : std::byte{0};
  }
  // A reboot.
  void lose_memory() {
    std::vector<fs::path> lost;
    for (const auto& entry : fs::directory_iterator(directory))
      if (entry.path().string().starts_with(path)) lost.push_back(entry.path());
    for (const fs::path& file : lost) fs::remove(file);
  }
  // As gclctl does behind a loss of memory; a clean copy is loaded.
  void restart() {
    if (LocalPool::open(files(), &problem)) return;
    bool whole = false;
    lose_memory();
    require(LocalPool::begin_restart(files(), &whole, &problem).error());
    if (!whole) require(LocalPool::end_restart(files(), 100, &problem).error());
  }
  void remove_pool() const {
    for (const auto& entry : fs::directory_iterator(directory)) fs::remove(entry.path());
  }
  // A node joins, and its process dies: a pool in use, whose memory is lost.
  void lose_memory_in_use() {
    {
      const auto pool = open();
      join(*pool).reset();
    }
    lose_memory();
  }
  std::unique_ptr<coherence::Node> join(Pool& pool) {
    auto node = try_to_join(pool, &problem);
    require(node.error());
    return node ? node.take() : nullptr;
  }
  static Result<std::unique_ptr<coherence::Node>> try_to_join(Pool& pool, Problem* why) {
    return coherence::Node::join(pool, coherence::NodeId{0}, {.frames = 4, .sessions_max = 2, .private_bytes = 4096},
                                 why, coherence::shm_transport());
  }

  Status append(const char* text, Problem* why) {
    auto journal = PoolJournal::open(*journaled, PoolJournal::kTry, why);
    if (!journal) return journal.error();
    return (*journal)->append(20, std::as_bytes(std::span(text, strlen(text))), why);
  }
  Status entries(std::vector<std::string>* to, Problem* why) {
    const auto add = [&](uint32_t, std::span<const std::byte> bytes) -> Status {
      to->emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    };
    return PoolJournal::visit(durable.c_str(), journaled->pool_id(), journaled->saves(), add, why);
  }
  std::vector<std::string> entries() {
    std::vector<std::string> found;
    require(entries(&found, &problem).error());
    return found;
  }
  void begin_journal() {
    make_pool(1);
    journaled = open();
    for (const char* text : {"one", "two"}) require(append(text, &problem).error());
    first_journal = journal_file();
  }

  // The number of the file that has the journal's name.
  uint64_t journal_file() const {
    struct stat found {};
    EXPECT_EQ(stat(BesideCopy(durable.c_str(), BesideCopy::kJournal).text, &found), 0);
    return found.st_ino;
  }

  void require(Errc error) { EXPECT_EQ(error, Errc::kOk) << coherence::errc_name(error) << ": " << problem.text; }

  std::string directory, path, durable;
  std::string said;  // a file for what a process says that ends
  std::unique_ptr<FailingCalls> calls;
  std::unique_ptr<Pool> journaled;
  uint64_t first_journal = 0;
  Problem problem;
  uint64_t fails_at = 0;
  bool goes_on = false;
};

}  // namespace gcl_test
