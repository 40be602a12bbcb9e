// The daemon gcl_memnode on files of a pool, and nodes that use it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/tcp/memory/tcp_memory.hpp"
#include "tests/support/shifted_clock.hpp"
#include "tests/support/tcp_members.hpp"

namespace coherence {
namespace {

// A process with what it writes.
class Program {
 public:
  Program(const std::string& said, const std::vector<std::string>& arguments) : said_(said) {
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, STDOUT_FILENO), dup2(out, STDERR_FILENO);
    std::vector<char*> argv = {const_cast<char*>(GCL_MEMNODE)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(GCL_MEMNODE, argv.data());
    _exit(127);
  }
  ~Program() {
    if (pid_ > 0) kill(pid_, SIGKILL), wait();
  }
  Program(const Program&) = delete;
  void send(int signal) const { kill(pid_, signal); }
  int wait() {  // its exit code
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string said() const {
    std::ifstream in(said_);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool says(const std::string& part) const { return said().find(part) != std::string::npos; }

 private:
  const std::string said_;
  pid_t pid_;
};

class MemnodeDaemon : public testing::Test {
 protected:
  void SetUp() override {
    make_pool(nullptr);
    PoolSpec spec{.nodes_max = 2, .compatibility = ""};
    spec.region_bytes[kRegionPages] = 16 * kPageSize;
    (void)gcl_test::must(LocalPool::create({.path = small().c_str(), .durable_path = saved().c_str()}, spec, &problem),
                         problem);
  }
  // A pool of two memory nodes.
  void make_pool(const char* durable) {
    PoolSpec spec{.nodes_max = 2, .memory_nodes = 2, .further_pages_bytes = 16 * kPageSize, .compatibility = ""};
    spec.region_bytes[kRegionPages] = 16 * kPageSize;
    pool =
        gcl_test::must(LocalPool::create({.path = file().c_str(), .durable_path = durable}, spec, &problem), problem);
  }
  // A pool of one memory node, and its durable copy.
  std::string small() const { return directory.path() + "/small"; }
  std::string saved() const { return directory.path() + "/saved"; }
  std::unique_ptr<Program> serve_small() {
    unlink((directory.path() + "/m0").c_str());
    auto daemon = start({small(), "--saved", saved(), "--listen", directory.socket("m0"), "--key", directory.key()});
    EXPECT_TRUE(gcl_test::eventually([&] { return daemon->says("listens on"); })) << daemon->said();
    return daemon;
  }
  gcl_test::MemberNode::Spec node() const {
    return {.prefix = directory.path() + "/local", .address = directory.socket("m0"), .key = directory.key()};
  }
  std::string file(uint8_t n = 0) const { return directory.path() + "/pool" + (n ? ".mem" + std::to_string(n) : ""); }
  std::unique_ptr<Program> start(std::vector<std::string> arguments) {
    return std::make_unique<Program>(directory.path() + "/said" + std::to_string(programs_++), arguments);
  }
  std::unique_ptr<Program> serve(uint8_t n, std::vector<std::string> more = {}) {
    unlink((directory.path() + "/m" + std::to_string(n)).c_str());
    std::vector<std::string> arguments = {file(n), "--listen", directory.socket("m" + std::to_string(n)), "--key",
                                          directory.key()};
    if (n != 0) more.insert(more.end(), {"--first", directory.socket("m0")});
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto daemon = start(arguments);
    EXPECT_TRUE(gcl_test::eventually([&] { return daemon->says("listens on"); })) << daemon->said();
    return daemon;
  }
  std::vector<std::string> further(uint8_t n) const {
    return {file(n), "--listen",     directory.socket("other"), "--first", directory.socket("m0"),
            "--key", directory.key()};
  }
  void refused(std::vector<std::string> arguments, const std::string& because) {
    const auto program = start(std::move(arguments));
    EXPECT_NE(program->wait(), 0);
    EXPECT_TRUE(program->says(because)) << program->said();
  }

  gcl_test::SocketDirectory directory;
  Problem problem;
  std::unique_ptr<Pool> pool;

 private:
  int programs_ = 0;
};

// What a node reads and writes is what the file has.
TEST_F(MemnodeDaemon, ServesAMemoryNodesFile) {
  const auto zero = serve_small();
  gcl_test::MemberNode first(node());
  ASSERT_TRUE(first.open(&problem).ok()) << problem.text << zero->said();
  ASSERT_TRUE(first.join(0, &problem).ok()) << problem.text << zero->said();
  Counters counters{};
  tcp::TcpMemory memory(first.port(), counters);
  const PageId page = PageId::at({}, 3);
  ASSERT_TRUE(memory.cas(first.pool->latch_address(page), 0, 4711).ok()) << zero->said();
  EXPECT_EQ(first.pool->peek_latch(page).raw, 4711u);
  zero->send(SIGUSR1);
  EXPECT_TRUE(gcl_test::eventually([&] { return zero->says("figures: links 2, batches 2, operations 2"); }))
      << zero->said();
  EXPECT_TRUE(zero->says("CPU s"));
  zero->send(SIGTERM);
  EXPECT_EQ(zero->wait(), 0);
  EXPECT_TRUE(zero->says("has stopped")) << zero->said();
  EXPECT_FALSE(memory.load(first.pool->latch_address(page)).ok()) << "its memory node is gone";
}

TEST_F(MemnodeDaemon, MemoryNodeZeroLetsNodesInAndSavesThePool) {
  const PageId page = PageId::at({}, 3);
  {
    const auto zero = serve_small();
    gcl_test::MemberNode first(node());
    ASSERT_TRUE(first.open(&problem).ok()) << problem.text << zero->said();
    ASSERT_TRUE(first.join(0, &problem).ok()) << problem.text << zero->said();
    Counters counters{};
    tcp::TcpMemory memory(first.port(), counters);
    Batch batch(MemoryNodeId{0});
    const uint64_t word = 4711;
    batch.write(first.pool->page_address(page), &word, sizeof word);
    ASSERT_TRUE(memory.run(batch).ok()) << zero->said();
    bool last = false;
    ASSERT_TRUE(first.leave(&last, &problem).ok()) << problem.text << zero->said();
    EXPECT_TRUE(last);
    zero->send(SIGINT);
    EXPECT_EQ(zero->wait(), 0);
    EXPECT_TRUE(zero->says("the pool is empty, and closed")) << zero->said();
  }
  ASSERT_EQ(unlink(small().c_str()), 0);
  const auto again = serve_small();
  gcl_test::MemberNode second(node());
  ASSERT_TRUE(second.open(&problem).ok()) << problem.text << again->said();
  EXPECT_EQ(second.pool->saves(), 2u);
  tcp::ToolMemory memory(second.tool);
  EXPECT_EQ(*memory.load(second.pool->page_address(page)), 4711u) << again->said();
}

// The copy is no longer the truth, and the memory is gone.
TEST_F(MemnodeDaemon, APoolThatWasInUseIsNotServedFromItsCopy) {
  {
    const auto zero = serve_small();
    gcl_test::MemberNode first(node());
    ASSERT_TRUE(first.open(&problem).ok()) << problem.text << zero->said();
    ASSERT_TRUE(first.join(0, &problem).ok()) << problem.text << zero->said();
  }
  ASSERT_EQ(unlink(small().c_str()), 0);
  refused({small(), "--saved", saved(), "--listen", directory.socket("m0"), "--plain"}, "was in use when the machine");
}

// Each by its daemon; a node has pages in both.  What is saved by both is loaded by both.
TEST_F(MemnodeDaemon, APoolOfSeveralMemoryNodesIsServedByAllOfThem) {
  const std::string copy = directory.path() + "/copy";
  pool.reset();
  for (const uint8_t n : {0, 1}) unlink(file(n).c_str());
  make_pool(copy.c_str());
  pool.reset();
  const PageId page = PageId::at({1}, 3);
  {
    const auto zero = serve(0, {"--saved", copy}), one = serve(1, {"--saved", copy});
    gcl_test::MemberNode first(node());
    ASSERT_TRUE(gcl_test::eventually([&] { return first.open(&problem).ok(); })) << problem.text << zero->said();
    EXPECT_EQ(first.pool->pages(), 32u);
    ASSERT_TRUE(first.join(0, &problem).ok()) << problem.text << zero->said() << one->said();
    tcp::ToolMemory memory(first.tool);
    EXPECT_FALSE(memory.cas(first.pool->page_address(page), 0, 1).ok()) << "a node is in the pool";
    bool last = false;
    ASSERT_TRUE(first.members->begin_change(Membership::Patience::kWait, &problem).ok());
    first.members->end_change();
    ASSERT_TRUE(first.leave(&last, &problem).ok()) << problem.text << zero->said() << one->said();
    EXPECT_TRUE(last);
    gcl_test::MemberNode second(node());
    ASSERT_TRUE(second.open(&problem).ok()) << problem.text;
    ASSERT_TRUE(second.members->begin_change(Membership::Patience::kWait, &problem).ok()) << problem.text;
    tcp::ToolMemory alone(second.tool);
    EXPECT_EQ(*alone.cas(second.pool->page_address(page), 0, 4711), 0u) << one->said();
    second.members->end_change();
    EXPECT_FALSE(alone.cas(second.pool->page_address(page), 4711, 1).ok()) << "its change is over";
    ASSERT_TRUE(second.join(0, &problem).ok()) << problem.text << zero->said();
    ASSERT_TRUE(second.leave(&last, &problem).ok()) << problem.text << zero->said() << one->said();
  }
  for (const uint8_t n : {0, 1}) ASSERT_EQ(unlink(file(n).c_str()), 0);
  const auto zero = serve(0, {"--saved", copy}), one = serve(1, {"--saved", copy});
  gcl_test::MemberNode third(node());
  ASSERT_TRUE(gcl_test::eventually([&] { return third.open(&problem).ok(); })) << problem.text << one->said();
  EXPECT_EQ(third.pool->saves(), 3u);
  tcp::ToolMemory memory(third.tool);
  EXPECT_EQ(*memory.load(third.pool->page_address(page)), 4711u) << one->said();
}

TEST_F(MemnodeDaemon, AMemoryNodeWaitsForNumberZero) {
  const auto one =
      start({file(1), "--listen", directory.socket("m1"), "--first", directory.socket("m0"), "--key", directory.key()});
  EXPECT_TRUE(gcl_test::eventually([&] { return one->says("memory node 0 at"); })) << one->said();
  const auto zero = serve(0);
  EXPECT_TRUE(gcl_test::eventually([&] { return zero->says("memory node 1 is here"); })) << zero->said() << one->said();
  one->send(SIGTERM);
  EXPECT_EQ(one->wait(), 0);
}

TEST_F(MemnodeDaemon, OnlyOneServesAFile) {
  const auto zero = serve(0), one = serve(1);
  refused(further(1), "another process serves");
  refused({file(0), "--listen", directory.socket("other"), "--key", directory.key()}, "is served over a network");
}

// A copy of its file, on another machine say.  The first one goes on; the second one comes when the first has gone.
TEST_F(MemnodeDaemon, OfTwoMemoryNodesWithOneNumberTheSecondIsRefused) {
  const auto zero = serve(0);
  auto one = serve(1);
  ASSERT_TRUE(gcl_test::eventually([&] { return zero->says("memory node 1 is here, at"); })) << zero->said();
  const std::string elsewhere = directory.path() + "/elsewhere";
  ASSERT_EQ(mkdir(elsewhere.c_str(), 0700), 0);
  std::filesystem::copy_file(file(1), elsewhere + "/pool.mem1");
  const auto second = start({elsewhere + "/pool.mem1", "--listen", directory.socket("other"), "--first",
                             directory.socket("m0"), "--key", directory.key()});
  EXPECT_TRUE(gcl_test::eventually([&] { return second->says(") is here"); })) << second->said();
  gcl_test::MemberNode first(node());
  ASSERT_TRUE(first.open(&problem).ok()) << problem.text << zero->said();
  ASSERT_TRUE(first.join(0, &problem).ok()) << problem.text << zero->said() << one->said();
  EXPECT_FALSE(one->says("newer start")) << one->said();
  bool last = false;
  ASSERT_TRUE(first.members->begin_change(Membership::Patience::kWait, &problem).ok());
  first.members->end_change();
  ASSERT_TRUE(first.leave(&last, &problem).ok()) << problem.text << zero->said() << one->said();
  one->send(SIGTERM);
  EXPECT_EQ(one->wait(), 0);
  EXPECT_TRUE(gcl_test::eventually([&] {
    return zero->says("memory node 1 is here, at " + directory.socket("other"));
  })) << zero->said()
      << second->said();
}

// Its start is a time, and would be older than that of its predecessor.
TEST_F(MemnodeDaemon, AMemoryNodeWhoseClockWasSetBackIsLetIn) {
  const auto zero = serve(0);
  const auto is_here = [&] {
    const std::string said = zero->said(), words = "memory node 1 is here, at";
    const size_t at = said.find(words);
    return (at != std::string::npos) + (said.rfind(words) != at);
  };
  auto one = serve(1);
  ASSERT_TRUE(gcl_test::eventually([&] { return is_here() == 1; })) << zero->said();
  one->send(SIGKILL);
  (void)one->wait();
  const gcl_test::ShiftedClock yesterday(GCL_SHIFTED_CLOCK, directory.path() + "/clock", -std::chrono::hours(24));
  one = serve(1);
  EXPECT_TRUE(gcl_test::eventually([&] { return is_here() == 2; })) << zero->said() << one->said();
}

TEST_F(MemnodeDaemon, CheckSaysWhatWouldBeServed) {
  const auto check = start({file(1), "--listen", "127.0.0.1:0", "--key", directory.key(), "--check"});
  EXPECT_EQ(check->wait(), 0) << check->said();
  EXPECT_TRUE(check->says("memory node 1 of pool")) << check->said();
  refused({file(2), "--listen", "127.0.0.1:0", "--key", directory.key(), "--check"}, "cannot open");
  refused({directory.key(), "--listen", "127.0.0.1:0", "--key", directory.key(), "--check"}, "is not a pool");
  refused({file(1), "--listen", "127.0.0.1:0", "--key", file(1), "--check"}, "key");
  refused({file(1), "--listen", "nowhere at all", "--plain", "--check"}, "nowhere at all");
}

TEST_F(MemnodeDaemon, RefusesToBeUnprotectedOnANetwork) {
  refused({file(0), "--listen", "0.0.0.0:0", "--plain"}, "0.0.0.0:0");
  refused({file(0), "--listen", "127.0.0.1:0"}, "one of --key, --certificate and --plain is wanted");
  refused({file(0), "--listen", "127.0.0.1:0", "--plain", "--key", directory.key()}, "--key");
}

TEST_F(MemnodeDaemon, AFurtherMemoryNodeKnowsNumberZero) {
  refused({file(1), "--listen", "127.0.0.1:0", "--key", directory.key()}, "--first");
  refused({file(0), "--listen", "127.0.0.1:0", "--first", "127.0.0.1:1", "--key", directory.key()}, "--first");
}

TEST_F(MemnodeDaemon, AFileThatIsNotThePoolsIsNotServed) {
  const auto zero = serve(0);
  refused(further(3), "the next one is number 2");
  refused(further(2), "how large a new memory node is to be was not said");
  ASSERT_EQ(rename(file(1).c_str(), file(2).c_str()), 0);
  refused(further(2), "memory node 1");
  ASSERT_EQ(truncate(file(2).c_str(), 70000), 0);
  ASSERT_EQ(rename(file(2).c_str(), file(1).c_str()), 0);
  refused(further(1), "shorter than it must be");
  unlink(file(1).c_str());
  refused(further(1), "there is no copy of it");
}

// Another pool's nodes do not get at it.
TEST_F(MemnodeDaemon, ANodeOfAnotherPoolIsRefused) {
  const auto zero = serve(0), one = serve(1);
  for (const uint8_t n : {0, 1}) {
    gcl_test::WorkedPort node({.memory_nodes = {{MemoryNodeId{n}, directory.socket("m" + std::to_string(n))}},
                               .key = directory.key(),
                               .cluster = pool->pool_id() + 1});
    Counters counters{};
    tcp::TcpMemory memory(node.port(), counters);
    EXPECT_FALSE(memory.load(PoolAddress::at({n}, 0)).ok());
  }
}

}  // namespace
}  // namespace coherence
