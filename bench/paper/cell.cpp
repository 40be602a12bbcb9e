#include "bench/paper/cell.hpp"

#include <algorithm>

#include "bench/paper/histogram.hpp"

namespace paper {
namespace {

constexpr uint64_t kLimitNs = 20'000'000'000;  // of virtual time: a hundred times what a run takes

class Meter {
 public:
  Meter(const CellSpec& spec, const Setup& setup, const Network& network)
      : spec_(spec), network_(network), by_node_(size_t(setup.work.nodes)) {
    const auto threads = uint64_t(setup.work.nodes * setup.work.threads);
    warm_up_ = spec.warm_up * threads;
    end_ = warm_up_ + spec.measured * threads;
  }
  void note(int node, uint64_t ns) {
    if (over()) return;
    if (++operations_ <= warm_up_) {
      if (operations_ == warm_up_) began_ = sim::scheduler()->now(), before_ = network_.traffic;
      return;
    }
    latencies_.add(ns);
    by_node_[size_t(node)]++;
    const uint64_t now = sim::scheduler()->now();
    while (spec_.timeline_ns > 0 && by_node_.size() > 1 && now >= began_ + spec_.timeline_ns * (timeline_.size() + 1))
      timeline_.emplace_back(by_node_[0], by_node_[1]);
    if (!over()) return;
    ended_ = now;
    after_ = network_.traffic;
    sim::scheduler()->stop();
  }
  bool over() const { return operations_ >= end_; }
  Result result() const {
    Result r;
    r.ended = over();
    if (!r.ended) return r;
    const auto n = double(end_ - warm_up_);
    r.mops = n * 1000 / double(ended_ - began_);
    r.p50_us = latencies_.quantile_us(0.5);
    r.p99_us = latencies_.quantile_us(0.99);
    r.round_trips =
        (double(after_.round_trips - before_.round_trips) + double(after_.messages - before_.messages) / 2) / n;
    r.messages = double(after_.messages - before_.messages) / n;
    r.bytes = double(after_.bytes - before_.bytes) / n;
    double sum = 0, squares = 0;
    for (uint64_t ops : by_node_) sum += double(ops), squares += double(ops) * double(ops);
    r.jain = sum * sum / (squares * double(by_node_.size()));
    r.slowest = double(*std::min_element(by_node_.begin(), by_node_.end())) /
                double(*std::max_element(by_node_.begin(), by_node_.end()));
    r.by_node = by_node_;
    r.timeline = timeline_;
    return r;
  }

 private:
  const CellSpec& spec_;
  const Network& network_;
  Histogram latencies_;
  std::vector<uint64_t> by_node_;
  std::vector<std::pair<uint64_t, uint64_t>> timeline_;
  uint64_t operations_ = 0, warm_up_ = 0, end_ = 0, began_ = 0, ended_ = 0;
  Traffic before_, after_;
};

std::unique_ptr<Protocol> make(const std::string& name, const Setup& setup, Network& network) {
  if (name == "selcc") return make_selcc(setup, network);
  if (name == "sel") return make_sel(setup, network);
  if (name == "directory") return make_directory(setup, network);
  if (name == "gam") return make_gam(setup, network, false);
  if (name == "gam-tso") return make_gam(setup, network, true);
  return nullptr;
}

}  // namespace

bool set_cost(Costs* c, const std::string& name, double value, bool times) {
  const std::pair<const char*, uint64_t*> all[] = {
      {"round_trip_ns", &c->round_trip_ns},   {"atomic_ns", &c->atomic_ns},
      {"respond_ns", &c->respond_ns},         {"issue_ns", &c->issue_ns},
      {"bytes_per_us", &c->bytes_per_us},     {"message_ns", &c->message_ns},
      {"remote_share", &c->remote_share},     {"local_access_ns", &c->local_access_ns},
      {"section_ns", &c->section_ns},         {"local_hand_over_ns", &c->local_hand_over_ns},
      {"stranded_share", &c->stranded_share}, {"serial_queue_ns", &c->serial_queue_ns},
  };
  for (const auto& [known, field] : all)
    if (name == known) {
      *field = uint64_t(times ? double(*field) * value : value);
      return true;
    }
  return false;
}

Result run_cell(const CellSpec& spec, const Setup& setup) {
  const sim::Pace pace{.grain = 1'000'000'000, .step_ns_max = 0, .verb_ns_max = 0, .wake_ns_max = 0};
  const WorkloadSpec& work = setup.work;
  sim::Scheduler scheduler(work.seed, pace, work.nodes);
  Network network(setup.costs, work.nodes, work.nodes, work.gcl, setup.remote_cores, setup.stranded);
  auto protocol = make(spec.protocol, setup, network);
  if (!protocol) return {};
  std::unique_ptr<Zipf> zipf;
  if (work.theta > 0) zipf = std::make_unique<Zipf>(work.pages(), work.theta);
  Meter meter(spec, setup, network);
  protocol->start();
  for (int n = 0; n < work.nodes; n++)
    for (int t = 0; t < work.threads; t++)
      scheduler.spawn(n, [&, n, t] {
        for (Workload mine(work, zipf.get(), n, t); !meter.over();) {
          const Access a = mine.next();
          const uint64_t began = sim::scheduler()->now();
          protocol->access(n, t, a);
          meter.note(n, sim::scheduler()->now() - began);
        }
      });
  scheduler.run(kLimitNs);
  Result result = meter.result();
  result.hash = scheduler.hash();
  return result;
}

}  // namespace paper
