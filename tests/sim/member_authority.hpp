// MemberAuthority: memory node 0's part in members, as tcp's MemberServer has it, with the product's decisions
// (MemberDecisions), over Ways: it alone changes the true node table, and sends it to each node, one table under way,
// the newest next (tcp.one-table-under-way).
//
// What is called here arrives, in fibers of nobody or outside fibers, and happens at once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/tcp/member/member_decisions.hpp"
#include "coherence/transport/tcp/member/member_frames.hpp"
#include "seams.hpp"
#include "ways.hpp"

namespace sim {

// The other end of a link: an incarnation's network worker.
class NodeEnd {
 public:
  virtual coherence::NodeId id() const = 0;
  virtual uint64_t incarnation() const = 0;
  virtual bool is_over() const = 0;
  virtual void table_comes(const coherence::tcp::Table&) = 0;  // in a fiber of the node

 protected:
  ~NodeEnd() = default;
};

class MemberAuthority {
 public:
  // The link of a process that joins or leaves.
  struct Tool {
    int node;
    bool over = false;
  };
  struct Answer {
    bool in = false;
    coherence::Errc error = coherence::Errc::kOk;
    uint64_t value = 0;
    coherence::Problem problem;
    std::shared_ptr<const coherence::tcp::Table> table;
  };
  // `comes`: is called when a node has become live.
  MemberAuthority(coherence::MappedPool&, Ways&, std::function<void(coherence::NodeId)> comes);
  MemberAuthority(const MemberAuthority&) = delete;

  std::shared_ptr<Tool> dial(int node);
  void call(const std::shared_ptr<Tool>&, const coherence::tcp::CallFrame&, const std::shared_ptr<Answer>&);
  void over(const std::shared_ptr<Tool>&);
  void link_begins(const std::shared_ptr<NodeEnd>&);
  void link_over(const NodeEnd*);
  void says(coherence::NodeId, uint64_t incarnation, const coherence::tcp::SayingsRecord&);
  // No process of the node is left, and its verbs are over (repair.death-is-over).
  void died(coherence::NodeId);

  const Members& counts() const { return counts_; }

 private:
  struct Link {
    std::shared_ptr<NodeEnd> end;
    uint64_t seen = 0;  // epoch
    bool under_way = false, behind = false;
  };
  struct Caller {
    std::shared_ptr<Tool> tool;
    std::shared_ptr<Answer> answer;
  };
  struct Reserved {
    coherence::NodeId node;
    uint64_t incarnation;
  };
  struct Publishing {
    coherence::tcp::CallFrame call;
    Caller caller;
    uint64_t epoch = 0;  // of the table in which it is live; 0: it has no link yet
    bool waited = false;
  };
  coherence::TableChanges& changes() { return decisions_.changes(); }
  void answer(const Caller&, coherence::Status, uint64_t value, const coherence::Problem&);
  void begin_change(const Caller&, bool tries);
  void end_change();
  coherence::Status carry_out(const coherence::tcp::CallFrame&, uint64_t* value, coherence::Problem*);
  coherence::Status reserve(coherence::NodeId, uint64_t* incarnation, coherence::Problem*);
  coherence::Status let_in(const coherence::tcp::CallFrame&, coherence::Problem*);
  void go_on_publishing();
  void stop_publishing(const char* why);
  void bury(coherence::NodeId, uint64_t incarnation);
  void over_now(const std::shared_ptr<Tool>&);
  void link_over_now(coherence::NodeId);
  void changed();
  void say_who_is_there() const;  // in the trace
  void send(Link&);
  void acknowledged(const NodeEnd*, uint64_t epoch);

  coherence::MappedPool& pool_;
  Ways& ways_;
  const std::function<void(coherence::NodeId)> comes_;
  coherence::tcp::MemberDecisions decisions_;
  std::array<Link, coherence::kNodesMax> link_;
  std::vector<std::shared_ptr<Tool>> tools_;
  std::shared_ptr<Tool> changer_;
  std::deque<Caller> waiting_;  // to change members
  std::optional<Reserved> reserved_;
  std::optional<Publishing> publishing_;
  uint64_t epoch_ = 0;
  std::shared_ptr<const coherence::tcp::Table> newest_;
  Members counts_;
};

}  // namespace sim
