// A memory node, a node, and a peer that does what it likes with a queue pair, in one thread: the test says which
// of them runs.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "coherence/transport/tcp/memory/tcp_memory.hpp"
#include "tests/support/verbs_nodes.hpp"
#include "tests/unit/coherence/tcp/loops.hpp"

namespace coherence::verbs {

using gcl_test::eventually;
using gcl_test::must;
using tcp::kZero;
using tcp::Lines;
using tcp::TcpMemory;

inline constexpr uint64_t kBytes = 8 << 20;

inline gcl_test::RdmaAddresses addresses() {
  const auto told = gcl_test::rdma_addresses();
  if (!told) fprintf(stderr, "GCL_RDMA says which devices are to be used\n"), abort();
  return *told;
}
inline PoolAddress at(uint64_t offset) { return PoolAddress::at(kZero, offset); }

// Which nodes may have batches carried out, and what memory was when a link was over.
class Members final : public tcp::OtherService {
 public:
  explicit Members(const std::byte* region) : region_(region) {}
  Status may_run(const net::Link&, const Batch&, Problem* problem) noexcept override {
    return admits ? Status() : Status(problem->set(Errc::kFenced, "a batch of one who was cut off"));
  }
  Status frame(net::Link&, uint16_t, std::span<const std::byte>, Problem* problem) override {
    return problem->set(Errc::kCorrupt, "what nobody knows");
  }
  void begun(net::Link&) override {}
  void disconnected(net::Link&) override {}
  void reconnected(net::Link&) override {}
  void room(net::Link&) override {}
  void over(net::Link&) override {
    as_of_end.assign(region_, region_ + kBytes);
    ends++;
  }
  void after_pass() override {}
  int wait_ms() const noexcept override { return -1; }

  bool admits = true;
  int ends = 0;
  std::vector<std::byte> as_of_end;

 private:
  const std::byte* const region_;
};

// A memory node in this thread.
class Served {
 public:
  explicit Served(const gcl_test::SocketDirectory& directory, bool verbs = true) : address_(directory.socket("m")) {
    if (verbs) access_ = gcl_test::access_at(addresses().memory_node)({bytes_.at(), kBytes}, log);
    server = must(tcp::MemoryServer::make(
                      memory_, {.id = kZero, .bytes = kBytes, .start = 1, .other = &members, .access = access_.get()},
                      net::Credentials::plain(), log, &problem_),
                  problem_);
    must(server->listen(gcl_test::endpoints(address_), &problem_), problem_);
  }
  const std::string& address() const { return address_; }
  std::byte* bytes() { return bytes_.at(); }
  uint64_t word(uint64_t offset) const {
    uint64_t word;
    memcpy(&word, bytes_.at() + offset, sizeof word);
    return word;
  }

 private:
  const std::string address_;
  gcl_test::SharedBytes bytes_{kBytes};
  gcl_test::OneRegion region_{kZero, bytes_.at()};
  Counters counters_{};
  ShmMemory memory_{region_, counters_};
  Problem problem_;

 public:
  Lines log;
  Members members{bytes_.at()};

 private:
  std::unique_ptr<tcp::DirectAccess> access_;

 public:
  std::unique_ptr<tcp::MemoryServer> server;
};

// A node in this thread.
class Worked {
 public:
  explicit Worked(const std::string& memory_node, bool verbs = true)
      : worker(must(tcp::NetworkWorker::make(port_.port(), {.self = net::Who::node(NodeId{3}, 1)},
                                             net::Credentials::plain(), log, &problem_),
                    problem_)) {
    if (verbs) must(worker->take_path(gcl_test::path_at(addresses().node)(log), &problem_), problem_);
    must(worker->memory().add(kZero, gcl_test::endpoints(memory_node), &problem_), problem_);
    memory = std::make_unique<TcpMemory>(port_.port(), counters_);
  }
  ~Worked() {
    worker.reset();
    memory.reset();
  }

 private:
  gcl_test::SharedPort port_{2};
  Counters counters_{};
  Problem problem_;

 public:
  Lines log;
  std::unique_ptr<tcp::NetworkWorker> worker;
  std::unique_ptr<TcpMemory> memory;
};

template <class Condition>
bool until(Served& served, Worked& node, const Condition& condition) {
  return eventually([&] {
    node.worker->run_once(0);
    served.server->run_once(0);
    node.memory->poll();
    return condition();
  });
}

// A peer that has a queue pair, and posts to it what it likes.
class RawNode {
 public:
  RawNode(Served& served, uint64_t start) : peer_(net::Who::node(NodeId{7}, start)) {
    Lines log;
    device_ = gcl_test::device_at(addresses().node, log_);
    Problem problem;
    pair_ = must(QueuePair::make(*device_, QueuePair::Of::kNode, this, &problem), problem);
    bytes_ = must(device_->reg(source.data(), source.size(), IBV_ACCESS_LOCAL_WRITE, "bytes", &problem), problem);
    peer_.dial(net::Who::memory_node(kZero, 0), served.address());
    send(tcp::kAskPathFrame, bytes_of(pair_->end()));
  }
  void send(uint16_t type, std::span<const std::byte> payload) {
    if (!peer_.link->send(type, payload)) abort();
  }
  void run_once() { peer_.links->wait(0); }
  bool over() const { return peer_.link == nullptr; }
  std::string reason() const { return peer_.ended_because; }
  bool has_pair() const { return !peer_.frames.empty() && peer_.frames.back().first == tcp::kPathFrame; }
  void connect() {
    Problem problem;
    must(decode_path_end(peer_.frames.back().second, &other_, &problem), problem);
    must(pair_->connect(other_, &problem), problem);
  }
  // WRITEs of all of `source`, one behind the other, with as many under way as there is room for; each has another
  // value.  Returns when one has failed, or it was told: what the device said last.
  ibv_wc_status write_until_refused(std::atomic<uint64_t>* complete, const std::atomic<bool>& over) {
    uint64_t posted = 0;
    while (!over.load()) {
      while (posted - complete->load() < kUnderWay) {
        memset(source.data(), int(posted + 1), source.size());
        ibv_sge piece{uint64_t(source.data()), uint32_t(source.size()), bytes_->lkey};
        ibv_send_wr request = {};
        request.opcode = IBV_WR_RDMA_WRITE;
        request.send_flags = IBV_SEND_SIGNALED;
        request.sg_list = &piece;
        request.num_sge = 1;
        request.wr.rdma.rkey = other_.key;
        if (pair_->post(&request) != 0) break;
        posted++;
      }
      ibv_wc one;
      if (pair_->poll(&one, 1) != 1) {
        std::this_thread::yield();
        continue;
      }
      if (one.status != IBV_WC_SUCCESS) return one.status;
      complete->fetch_add(1);
    }
    return IBV_WC_SUCCESS;
  }

  std::vector<std::byte> source = std::vector<std::byte>(256 << 10);

 private:
  static constexpr uint64_t kUnderWay = 6;
  Lines log_;
  tcp::RawPeer peer_;
  std::unique_ptr<Device> device_;
  MemoryRegion bytes_;
  std::unique_ptr<QueuePair> pair_;
  PathEnd other_;
};

}  // namespace coherence::verbs
