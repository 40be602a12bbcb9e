#include "tools/gclctl/lone_node.hpp"

#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

constexpr uint32_t kFrames = 4096;  // 32 MB
constexpr uint32_t kSessions = 3;
constexpr uint32_t kPassMs = 20;

}  // namespace

LoneNode::LoneNode(const fs::path& file, const std::string& compatibility) {
  coherence::Problem problem;
  auto made = bufmgr::BufferPool::create_node({.files = {.path = file.c_str(), .compatibility = compatibility.c_str()},
                                               .node = {0},
                                               .frames = kFrames,
                                               .sessions_max = kSessions,
                                               .extra_bytes = engine::TxnShared::bytes_for(kSessions)},
                                              &problem);
  if (!made) fail("the pool {} cannot be joined: {}", file.string(), problem.text);
  pool_ = made.take();
  serving_ = pool_->attach({0}, never_, log_);
  providing_ = pool_->attach({1}, never_, log_);
  session_ = pool_->attach({2}, never_, log_);
  auto* shared = engine::TxnShared::create(pool_->extra_memory(), kSessions);
  txns_ = std::make_unique<engine::TxnSystem>(*pool_, *session_, *shared, nobody_, nobody_);
  server_ = std::thread([this] {
    while (!stop_.load() && pool_->serve(*serving_, kPassMs)) {
    }
  });
  provider_ = std::thread([this] {
    while (!stop_.load())
      if (!pool_->run_provider_once(*providing_)) pool_->wait_for_provider_work(kPassMs);
  });
}

void LoneNode::stop_workers() {
  if (!server_.joinable()) return;
  stop_.store(true);
  pool_->coherence_node().ring();
  server_.join();
  provider_.join();
  txns_.reset();
  session_.reset();
  providing_.reset();
}

void LoneNode::leave() {
  stop_workers();
  bool last = false;
  coherence::Problem problem;
  if (!pool_->leave(*serving_, &last, &problem)) fail("the pool cannot be left in order: {}", problem.text);
  serving_.reset();
  pool_.reset();
}

LoneNode::~LoneNode() {
  if (!pool_) return;
  stop_workers();
  bool last = false;
  coherence::Problem problem;
  (void)pool_->leave(*serving_, &last, &problem);
}

}  // namespace gclctl
