// A transport with distance, over the one of one machine: batches and messages are on their way while their sender goes
// on.  Time and chance are a Network's, so that it runs in the simulator and with threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "coherence/transport/memory.hpp"

namespace gcl_test {

class Network {
 public:
  virtual ~Network() = default;
  // Arrives some time later, once, beside whatever its sender does meanwhile, and beside other arrivals.
  virtual void carry(std::function<void()> arrival) = 0;
  // The sender waits: what is on its way goes on.
  virtual void wait() = 0;
  // The connection of a batch of so many operations breaks when that many have taken place; nothing: it does not.
  virtual std::optional<int> breaks_after(int operations) = 0;
  // What the sender is told of such a batch.
  virtual coherence::BatchState broken() { return coherence::BatchState::kUnknown; }
  virtual bool one_in(uint32_t n) = 0;
};

// A batch travels, its operations run in order, with anything in between, and its completion travels back.  Batches of
// one session overtake each other, to one memory node, too (transport.batch-in-order says no more).  A READ that is not
// wanted may be done all the same.
class FarMemory final : public coherence::Memory {
 public:
  // `near`: where a batch is run when it has arrived.
  FarMemory(std::unique_ptr<coherence::Memory> near, Network& network) : near_(std::move(near)), network_(network) {}
  using Memory::post;
  void post(coherence::Batch* const* batches, int count) override {
    for (int i = 0; i < count; i++) send(*batches[i]);
  }
  void poll() override { network_.wait(); }

 private:
  void send(coherence::Batch& batch) {
    batch.state.store(coherence::BatchState::kPosted, std::memory_order_relaxed);
    const std::optional<int> broken = network_.breaks_after(batch.size());
    auto there = std::make_shared<coherence::Batch>(batch.to());
    for (int i = 0; i < broken.value_or(batch.size()); i++) add(*there, batch.op(i));
    network_.carry([this, &batch, there, broken] {
      if (there->size() > 0) VERIFY(near_->run(*there).ok());
      network_.carry([this, &batch, there, broken] {
        for (int i = 0; i < there->size(); i++) batch.op(i).old = there->op(i).old;
        const auto state = broken ? network_.broken() : coherence::BatchState::kDone;
        batch.state.store(state, std::memory_order_release);  // pairs with Batch::done()
      });
    });
  }

  void add(coherence::Batch& to, const coherence::Op& op) {
    switch (op.verb) {
      case coherence::Verb::kRead:
        to.read(op.at, op.local, op.bytes, network_.one_in(4) ? coherence::OnlyIf::kAlways : op.only_if);
        break;
      case coherence::Verb::kWrite:
        to.write(op.at, op.local, op.bytes);
        break;
      case coherence::Verb::kCas:
        to.cas(op.at, op.expect, op.operand);
        break;
      case coherence::Verb::kFaa:
        to.faa(op.at, op.operand);
        break;
      case coherence::Verb::kLoad:
        to.load(op.at);
        break;
    }
  }

  const std::unique_ptr<coherence::Memory> near_;
  Network& network_;
};

}  // namespace gcl_test
