// gclctl check: what this machine sees of a cluster of several hosts, in plain sentences.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "bufmgr/pool_layout.hpp"
#include "coherence/base/ids.hpp"
#include "coherence/base/member_state.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/plan.hpp"
#include "tools/gclctl/probe.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/rdma_devices.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

namespace net = coherence::net;
using coherence::Problem;

// One line for each finding (gclctl.check-tells-all).
class Findings {
 public:
  template <class... Args>
  void fine(fmt::format_string<Args...> format, Args&&... args) const {
    say("ok       ", fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) const {
    say("note     ", fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    problems_++;
    say("PROBLEM  ", fmt::format(format, std::forward<Args>(args)...));
  }
  int problems() const { return problems_; }

 private:
  static void say(const char* kind, const std::string& sentence) {
    fmt::print("{}{}\n", kind, sentence);
    fflush(stdout);  // the next one may take seconds
  }
  int problems_ = 0;
};

class Look {
 public:
  Look(const Plan& plan, std::string host) : plan_(plan), host_(std::move(host)) {}

  int all() {
    if (!host_.empty()) this_host();
    locked_memory();
    Problem problem;
    auto credentials = net::Credentials::of_key_file(plan_.key.c_str(), &problem);
    if (!credentials) {
      found_.problem("the key: {}. What needs it is not looked at", problem.text);
    } else {
      found_.fine("the key in {} can be read by its owner alone", plan_.key);
      credentials_ = credentials.take();
    }
    for (const PlannedMemoryNode& one : plan_.memory_nodes) memory_node(one);
    for (const PlannedPrimary& one : plan_.primaries) primary(one);
    if (found_.problems() == 0) return fmt::print("all is well\n"), 0;
    fmt::print("{} problem{}\n", found_.problems(), found_.problems() == 1 ? "" : "s");
    return 1;
  }

 private:
  void this_host() {
    const auto mine = [&](const std::string& what, const std::string& address) {
      std::string why;
      const auto at = resolve(address, &why);
      if (!at) return;  // is said with what is there
      if (!std::any_of(at->at, at->at + at->count, is_of_this_machine))
        found_.problem("{} is to be on this host, {}, and {} is no address of this machine", what, host_, address);
      else
        rdma(what, *at);
    };
    for (const auto& one : plan_.memory_nodes)
      if (one.host == host_)
        mine(fmt::format("memory node {}", one.number), one.listen.empty() ? one.address : one.listen);
    for (const auto& one : plan_.primaries)
      if (one.host == host_) mine(fmt::format("primary {}", one.number), one.address);
    const fs::path directory = fs::path(plan_.saved).parent_path();
    if (access(directory.c_str(), R_OK | W_OK | X_OK) == 0)
      found_.fine("{} can be written, for the saved pool", directory.string());
    else
      found_.problem("{}, where the pool is saved: {}. It is one directory that all hosts share", directory.string(),
                     strerror(errno));
  }

  // Transport verbs finds a device by the GID that is the address.
  void rdma(const std::string& what, const net::Endpoints& at) {
    bool any = false;
    for (int i = 0; i < at.count; i++)
      for (const RdmaPort& port : rdma_ports_of(at.at[i])) {
        any = true;
        const std::string name = fmt::format("RDMA device {}, port {}, has the address of {} as GID {}", port.device,
                                             port.port, what, port.gid);
        if (port.state != "ACTIVE")
          found_.note("{}, and is not active ({})", name, port.state);
        else if (!port.usable)
          found_.note("{}, and {} may not be opened by this account", name, port.file.empty() ? "its file" : port.file);
        else
          found_.fine("{}, is active, and may be used", name);
      }
    if (!any && has_rdma_devices())
      found_.note("no RDMA device of this machine has the address of {}; transport {} needs none", what,
                  plan_.transport);
  }

  void locked_memory() {
    rlimit limit = {};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
      found_.fine("processes may lock any memory");
    else
      found_.note("processes may lock {} KB of memory, of which transport {} needs none", limit.rlim_cur >> 10,
                  plan_.transport);
  }

  // Resolved and reached.
  std::optional<net::Endpoints> reached(const std::string& what, const std::string& address, bool may_be_down) {
    std::string why;
    const auto at = resolve(address, &why);
    if (!at) return found_.problem("{} at {}: {}", what, address, why), std::nullopt;
    if (at->local() && plan_.hosts().size() > 1)
      found_.note("{}: {} is this machine itself; other hosts may know another one by that name", what, address);
    const Reach path = reach(*at);
    if (path.reached) {
      found_.fine("{} at {} is reached in {:.2f} ms; packets of {} bytes, as this machine knows the path", what,
                  path.name, path.connect_ms, path.mtu);
      return at;
    }
    if (path.refused && may_be_down)
      found_.note("{} at {} does not run: its machine answers", what, path.name);
    else
      found_.problem("{} at {} is not reached: {}", what, path.name, path.why);
    return std::nullopt;
  }

  void memory_node(const PlannedMemoryNode& one) {
    const std::string what = fmt::format("memory node {} on {}", one.number, one.host);
    const auto at = reached(what, one.address, false);
    if (!at || !credentials_) return;
    if (one.number != 0 && first_ == nullptr)
      return found_.note("{}: what it serves is not looked at without memory node 0", what);
    auto probe = std::make_unique<MemoryNodeProbe>(one.address, *at, one.number,
                                                   one.number == 0 ? 0 : first_->header().pool_id, *credentials_);
    std::string why;
    if (one.number == 0) {
      if (!probe->ask(&why)) {
        MemoryNodeProbe again(one.address, *at, 0, 0, *credentials_);
        if (std::string not_even_short; again.answers_what_is_short(&not_even_short)) return only_short(what, why);
        return found_.problem("{}: {}", what, why);
      }
      first_ = std::move(probe);
      found_.fine("{} accepts the key, and serves pool {:016x} of {} memory nodes", what, first_->header().pool_id,
                  first_->table().head.memory_nodes);
      if (first_->table().head.fenced != 0)
        found_.problem("the pool is fenced: {}", static_cast<const char*>(first_->table().head.fence_reason));
    }
    if (one.number >= first_->table().head.memory_nodes)
      return found_.problem("{} is not the pool's, which has {} memory nodes: has it been started?", what,
                            first_->table().head.memory_nodes);
    const auto& record = first_->table().memory_node[one.number];
    if (one.number != 0 && !known_as(record.address, *at))
      found_.problem("{}: memory node 0 knows number {} {}, and not at {}", what, one.number,
                     record.address[0] == '\0' ? "nowhere" : std::string("at ") + record.address, one.address);
    size(what, one, record.pages);
    measure(what, one.number == 0 ? *first_ : *probe, {record.words_at, record.pages_at, record.pages});
  }

  static bool known_as(const char* address, const net::Endpoints& at) {
    return std::any_of(at.at, at.at + at.count,
                       [&](const net::Endpoint& one) { return one.name().text == std::string(address); });
  }

  void size(const std::string& what, const PlannedMemoryNode& one, uint64_t pages) {
    uint64_t promised = one.bytes, has = pages * coherence::kPageSize;
    if (one.number == 0) {  // with all else that lies there
      const auto& region = first_->header().region;
      has = 0;
      for (const auto& part : region) has = std::max(has, part.offset + part.bytes);
    } else if (const auto planned = bufmgr::further_pages_bytes(one.bytes)) {
      promised = *planned;
    }
    const char* const of = one.number == 0 ? "" : " of pages";
    if (has + kRounding < promised)
      found_.problem("{} has {} MB{}, and the file promises {} MB", what, has >> 20, of, promised >> 20);
    else
      found_.fine("{} has {} MB{}", what, has >> 20, of);
  }

  void measure(const std::string& what, MemoryNodeProbe& probe, const MemoryNodeProbe::Places& places) {
    std::string why;
    double load = 0, atomic = 0;
    if (!probe.measure_loads(places, &load, &why)) return found_.problem("{} carries out no batch: {}", what, why);
    if (!probe.try_atomic(places, &atomic, &why)) return found_.problem("{} carries out no atomic: {}", what, why);
    found_.fine("{} answers a load in {:.0f} us (the median of 25), and an atomic in {:.0f} us", what, load, atomic);
    if (probe.try_long(places, &why)) return found_.fine("{}: 64 KB pass at once", what);
    only_short(what, why);
  }

  void only_short(const std::string& what, const std::string& why) {
    found_.problem(
        "{} answers what is short, and not what is long: {}. On the path packets are lost that both ends believe to be "
        "short enough: look at the MTU of switches and tunnels",
        what, why);
  }

  void primary(const PlannedPrimary& one) {
    const std::string what = fmt::format("primary {} on {}", one.number, one.host);
    const bool in_pool =
        first_ != nullptr && uint32_t(one.number) < first_->table().head.nodes_max &&
        coherence::NodeInfo{.state = coherence::MemberState(first_->table().node[one.number].state)}.serves();
    const auto at = reached(what, one.address, !in_pool);
    if (!at || !credentials_ || first_ == nullptr) return;
    const std::string why = greet_primary(*at, uint8_t(one.number), first_->header().pool_id, *credentials_);
    if (why.empty())
      found_.fine("{} accepts the key", what);
    else
      found_.problem("{}: {}", what, why);
  }

  static constexpr uint64_t kRounding = 1 << 20;  // regions begin at whole pages
  const Plan& plan_;
  const std::string host_;
  Findings found_;
  std::optional<net::Credentials> credentials_;
  std::unique_ptr<MemoryNodeProbe> first_;  // memory node 0
};

// The account that may read the key: its owner, or, where root keeps it for a group, that of the servers.
std::string account_for_key(const std::string& key) {
  if (geteuid() != 0 || !fs::exists(key)) return account_name(geteuid());
  const std::string owner = account_of(key);
  const bool for_group = (fs::status(key).permissions() & fs::perms::group_read) != fs::perms::none;
  return owner == "root" && for_group ? account_for_new_cluster() : owner;
}

}  // namespace

int check_network(const CheckOptions& options) {
  if (fs::is_directory(options.where)) {
    const Cluster c = Cluster::load(options.where);
    if (!c.on_hosts()) fail("{} is a cluster on one machine: gclctl status shows it", c.dir.string());
    return run_as(c.account, [&] { return Look(*c.plan, c.host).all(); });
  }
  const Plan plan = Plan::load(options.where);
  if (!options.host.empty()) plan.check_host(options.host);
  const std::string account = account_for_key(plan.key);
  if (account == "root") return Look(plan, options.host).all();
  return run_as(account, [&] { return Look(plan, options.host).all(); });
}

}  // namespace gclctl
