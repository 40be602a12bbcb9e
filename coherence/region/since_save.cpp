#include "coherence/region/since_save.hpp"

#include <unistd.h>

#include <cstdio>
#include <initializer_list>

namespace coherence {

BesideCopy::BesideCopy(const char* durable_path, Kind kind) noexcept {
  static constexpr const char* kEndings[] = {"journal", "checkpoint", "delta", "backed_up"};
  snprintf(text, sizeof text, "%s.%s", durable_path, kEndings[kind]);
}

void forget_since_save(const char* durable_path) noexcept {
  for (const auto kind : {BesideCopy::kJournal, BesideCopy::kCheckpoint, BesideCopy::kDelta, BesideCopy::kBackedUp})
    unlink(BesideCopy(durable_path, kind).text);
}

}  // namespace coherence
