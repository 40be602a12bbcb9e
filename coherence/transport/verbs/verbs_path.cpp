#include "coherence/transport/verbs/verbs_path.hpp"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/transport/tcp/memory/batch_frame.hpp"

namespace coherence::verbs {
namespace {

// Of each memory node: several times what the longest batch needs.
constexpr uint32_t kBufferBytes = 512 << 10;
constexpr uint64_t kBatchNsMax = 2 * kGivesUpNsMax;  // verbs.no-batch-for-ever
static_assert(kBufferBytes >= 2 * (tcp::kPlainBytesMax + kBatchOpsMax * 16));

// A batch is complete after some microseconds, less than falling asleep and waking up take; where other processes wait
// for the processor it is theirs.
constexpr uint64_t kSpinNs = 20'000;
constexpr long kProcessorsToSpin = 4;
uint64_t spin_ns() {
  static const bool spins = sysconf(_SC_NPROCESSORS_ONLN) >= kProcessorsToSpin;
  return spins ? kSpinNs : 0;
}

}  // namespace

Result<std::unique_ptr<VerbsPath>> VerbsPath::make(std::unique_ptr<Device> device, std::span<std::byte> frames,
                                                   Problem* problem) {
  std::unique_ptr<VerbsPath> path(new VerbsPath(std::move(device)));
  if (frames.empty()) return path;
  auto region =
      path->device_->reg(frames.data(), frames.size(), IBV_ACCESS_LOCAL_WRITE, "the frames of this node", problem);
  if (!region) return region.error();
  path->frames_ = region.take();
  return path;
}

VerbsPath::~VerbsPath() = default;

Status VerbsPath::ask(net::Link& link, Problem* problem) {
  auto lane = std::make_unique<Lane>(kBufferBytes);
  auto region = device_->reg(lane->buffer.get(), kBufferBytes, IBV_ACCESS_LOCAL_WRITE, "a buffer", problem);
  if (!region) return region.error();
  lane->region = region.take();
  auto pair = QueuePair::make(*device_, QueuePair::Of::kNode, lane.get(), problem);
  if (!pair) return pair.error();
  lane->pair = pair.take();
  const PathEnd mine = lane->pair->end();
  lane_[link.peer().id] = std::move(lane);
  if (!link.send(tcp::kAskPathFrame, bytes_of(mine)))
    return problem->set(Errc::kSystem, "it takes no question for a queue pair");
  return {};
}

Status VerbsPath::answer(net::Link& link, std::span<const std::byte> payload, Problem* problem) {
  Lane* const lane = lane_[link.peer().id].get();
  PathEnd other;
  GCL_TRY(decode_path_end(payload, &other, problem));
  if (lane == nullptr || lane->connected) return problem->set(Errc::kCorrupt, "a queue pair that nobody has asked for");
  GCL_TRY(lane->pair->connect(other, problem));
  lane->other = other;
  lane->connected = true;
  // verbs.open-when-crossed
  Op word{};
  word.verb = Verb::kLoad;
  word.at = PoolAddress::at(MemoryNodeId{link.peer().id}, 0);
  word.bytes = sizeof(uint64_t);
  if (!start(*lane, std::span(&word, 1), nullptr))
    return problem->set(Errc::kSystem, "a queue pair that takes nothing");
  return {};
}

bool VerbsPath::post(MemoryNodeId id, tcp::PortEntry& entry) { return start(*lane_[id.value], entry.ops(), &entry); }

bool VerbsPath::start(Lane& lane, std::span<const Op> ops, tcp::PortEntry* entry) {
  const uint32_t inline_bytes = lane.pair->inline_bytes(), requests = Chain::requests(ops);
  if (lane.failed || lane.requests + requests > lane.pair->requests_max()) return false;
  const auto at = lane.ring.take(Chain::buffer_bytes(ops, inline_bytes));
  if (!at) return false;
  const UnderWay one{entry, lane.next_id++, requests, lane.buffer.get() + *at};
  chain_.build(ops, one.buffer,
               {.frames = frames_ != nullptr ? frames_->lkey : 0,
                .buffer = lane.region->lkey,
                .memory_node = lane.other.key,
                .inline_bytes = inline_bytes},
               one.id);
  if (lane.under_way.empty()) lane.moved_at = monotonic_ns();
  lane.under_way.push_back(one);
  lane.requests += requests;
  last_at_ = monotonic_ns();
  // Some of them may have been taken: it is under way all the same.
  if (const int error = lane.pair->post(chain_.first()); error != 0)
    fail(lane, "it takes no more: %s", strerror(error));
  return true;
}

void VerbsPath::fail(Lane& lane, const char* format, ...) noexcept {
  if (lane.failed) return;
  lane.failed = true;
  char what[240];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  lane.why.write("the queue pair to %s (%u, of %s) is broken: %s", GidText(lane.other.gid).text, lane.other.number,
                 device_->name(), what);
}

// A success that is not that of the oldest batch would be none.
void VerbsPath::take(Lane& lane, const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS)
    return fail(lane, "%s (vendor error 0x%x)", ibv_wc_status_str(completion.status), completion.vendor_err);
  if (lane.under_way.empty() || lane.under_way.front().id != completion.wr_id)
    return fail(lane, "it completes what is not its oldest batch");
  const UnderWay& one = lane.under_way.front();
  if (one.entry != nullptr) Chain::take_results(one.entry->ops(), one.buffer, lane.pair->inline_bytes());
  lane.requests -= one.requests;
  lane.under_way.pop_front();
  lane.moved_at = monotonic_ns();
  lane.ring.give_back();
}

// What is complete before an error was complete; all behind it is unknown.
void VerbsPath::poll_lane(MemoryNodeId id, Lane& lane, tcp::PathUser& user) {
  constexpr int kAtOnce = 16;
  ibv_wc completions[kAtOnce];
  while (!lane.failed) {
    const int count = lane.pair->poll(completions, kAtOnce);
    if (count < 0) fail(lane, "its completions cannot be read");
    for (int i = 0; i < count && !lane.failed; i++) {
      take(lane, completions[i]);
      if (lane.failed) break;
      last_at_ = monotonic_ns();
      if (lane.open) {
        user.completed(id);
      } else {
        lane.open = true;
        user.opened(id);
      }
    }
    if (count < kAtOnce) break;
  }
  if (!lane.failed && !lane.under_way.empty() && monotonic_ns() > lane.moved_at + kBatchNsMax)
    fail(lane, "a batch has not been complete for %llu s",
         static_cast<unsigned long long>(kBatchNsMax / 1'000'000'000));
}

void VerbsPath::poll(tcp::PathUser& user) {
  for (size_t i = 0; i < lane_.size(); i++) {
    if (lane_[i] == nullptr) continue;
    const MemoryNodeId id{uint8_t(i)};
    if (!lane_[i]->under_way.empty()) poll_lane(id, *lane_[i], user);
    if (!lane_[i]->failed) continue;
    const Problem why = lane_[i]->why;
    close(id);
    user.broken(id, why.text);
  }
}

// verbs.armed-before-sleep
bool VerbsPath::keeps_awake() noexcept {
  bool any = false, armed_now = false;
  for (const auto& lane : lane_) {
    if (lane == nullptr) continue;
    if (lane->failed) return true;
    any |= !lane->under_way.empty();
  }
  if (!any) return false;
  if (monotonic_ns() < last_at_ + spin_ns()) return true;
  for (const auto& lane : lane_) {
    if (lane == nullptr || lane->armed || lane->under_way.empty()) continue;
    if (const int error = lane->pair->arm(); error != 0) fail(*lane, "it gives no events: %s", strerror(error));
    lane->armed = armed_now = true;
  }
  return armed_now;
}

void VerbsPath::readable() noexcept {
  device_->take_events([](void* lane) { static_cast<Lane*>(lane)->armed = false; },
                       [this](void* lost) {
                         for (const auto& lane : lane_)
                           if (lane != nullptr && (lost == nullptr || lost == lane.get()))
                             fail(*lane, lost == nullptr ? "the device has failed" : "the device gives it up");
                       });
}

}  // namespace coherence::verbs
