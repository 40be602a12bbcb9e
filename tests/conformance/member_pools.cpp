// The pools and candidates of the Membership contract's tests.  A new transport is added to members_kinds().
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "coherence/member/arena.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/shm_transport.hpp"
#include "members.hpp"
#include "tests/support/tcp_members.hpp"

namespace conformance {
namespace {

// The files of a pool, which the test has made.
class Files {
 public:
  explicit Files(const PoolSpec& spec) {
    Problem problem;
    (void)gcl_test::must(LocalPool::create(files(), spec, &problem), problem);
  }
  PoolFiles files() const { return {path_.c_str(), saved_.c_str(), ""}; }
  const gcl_test::SocketDirectory& directory() const { return directory_; }

 private:
  const gcl_test::SocketDirectory directory_;
  const std::string path_ = directory_.path() + "/pool", saved_ = directory_.path() + "/saved";
};

// shm: each candidate maps the pool.  Its node lives as long as it has the file.
class ShmCandidate final : public Candidate {
 public:
  explicit ShmCandidate(const PoolFiles& files) {
    Problem problem;
    pool_ = gcl_test::must(shm_transport().open_pool(files, &problem), problem);
    members_ = shm_transport().open_membership(*pool_);
  }
  ~ShmCandidate() override { ShmCandidate::die(); }
  Membership& members() override { return *members_; }
  Status publish(NodeId node, uint64_t incarnation, Problem* problem) override {
    char path[600];
    arena_path(*pool_, node, incarnation, path, sizeof path);
    file_ = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    return members_->publish(file_, problem);
  }
  void die() override {
    if (file_ >= 0) close(std::exchange(file_, -1));
  }

 private:
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Membership> members_;
  int file_ = -1;
};

class ShmMembers final : public MembersPool {
 public:
  ShmMembers(const PoolSpec& spec, uint64_t /* a death is certain at once */) : files_(spec) {}
  std::unique_ptr<Candidate> candidate() override { return std::make_unique<ShmCandidate>(files_.files()); }

 private:
  const Files files_;
};

// tcp: memory node 0 and the network worker of each node are beside the test.  How slow a machine is ends no
// connection.
constexpr net::LinkTimes times(uint64_t patience_ns) {
  return {.patience_ns = patience_ns, .silence_ns = 300'000'000'000};
}

class TcpCandidate final : public Candidate {
 public:
  explicit TcpCandidate(const gcl_test::MemberNode::Spec& spec) : node_(spec) {
    Problem problem;
    gcl_test::must(node_.open(&problem), problem);
  }
  Membership& members() override { return *node_.members; }
  Status publish(NodeId node, uint64_t incarnation, Problem* problem) override {
    node_.incarnation = incarnation;
    return node_.publish(node, problem);
  }
  void die() override { node_.worker.stop(); }
  void hold() override { node_.worker.hold(); }
  void go_on() override { node_.worker.go_on(); }

 private:
  gcl_test::MemberNode node_;
};

class TcpMembers final : public MembersPool {
 public:
  TcpMembers(const PoolSpec& spec, uint64_t patience_ns)
      : files_(spec), served_(files_.directory(), files_.files(), {.key = key(), .times = times(patience_ns)}) {}
  std::unique_ptr<Candidate> candidate() override {
    return std::make_unique<TcpCandidate>(gcl_test::MemberNode::Spec{.prefix = files_.directory().path() + "/local",
                                                                     .address = served_.address(),
                                                                     .key = key(),
                                                                     .tool_times = {.link = times(kLongNs)},
                                                                     .times = times(kLongNs)});
  }

 private:
  std::string key() const { return files_.directory().key(); }
  const Files files_;
  gcl_test::ServedMembers served_;
};

template <class T>
std::unique_ptr<MembersPool> make_members(const PoolSpec& spec, uint64_t patience_ns) {
  return std::make_unique<T>(spec, patience_ns);
}

}  // namespace

const std::vector<MembersKind>& members_kinds() {
  static const std::vector<MembersKind> all = {
      {.name = "shm", .make = make_members<ShmMembers>, .cuts_off_alone = false, .of_processes = true},
      {.name = "tcp", .make = make_members<TcpMembers>, .cuts_off_alone = true, .of_processes = true},
  };
  return all;
}

std::vector<MembersKind> members_kinds_of_processes() {
  std::vector<MembersKind> some;
  std::copy_if(members_kinds().begin(), members_kinds().end(), std::back_inserter(some),
               [](const MembersKind& kind) { return kind.of_processes; });
  return some;
}

}  // namespace conformance
