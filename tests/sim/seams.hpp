// What the rest of the simulator knows of seams.cpp.
#pragma once

#include <cstdint>

namespace coherence {
struct Op;
}

namespace sim {

inline constexpr int32_t kFirstPid = 1 << 24;  // of the simulated servers: node n is process kFirstPid + n

class VerbObserver {
 public:
  virtual ~VerbObserver() = default;
  virtual void about_to(const coherence::Op&) = 0;
};
extern VerbObserver* verb_observer;

}  // namespace sim
