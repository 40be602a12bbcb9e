// Memory node 0 with the members of a pool, further memory nodes, tools and nodes that send what the test says, all in
// one thread.
#pragma once

#include <functional>
#include <list>
#include <optional>

#include "coherence/base/os.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"
#include "coherence/transport/shm/served_part.hpp"
#include "coherence/transport/tcp/member/further_memory_node.hpp"
#include "coherence/transport/tcp/member/member_server.hpp"
#include "loops.hpp"

namespace coherence::tcp {

// A pool that is closed when the test says so.
class HeldKeeper final : public PoolKeeper {
 public:
  explicit HeldKeeper(PoolKeeper& of) : of_(of) {}
  NodeTable& table() const override { return of_.table(); }
  PoolHeader& first_header() const override { return of_.first_header(); }
  Status mark_in_use(Problem* problem) override { return of_.mark_in_use(problem); }
  bool has_copy() const override { return of_.has_copy(); }
  Status write_copy(Problem* problem) override {
    closing = true;
    EXPECT_TRUE(gcl_test::eventually([&] { return may_close.load(); }));
    return of_.write_copy(problem);
  }
  Status count_copy(Problem* problem) override { return of_.count_copy(problem); }
  bool is_unplaced() const override { return of_.is_unplaced(); }
  bool is_copy_current() const override { return of_.is_copy_current(); }
  Status place_copy(Problem* problem) override { return of_.place_copy(problem); }
  void drop_copy() noexcept override { of_.drop_copy(); }
  Status count_memory_node(uint32_t number, uint64_t bytes, uint64_t pages_bytes, Problem* problem) override {
    return of_.count_memory_node(number, bytes, pages_bytes, problem);
  }
  std::atomic<bool> may_close = true, closing = false;

 private:
  PoolKeeper& of_;
};

// Another memory node than 0.
class FurtherPart {
 public:
  struct Spec {
    std::string pool, saved, address, first;
    uint32_t number = 1;
    uint64_t start = 1, pages_bytes = 0;
    net::LinkTimes times;
    std::string says = "";           // where it is; empty: its address
    DirectAccess* access = nullptr;  // by which nodes reach it
  };
  // As what memory node 0 says.
  FurtherPart(const Spec& spec, const PoolHeader& pool) : spec_(spec) {
    const std::string file = MemoryPath(spec.pool.c_str(), spec.number).text;
    auto opened =
        ServedPart::open({.file = file, .saved = spec.saved, .pages_bytes = spec.pages_bytes}, pool, &problem);
    if (!opened) return;
    part = opened.take();
    memory_ = std::make_unique<ShmMemory>(*part, counters_);
    members = std::make_unique<FurtherMemoryNode>(*part, log);
    server = gcl_test::must(MemoryServer::make(*memory_,
                                               {.id = part->id(),
                                                .bytes = part->part_header().bytes,
                                                .start = spec.start,
                                                .times = spec.times,
                                                .other = members.get(),
                                                .access = spec.access},
                                               net::Credentials::plain(), log, &problem),
                            problem);
    gcl_test::must(server->listen(gcl_test::endpoints(spec.address), &problem), problem);
    const std::string& says = spec.says.empty() ? spec.address : spec.says;
    gcl_test::must(members->begin(*server, gcl_test::endpoints(spec.first), says, &problem), problem);
  }
  ~FurtherPart() { server.reset(); }
  const std::string& address() const { return spec_.address; }
  uint64_t& word(uint64_t at) {
    return *reinterpret_cast<uint64_t*>(part->base(part->id()) + part->part_header().places().pages_at.offset() +
                                        8 * at);
  }

  Problem problem;  // why there is no part
  Lines log;
  std::unique_ptr<ServedPart> part;
  std::unique_ptr<FurtherMemoryNode> members;
  std::unique_ptr<MemoryServer> server;
  bool stands_still = false;

 private:
  const Spec spec_;
  Counters counters_{};
  std::unique_ptr<ShmMemory> memory_;
};

// A tool, or a node, and what came to it.
class MemberPeer {
 public:
  MemberPeer(net::Who who, const std::string& address, MemoryNodeId to = kZero) : raw(who) {
    raw.dial(net::Who::memory_node(to, 0), address);
  }
  // Takes what came.
  void look() {
    for (; read_ < raw.frames.size(); read_++) {
      const auto& [type, bytes] = raw.frames[read_];
      Problem problem;
      if (type == kTableFrame) {
        tables++;
        EXPECT_TRUE(decode_table(bytes, &table, &problem).ok()) << problem.text;
      } else if (type == kAnswerFrame) {
        answers.emplace_back();
        EXPECT_TRUE(decode_answer(bytes, &answers.back(), &header, &problem).ok()) << problem.text;
      } else {
        others++;
      }
    }
  }
  bool over() const { return !raw.ended_because.empty(); }
  NodeRecord& node(uint8_t n) { return table.node[n]; }
  MemberState state(uint8_t n) const { return MemberState(table.node[n].state); }
  bool send(uint16_t type, std::span<const std::byte> bytes) {
    return raw.link != nullptr && raw.link->send(type, bytes).ok();
  }
  bool say(const std::function<void(SayingsRecord&)>& change) {
    change(sayings);
    return send(kSayingsFrame, bytes_of(sayings));
  }

  RawPeer raw;
  Table table = {};
  HeaderRecord header = {};
  SayingsRecord sayings = {};
  std::vector<AnswerFrame> answers;
  int tables = 0, others = 0;
  bool stands_still = false;  // takes nothing, and says nothing

 private:
  size_t read_ = 0;
};

class MemberServerTest : public testing::Test {
 protected:
  void SetUp() override { make({}); }
  void TearDown() override {
    peers.clear();
    stop();
  }
  void make(PoolSpec spec) {
    stop();
    for (const std::string& file : {path_, durable_}) unlink(file.c_str());
    spec.nodes_max = 4;
    spec.compatibility = "version=15\n";
    spec.repairs_deaths = repairs_deaths;
    spec.records_deaths = records_deaths;
    spec.region_bytes[kRegionPages] = 16 * kPageSize;
    spec.further_pages_bytes = 16 * kPageSize;
    (void)gcl_test::must(LocalPool::create(files(), spec, &problem), problem);
    start();
    for (uint32_t k = 1; k < spec.memory_nodes; k++) begin_further(k);
  }
  FurtherPart& begin_further(uint32_t k, uint64_t pages_bytes = 0, const std::string& says = "",
                             DirectAccess* access = nullptr) {
    const std::string name = "memory" + std::to_string(k) + "." + std::to_string(++further_starts_);
    MemberPeer& by = tool();
    EXPECT_EQ(call(by, {.call = Call::kHeader}).error, Errc::kOk);
    const auto said = std::make_unique<PoolHeader>();
    fill_header(by.header, said.get());
    kill(by);
    return further.emplace_back(FurtherPart::Spec{.pool = path_,
                                                  .saved = durable_,
                                                  .address = directory.socket(name),
                                                  .first = address(),
                                                  .number = k,
                                                  .start = 1000 + further_starts_,
                                                  .pages_bytes = pages_bytes,
                                                  .times = times,
                                                  .says = says,
                                                  .access = access},
                                *said);
  }
  bool all_are_here() {
    return until([&] {
      MemberPeer& by = tool();
      const bool here = call(by, {.call = Call::kHeader}).error == Errc::kOk && by.table.head.memory_nodes > 1 &&
                        by.table.memory_node[1].address[0] != '\0';
      kill(by);
      return here;
    });
  }

  PoolFiles files() const { return {path_.c_str(), durable_.c_str(), "version=15\n"}; }
  Status try_start() {
    auto served = LocalPool::serve(files(), &problem);
    if (!served) return served.error();
    pool = served.take();
    MappedPool& mapped = MappedPool::of(*pool);
    starts_ += 1'000'000;
    keeper.emplace(mapped);
    members = std::make_unique<MemberServer>(
        *keeper, MemberServer::Spec{.pool = path_, .start = starts_, .patience_ns = times.patience_ns}, log);
    memory = std::make_unique<ShmMemory>(mapped, counters);
    server = gcl_test::must(
        MemoryServer::make(
            *memory,
            {.id = kZero, .bytes = mapped.header().bytes, .start = starts_, .times = times, .other = members.get()},
            net::Credentials::plain(), log, &problem),
        problem);
    unlink((directory.path() + "/memory0").c_str());
    gcl_test::must(server->listen(gcl_test::endpoints(address()), &problem), problem);
    return {};
  }
  void start() { gcl_test::must(try_start(), problem); }
  void stop() {
    further.clear();
    stop_first();
  }
  void stop_first() {
    server.reset();
    members.reset();
    memory.reset();
    pool.reset();
  }
  std::string address() const { return directory.socket("memory0"); }
  void run_once() {
    if (server != nullptr) server->run_once(0);
    for (FurtherPart& one : further)
      if (one.server != nullptr && !one.stands_still) one.server->run_once(0);
    for (MemberPeer& peer : peers) {
      if (peer.stands_still) continue;
      peer.raw.links->wait(0);
      peer.look();
    }
    for (const auto& run : also_run) run();
  }
  template <class Done>
  bool until(Done done) {
    return gcl_test::eventually([&] {
      run_once();
      return done();
    });
  }
  void for_a_while() {
    for (int i = 0; i < 100; i++) run_once(), nap(500'000);
  }

  MemberPeer& tool() { return peers.emplace_back(net::Who::tool(++tools_), address()); }
  MemberPeer& node(uint8_t id, uint64_t incarnation) {
    MemberPeer& peer = peers.emplace_back(net::Who::node(NodeId{id}, incarnation), address());
    EXPECT_TRUE(until([&] { return peer.over() || peer.tables > 0; }));
    return peer;
  }
  // As a process that is killed: its connection is gone, and nothing was said.
  void kill(MemberPeer& peer) {
    for (auto it = peers.begin(); it != peers.end(); ++it)
      if (&*it == &peer) return void(peers.erase(it));
  }
  void ask(MemberPeer& from, CallFrame call) { ASSERT_TRUE(from.send(kCallFrame, bytes_of(call))); }
  AnswerFrame answer(MemberPeer& to) {
    EXPECT_TRUE(until([&] { return !to.answers.empty() || to.over(); })) << log.all;
    if (to.answers.empty()) return {.error = Errc::kSystem};
    const AnswerFrame first = to.answers.front();
    to.answers.erase(to.answers.begin());
    return first;
  }
  AnswerFrame call(MemberPeer& from, CallFrame call) {
    ask(from, call);
    return answer(from);
  }
  static CallFrame publish(uint8_t id, uint64_t incarnation) {
    CallFrame frame{.call = Call::kPublish, .node = id, .incarnation = incarnation, .pid = 4711};
    frame.protocol = kProtocolVersion;
    put_text(("10.0.0." + std::to_string(id) + ":5000").c_str(), frame.listens_at);
    return frame;
  }
  // The node's link is the peer that is returned.
  MemberPeer& join(uint8_t id) {
    MemberPeer& by = tool();
    EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
    const AnswerFrame reserved = call(by, {.call = Call::kReserve, .node = id});
    EXPECT_EQ(reserved.error, Errc::kOk) << reserved.problem;
    MemberPeer& joined = node(id, reserved.value);
    const AnswerFrame published = call(by, publish(id, reserved.value));
    EXPECT_EQ(published.error, Errc::kOk) << published.problem;
    EXPECT_EQ(call(by, {.call = Call::kEndChange}).error, Errc::kOk);
    kill(by);
    return joined;
  }
  void leave(MemberPeer& node, uint8_t id) {
    MemberPeer& by = tool();
    EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
    EXPECT_EQ(call(by, {.call = Call::kWithdraw, .node = id, .incarnation = incarnation(id)}).error, Errc::kOk);
    EXPECT_EQ(call(by, {.call = Call::kEndChange}).error, Errc::kOk);
    kill(by);
    kill(node);
  }
  AnswerFrame close_pool() {
    MemberPeer& by = tool();
    EXPECT_EQ(call(by, {.call = Call::kBeginChange}).error, Errc::kOk);
    const AnswerFrame closed = call(by, {.call = Call::kClose});
    EXPECT_EQ(call(by, {.call = Call::kEndChange}).error, Errc::kOk);
    kill(by);
    return closed;
  }
  MemberState state(uint8_t n) const { return MappedPool::of(*pool).table().node[n].state.load(); }
  uint64_t incarnation(uint8_t n) const { return MappedPool::of(*pool).table().node[n].incarnation.load(); }

  bool repairs_deaths = true, records_deaths = false;
  net::LinkTimes times = {.patience_ns = 1'500'000'000};
  gcl_test::SocketDirectory directory;
  Lines log;
  Problem problem;
  std::unique_ptr<Pool> pool;
  std::optional<HeldKeeper> keeper;
  std::unique_ptr<MemberServer> members;
  Counters counters{};
  std::unique_ptr<ShmMemory> memory;
  std::unique_ptr<MemoryServer> server;
  std::list<FurtherPart> further;
  std::list<MemberPeer> peers;
  std::vector<std::function<void()>> also_run;

 private:
  std::string path_ = directory.path() + "/pool", durable_ = directory.path() + "/saved";
  uint64_t tools_ = 0, starts_ = 0, further_starts_ = 0;
};

}  // namespace coherence::tcp
