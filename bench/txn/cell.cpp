#include "bench/txn/cell.hpp"

#include <algorithm>

#include "bench/paper/histogram.hpp"

namespace txn {
namespace {

constexpr uint64_t kTriesMax = 64;

class Meter {
 public:
  Meter(const CellSpec& spec, const paper::Network& network) : spec_(spec), network_(network) {
    const auto threads = uint64_t(spec.work.nodes * spec.work.threads);
    warm_up_ = spec.warm_up * threads;
    end_ = warm_up_ + spec.measured * threads;
  }
  bool over() const { return commits_ >= end_; }
  bool measures() const { return commits_ >= warm_up_; }
  void aborted() { aborts_ += measures(), all_aborts_++; }
  void committed(uint64_t ns, Seen seen) {
    if (spec_.keep_history) result_.history.push_back(std::move(seen));  // also what ends behind the last that counts
    if (over()) return;
    if (measures()) latencies_.add(ns);
    commits_++;
    if (commits_ == warm_up_ || (warm_up_ == 0 && commits_ == 1))
      began_ = sim::scheduler()->now(), before_ = network_.traffic;
    if (over()) end();
  }
  Result result() {
    result_.ended = over();
    if (!over()) cut_short();
    return std::move(result_);
  }

 private:
  // What there is of it, the warm-up included.
  void cut_short() {
    warm_up_ = began_ = 0, before_ = {};
    end_ = commits_, aborts_ = all_aborts_;
    end();
  }
  void end() {
    const auto n = double(std::max<uint64_t>(end_ - warm_up_, 1));
    result_.ktps = double(end_ - warm_up_) * 1'000'000 / double(sim::scheduler()->now() - began_);
    result_.aborts = double(aborts_) / n;
    result_.p50_us = latencies_.quantile_us(0.5);
    result_.p99_us = latencies_.quantile_us(0.99);
    result_.round_trips = double(network_.traffic.round_trips - before_.round_trips) / n;
    result_.messages = double(network_.traffic.messages - before_.messages) / n;
  }
  const CellSpec& spec_;
  const paper::Network& network_;
  paper::Histogram latencies_;
  uint64_t commits_ = 0, aborts_ = 0, all_aborts_ = 0, warm_up_ = 0, end_ = 0, began_ = 0;
  paper::Traffic before_;
  Result result_;
};

int owner_of(const Row& row, const void* layout) { return static_cast<const Layout*>(layout)->owner(row); }

std::unique_ptr<Engine> make(const CellSpec& spec, const paper::Setup& setup, paper::Network& network,
                             const Layout& layout, std::vector<Log>& logs) {
  if (spec.store == "partitioned") return make_partitioned(setup, network, owner_of, &layout, logs);
  if (spec.control.ends_with("-holds"))
    return make_holds(make_selcc_store(setup, network), network, logs, spec.control == "row-holds", spec.tries);
  if (spec.control == "validation") return make_validation(make_selcc_store(setup, network), network, logs, spec.tries);
  const bool locks = spec.control == "2pl";
  auto store = spec.store == "sel" ? make_sel_store(setup, network, locks) : make_selcc_store(setup, network);
  if (locks) return make_two_phase_locking(std::move(store), logs);
  if (spec.control == "to") return make_timestamp_ordering(std::move(store), logs);
  return make_optimistic(std::move(store), logs);
}

}  // namespace

bool is_known(const CellSpec& spec) {
  const auto one_of = [](const std::string& name, std::initializer_list<const char*> known) {
    return std::ranges::any_of(known, [&](const char* one) { return name == one; });
  };
  const bool product = one_of(spec.control, {"page-holds", "row-holds", "validation"});
  return (product || one_of(spec.control, {"2pl", "to", "occ"})) &&
         one_of(spec.store, {"selcc", "sel", "partitioned"}) && (!product || spec.store == "selcc") &&
         one_of(spec.work.kind, {"tpcc", "ycsb", "hot-insert", "sibench", "skew"}) &&
         (spec.store != "partitioned" || (spec.control == "2pl" && spec.work.kind == "tpcc")) &&
         spec.work.warehouses >= spec.work.nodes;
}

Result run_cell(const CellSpec& spec) {
  const sim::Pace pace{.grain = 1'000'000'000, .step_ns_max = 0, .verb_ns_max = 0, .wake_ns_max = 0};
  const WorkloadSpec& work = spec.work;
  Layout layout(work);
  paper::Setup setup;
  setup.costs = spec.costs;
  setup.frames = spec.frames;
  setup.work.nodes = work.nodes;
  setup.work.threads = work.threads;
  setup.work.pages_per_node = layout.pages() / uint64_t(work.nodes) + 1;
  setup.work.seed = work.seed;
  sim::Scheduler scheduler(work.seed, pace, work.nodes);
  paper::Network network(setup.costs, work.nodes, work.nodes, setup.work.gcl, 1, false);
  std::vector<Log> logs(size_t(work.nodes), Log(spec.log_ns));
  const auto engine = make(spec, setup, network, layout, logs);
  std::unique_ptr<paper::Zipf> zipf;
  if (work.theta > 0) zipf = std::make_unique<paper::Zipf>(work.pages, work.theta);
  Meter meter(spec, network);
  engine->start();
  int left = work.nodes * work.threads;
  for (int n = 0; n < work.nodes; n++)
    for (int t = 0; t < work.threads; t++)
      scheduler.spawn(n, [&, n, t] {
        Client client(work, layout, zipf.get(), n, t);
        sim::Random random(sim::Random::mix(work.seed * 7'919 + uint64_t(n) * 131 + uint64_t(t)));
        while (!meter.over()) {
          const std::vector<Step>& steps = client.next();
          const uint64_t began = scheduler.now();
          uint64_t tries = 1;
          for (bool committed = false; !committed; tries = std::min(tries * 2, kTriesMax)) {
            Seen seen;
            committed = engine->run(n, t, steps, &seen);
            if (committed)
              meter.committed(scheduler.now() - began, std::move(seen));
            else if (meter.over())
              break;
            else
              meter.aborted();
            if (!committed) paper::pass(1 + random.below(tries * spec.costs.round_trip_ns));  // txn.pause-before-retry
          }
        }
        if (--left == 0) scheduler.stop();
      });
  scheduler.run(spec.limit_ns);
  Result result = meter.result();
  result.hash = scheduler.hash();
  return result;
}

}  // namespace txn
