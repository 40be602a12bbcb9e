#include "coherence/line/features.hpp"

#include <cstdio>
#include <string_view>

#include "coherence/base/problem.hpp"

namespace coherence {
namespace {

// The names there are, for a message.
void list_features(char* out, size_t room) {
  size_t at = 0;
  for (int f = 0; f < kFeatures && at < room; f++)
    at += size_t(snprintf(out + at, room - at, "%s%s", f == 0 ? "" : ", ", feature_name(Feature(f))));
}

}  // namespace

const char* feature_name(Feature f) noexcept {
  static constexpr const char* kNames[] = {"forwarding", "early-answers", "hand-over",      "claim",  "hints",
                                           "join",       "upgrade",       "tie-break",      "ageing", "matching",
                                           "stand-back", "lease",         "resend-interval"};
  static_assert(sizeof kNames / sizeof kNames[0] == kFeatures);
  return kNames[int(f)];
}

Result<Features> Features::parse(const char* text, Problem* problem) {
  std::string_view left(text);
  if (left == "all") return all();
  if (left == "none" || left.empty()) return none();
  const bool taken_away = left.front() == '-';
  Features features = taken_away ? all() : none();
  for (bool more = true; more;) {
    const size_t comma = left.find(',');
    more = comma != left.npos;
    const std::string_view word = left.substr(0, comma);
    left.remove_prefix(more ? comma + 1 : left.size());
    const bool minus = !word.empty() && word.front() == '-';
    int f = 0;
    while (f < kFeatures && word.substr(minus) != feature_name(Feature(f))) f++;
    if (f == kFeatures) {
      char known[240];
      list_features(known, sizeof known);
      return problem->set(Errc::kNotFound, "there is no feature \"%.*s\"; there are: %s", int(word.size()), word.data(),
                          known);
    }
    if (minus != taken_away)
      return problem->set(Errc::kNotFound, "\"%s\" names features to have and features to do without", text);
    features = minus ? features.without(Feature(f)) : features.with(Feature(f));
  }
  return features;
}

}  // namespace coherence
