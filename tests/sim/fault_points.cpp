#include "fault_points.hpp"

namespace sim {

const char* fault_point_name(FaultPoint point) {
  static constexpr const char* kNames[] = {
#define GCL_FAULT_POINT(name, words) (#name) + 1,
#include "fault_points.def"
#undef GCL_FAULT_POINT
      "Elsewhere"};
  return kNames[int(point)];
}

const char* fault_point_words(FaultPoint point) {
  static constexpr const char* kWords[] = {
#define GCL_FAULT_POINT(name, words) words,
#include "fault_points.def"
#undef GCL_FAULT_POINT
      "none of the list"};
  return kWords[int(point)];
}

const char* phase_name(Phase phase) {
  static constexpr const char* kNames[] = {"work", "repair", "checkpoint"};
  return kNames[int(phase)];
}

}  // namespace sim
