#include "bufmgr/frame/replacement.hpp"

#include <algorithm>

namespace bufmgr {
namespace {

constexpr int kSampleMax = 256;
constexpr int kSamplesPerVictim = 8;

uint64_t next_random(uint64_t& state) {  // xorshift64*
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1du;
}

}  // namespace

int EpochSampling::propose(uint32_t* frames, int wanted, int round) noexcept {
  struct Sample {
    uint32_t frame;
    uint32_t age, unwanted;
  } sample[kSampleMax];
  const int count = std::min(wanted * kSamplesPerVictim, kSampleMax);
  for (int i = 0; i < count; ++i) {
    const auto frame = uint32_t((next_random(random_) >> 32) * marks_.frames() >> 32);
    sample[i] = {frame, marks_.age(frame), marks_.unwanted(frame)};
  }
  std::sort(sample, sample + count, [](const Sample& a, const Sample& b) {
    return a.unwanted != b.unwanted ? a.unwanted > b.unwanted : a.frame < b.frame;
  });
  int proposed = 0;
  for (int i = 0; i < count && proposed < wanted; ++i) {
    // A page that is wanted now goes only when no other is left.
    if (sample[i].age == 0 && round == 0) continue;
    if (proposed == 0 || frames[proposed - 1] != sample[i].frame) frames[proposed++] = sample[i].frame;
  }
  if (proposed == 0) marks_.advance();  // all of the sample is young: let it age
  return proposed;
}

int SecondChance::propose(uint32_t* frames, int wanted, int) noexcept {
  int proposed = 0;
  for (uint32_t step = 0; step < 2 * marks_.frames() && proposed < wanted; ++step) {
    const uint32_t frame = marks_.step_hand();
    if (marks_.age(frame) == 0) {
      marks_.make_old(frame);
    } else {
      frames[proposed++] = frame;
    }
  }
  return proposed;
}

}  // namespace bufmgr
