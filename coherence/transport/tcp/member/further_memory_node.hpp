// FurtherMemoryNode: the part in members of a memory node that is not number 0: it says what it has to memory node 0,
// hears the table, and carries out batches of those alone that the table admits (tcp.all-admit-alike).
//
// tcp.admitted-by-table: A link of a node that the table does not admit is ended for good before the table counts as
//     received (net.acknowledged-means-delivered).  Before the first table nobody is admitted.
// tcp.followers-end-with-link: When the link to memory node 0 is over, all links are ended, and this server ends:
//     one that begins anew has another start, and admits nobody before it has the table.
//
// One thread, the MemoryServer's.
//
//   FurtherMemoryNode members(part, log);
//   auto server = MemoryServer::make(memory, {..., .other = &members}, credentials, log, &problem);
//   GCL_TRY(members.begin(**server, first, "10.0.0.2:7400", &problem));
//   while (!ended && !members.is_over()) (*server)->run_once(-1);
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/region/part_keeper.hpp"
#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"
#include "coherence/transport/tcp/memory/memory_server.hpp"

namespace coherence::tcp {

// The pool's header as memory node 0 says it, as far as ServedPart needs it.
void fill_header(const HeaderRecord& said, PoolHeader* header) noexcept;

class FurtherMemoryNode final : public OtherService {
 public:
  FurtherMemoryNode(PartKeeper& keeper, Log& log);  // both outlive it
  ~FurtherMemoryNode();                             // waits for a copy that is being written
  FurtherMemoryNode(const FurtherMemoryNode&) = delete;

  // Dials memory node 0.  `address`: where nodes reach this memory node, "ip:port" or "unix:/path".
  Status begin(MemoryServer&, const net::Endpoints& first, const std::string& address, Problem*);
  bool is_over() const noexcept { return over_; }
  const char* why() const noexcept { return why_.text; }

  Status may_run(const net::Link&, const Batch&, Problem*) noexcept override;
  Status frame(net::Link&, uint16_t type, std::span<const std::byte> payload, Problem*) override;
  void begun(net::Link&) override;
  void disconnected(net::Link&) override {}
  void reconnected(net::Link&) override {}
  void room(net::Link&) override {}
  void over(net::Link&) override;
  void after_pass() override;
  int wait_ms() const noexcept override;

 private:
  // Of the copy; its words are the thread's until `ended`.
  struct Work {
    OrderFrame order;
    std::atomic<bool> ended = false;
    Status status;
    Problem words;
    std::thread thread;
  };
  bool admits(const net::Who& node) const noexcept;
  bool some_admitted() const noexcept;
  MemoryNodeFrame what_it_has() const;
  void take_table();
  Status take_order(const OrderFrame&, Problem*);

  PartKeeper& keeper_;
  std::string address_;
  Log& log_;
  net::Link* first_ = nullptr;  // to memory node 0; null: there is none, or it is over
  bool over_ = false;
  Problem why_;
  std::vector<net::Link*> links_;  // of nodes and tools
  bool known_ = false;             // the table
  const std::unique_ptr<Table> table_;
  std::unique_ptr<Work> work_;
};

}  // namespace coherence::tcp
