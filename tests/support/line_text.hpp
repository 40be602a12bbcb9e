// What a line does, in the names that the table in coherence/protocol.md uses, for tests that print it.
#pragma once

#include <string>

#include "coherence/trace/line_text.hpp"

namespace coherence {

inline std::string text(const LineState& s) {
  std::string t = text(s.msi);
  if (s.op != LineOp::kIdle) t += std::string(" ") + text(s.op);
  if (s.joins) t += ", joins";
  if (s.parked_count) t += ", parked " + std::to_string(s.parked_count);
  if (s.bar) t += ", bar " + std::to_string(s.bar);
  return t;
}

// As tools and reports show it.
template <class T>
std::string shown(const T& what) {
  Text to;
  add(to, what);
  return to.c_str();
}

}  // namespace coherence
