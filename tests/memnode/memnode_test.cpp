// The daemon gcl_memnode on files of a pool, and nodes that use it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/tcp/memory/tcp_memory.hpp"
#include "tests/support/tcp_nodes.hpp"

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
    PoolSpec spec{.nodes_max = 2, .memory_nodes = 2, .further_pages_bytes = 16 * kPageSize, .identity = ""};
    spec.region_bytes[kRegionPages] = 16 * kPageSize;
    pool = gcl_test::must(LocalPool::create({.path = file().c_str()}, spec, &problem), problem);
  }
  std::string file(uint8_t n = 0) const { return directory.path() + "/pool" + (n ? ".mem" + std::to_string(n) : ""); }
  std::unique_ptr<Program> start(std::vector<std::string> arguments) {
    return std::make_unique<Program>(directory.path() + "/said" + std::to_string(programs_++), arguments);
  }
  std::unique_ptr<Program> serve(uint8_t n) {
    auto daemon = start({file(n), "--listen", directory.socket("m" + std::to_string(n)), "--key", directory.key()});
    EXPECT_TRUE(gcl_test::eventually([&] { return daemon->says("listens on"); })) << daemon->said();
    return daemon;
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

// What a node reads and writes is what the files have.
TEST_F(MemnodeDaemon, ServesAPoolsFiles) {
  const auto zero = serve(0), one = serve(1);
  gcl_test::WorkedPort node(
      {.memory_nodes = {{MemoryNodeId{0}, directory.socket("m0")}, {MemoryNodeId{1}, directory.socket("m1")}},
       .key = directory.key(),
       .cluster = pool->pool_id()});
  {
    Counters counters{};
    tcp::TcpMemory memory(node.port(), counters);
    for (uint8_t n = 0; n < 2; n++) {
      const PageId page = PageId::at({n}, 3);
      ASSERT_TRUE(memory.cas(pool->latch_address(page), 0, 4711).ok()) << zero->said() << one->said();
      EXPECT_EQ(pool->peek_latch(page).raw, 4711u);
      EXPECT_EQ(*memory.cas(pool->latch_address(page), 4711, 0), 4711u);
    }
  }
  zero->send(SIGUSR1);
  EXPECT_TRUE(gcl_test::eventually([&] { return zero->says("figures: links 1, batches 2, operations 2"); }))
      << zero->said();
  EXPECT_TRUE(zero->says("CPU s"));
  one->send(SIGTERM), zero->send(SIGINT);
  EXPECT_EQ(one->wait(), 0);
  EXPECT_EQ(zero->wait(), 0);
  EXPECT_TRUE(one->says("has stopped")) << one->said();
  Counters counters{};
  tcp::TcpMemory memory(node.port(), counters);
  EXPECT_FALSE(memory.load(PoolAddress::at({1}, 0)).ok()) << "its memory nodes are gone";
}

TEST_F(MemnodeDaemon, OnlyOneServesAFile) {
  const auto daemon = serve(1);
  refused({file(1), "--listen", directory.socket("other"), "--key", directory.key()}, "another process serves");
}

TEST_F(MemnodeDaemon, CheckSaysWhatWouldBeServed) {
  const auto served = serve(1);
  const auto check = start({file(1), "--listen", "127.0.0.1:0", "--key", directory.key(), "--check"});
  EXPECT_EQ(check->wait(), 0) << check->said();
  EXPECT_TRUE(check->says("memory node 1 of pool")) << check->said();
  refused({file(2), "--listen", "127.0.0.1:0", "--key", directory.key(), "--check"}, "cannot open");
  refused({directory.key(), "--listen", "127.0.0.1:0", "--key", directory.key(), "--check"}, "is not a pool");
  refused({file(1), "--listen", "127.0.0.1:0", "--key", file(1), "--check"}, "key");
  refused({file(1), "--listen", "nowhere at all", "--plain", "--check"}, "nowhere at all");
}

TEST_F(MemnodeDaemon, RefusesToBeUnprotectedOnANetwork) {
  refused({file(1), "--listen", "0.0.0.0:0", "--plain"}, "0.0.0.0:0");
  refused({file(1), "--listen", "127.0.0.1:0"}, "one of --key, --certificate and --plain is wanted");
  refused({file(1), "--listen", "127.0.0.1:0", "--plain", "--key", directory.key()}, "--key");
}

TEST_F(MemnodeDaemon, AFileThatIsCutShortIsNotServed) {
  ASSERT_EQ(truncate(file(1).c_str(), 70000), 0);
  refused({file(1), "--listen", "127.0.0.1:0", "--plain"}, "shorter than it must be");
}

// Another pool's nodes do not get at it.
TEST_F(MemnodeDaemon, ANodeOfAnotherPoolIsRefused) {
  const auto daemon = serve(1);
  gcl_test::WorkedPort node({.memory_nodes = {{MemoryNodeId{1}, directory.socket("m1")}},
                             .key = directory.key(),
                             .cluster = pool->pool_id() + 1});
  Counters counters{};
  tcp::TcpMemory memory(node.port(), counters);
  EXPECT_FALSE(memory.load(PoolAddress::at({1}, 0)).ok());
}

}  // namespace
}  // namespace coherence
